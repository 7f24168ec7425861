//! How something is typed into a pane.

use crate::adapter::Invocation;

/// Commands that type into a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typing {
    /// What is done before: it types nothing.
    pub prepare: Vec<Input>,
    /// What types.
    pub type_it: Vec<Input>,
}

/// A command and its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The command.
    pub invocation: Invocation,
    /// What it reads.
    pub stdin: String,
}

impl Input {
    /// A command that reads nothing.
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

/// The text with the marks of a bracketed paste around it (xterm, "Bracketed Paste Mode"),
/// for hosts that don't add them, where it has line breaks: those would be Enter.
pub(super) fn bracketed(text: &str) -> String {
    if text.contains('\n') {
        format!("\u{1b}[200~{text}\u{1b}[201~")
    } else {
        text.to_owned()
    }
}
