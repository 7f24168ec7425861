//! How a person gets to a pane.

use crate::adapter::Invocation;

/// How a person gets to a pane, from where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Going {
    /// Run these commands one after another; they bring it into view and exit.
    Run(Vec<Invocation>),
    /// Run this command, which takes over the terminal and exits when the person leaves.
    Become(Invocation),
    /// Run these commands, then a command that takes over the terminal.
    RunThenBecome(Vec<Invocation>, Invocation),
    /// It can't be done from here.
    ByHand {
        /// Why, and what to do first.
        why: String,
        /// The command that shows the pane then.
        then: Invocation,
    },
}

impl Going {
    /// The commands in their order.
    #[must_use]
    pub fn commands(&self) -> Vec<&Invocation> {
        match self {
            Self::Run(commands) => commands.iter().collect(),
            Self::Become(command) | Self::ByHand { then: command, .. } => vec![command],
            Self::RunThenBecome(commands, last) => commands.iter().chain([last]).collect(),
        }
    }
}
