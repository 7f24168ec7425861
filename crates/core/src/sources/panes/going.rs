//! How a person gets to see a pane.

use crate::adapter::Invocation;

/// How a person gets to see a pane, from where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Going {
    /// These commands, one after another, bring it into view and end.
    Run(Vec<Invocation>),
    /// This command takes over the terminal, and ends when the person leaves.
    Become(Invocation),
    /// These commands, and then a command that takes over the terminal.
    RunThenBecome(Vec<Invocation>, Invocation),
    /// It cannot be done from here.
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
