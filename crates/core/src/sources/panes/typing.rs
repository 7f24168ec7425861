//! Typing into a pane.

use crate::adapter::Invocation;

/// Commands that type into a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typing {
    /// Preparation, which types nothing.
    pub prepare: Vec<Input>,
    /// The commands that type.
    pub type_it: Vec<Input>,
}

/// A command and its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The command.
    pub invocation: Invocation,
    /// The standard input.
    pub stdin: String,
}

impl Input {
    /// A command without input.
    #[must_use]
    pub const fn of(invocation: Invocation) -> Self {
        Self {
            invocation,
            stdin: String::new(),
        }
    }
}

impl Typing {
    /// Typing that needs no preparation.
    pub(super) const fn at_once(type_it: Vec<Input>) -> Self {
        Self {
            prepare: Vec::new(),
            type_it,
        }
    }
}

/// A text with line breaks in the marks of a bracketed paste (xterm, "Bracketed Paste Mode"),
/// for hosts that don't add them: the line breaks would be Enter.
pub(super) fn bracketed(text: &str) -> String {
    if text.contains('\n') {
        format!("\u{1b}[200~{text}\u{1b}[201~")
    } else {
        text.to_owned()
    }
}
