//! An error and its causes, in words.

use std::error::Error;

/// How many causes of an error are reported.
const CAUSES_MAX: usize = 16;

/// The message of an error and those of its causes, outermost first.
///
/// Many errors print their cause and return it as a source too: a cause that the message
/// before it ends with is left out.
#[must_use]
pub fn reasons(error: &(dyn Error + 'static)) -> Vec<String> {
    let causes = std::iter::successors(Some(error), |error: &&dyn Error| (*error).source());
    let mut reasons: Vec<String> = Vec::new();
    for reason in causes.take(CAUSES_MAX).map(ToString::to_string) {
        if reasons.last().is_none_or(|last| !last.ends_with(&reason)) {
            reasons.push(reason);
        }
    }
    reasons
}

/// An error with its causes, as one sentence.
#[must_use]
pub fn in_full(error: &(dyn Error + 'static)) -> String {
    reasons(error).join(": ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{in_full, reasons};

    #[derive(Debug, thiserror::Error)]
    enum Failure {
        #[error("cannot write `a`: {source}")]
        Repeated { source: io::Error },
        #[error("cannot save")]
        Plain { source: Box<Failure> },
        #[error(transparent)]
        Transparent(#[from] Box<Failure>),
    }

    #[test]
    fn a_cause_that_the_message_repeats_is_named_once() {
        let source = io::Error::other("permission denied");
        let repeated = Box::new(Failure::Repeated { source });
        let sentence = "cannot write `a`: permission denied";
        assert_eq!(in_full(&*repeated), sentence);
        let transparent = Box::new(Failure::Transparent(repeated));
        assert_eq!(in_full(&*transparent), sentence);
        let plain = Failure::Plain {
            source: transparent,
        };
        assert_eq!(reasons(&plain), ["cannot save", sentence]);
    }
}
