//! The columns of the list, as a table with one row each.

use whosup_core::reader::Order;

use crate::table::{Shape, Side};

/// One column of the list. [`TABLE`] describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Agent,
    State,
    Id,
    FullId,
    Title,
    Directory,
    Age,
    Pid,
    Client,
    Pane,
    Tty,
    Reason,
    Confidence,
    Model,
    Branch,
    Version,
    Started,
    Home,
    Context,
    Tokens,
    Cost,
    Cpu,
    Memory,
    Threads,
    Io,
}

/// The description of a column.
struct Facts {
    column: Column,
    /// The name on the command line.
    name: &'static str,
    /// What the column shows, for the help.
    help: &'static str,
    /// The order for `--sort`.
    order: Order,
    /// The layout.
    shape: Shape,
}

/// Every column, in the order of [`Column`].
const TABLE: [Facts; 25] = {
    use Side::{Left, Right};
    [
        facts(
            Column::Agent,
            "agent",
            "The agent",
            Order::Agent,
            shape("AGENT", Left, Some(11), Some(1)),
        ),
        facts(
            Column::State,
            "state",
            "What the session is doing, or what became of it",
            Order::State,
            shape("STATE", Left, Some(20), None),
        ),
        facts(
            Column::Id,
            "id",
            "The ID as other commands accept it",
            Order::Id,
            shape("ID", Left, None, None),
        ),
        facts(
            Column::FullId,
            "full-id",
            "The whole ID",
            Order::Id,
            shape("ID", Left, None, None),
        ),
        facts(
            Column::Title,
            "title",
            "The title",
            Order::Title,
            shape("TITLE", Left, Some(14), None),
        ),
        facts(
            Column::Directory,
            "directory",
            "The directory, with `~` for home",
            Order::Directory,
            shape("DIRECTORY", Left, Some(14), Some(9)),
        ),
        facts(
            Column::Age,
            "age",
            "How long ago something last happened",
            Order::Activity,
            shape("AGE", Right, None, Some(3)),
        ),
        facts(
            Column::Pid,
            "pid",
            "PID of the process that runs the session",
            Order::Pid,
            shape("PID", Right, None, Some(4)),
        ),
        facts(
            Column::Client,
            "client",
            "PID of the process with the terminal, if it is another one",
            Order::Client,
            shape("CLIENT", Right, None, Some(5)),
        ),
        facts(
            Column::Pane,
            "pane",
            "The pane that shows the session",
            Order::Pane,
            shape("PANE", Left, Some(10), Some(2)),
        ),
        facts(
            Column::Tty,
            "tty",
            "The terminal that shows the session",
            Order::Tty,
            shape("TTY", Left, None, Some(3)),
        ),
        facts(
            Column::Reason,
            "reason",
            "Why it is live, exited or unknown",
            Order::Reason,
            shape("REASON", Left, None, Some(6)),
        ),
        facts(
            Column::Confidence,
            "confidence",
            "How a live session is known",
            Order::Confidence,
            shape("CONFIDENCE", Left, None, Some(7)),
        ),
        facts(
            Column::Model,
            "model",
            "The model of the last reply",
            Order::Model,
            shape("MODEL", Left, Some(8), Some(8)),
        ),
        facts(
            Column::Branch,
            "branch",
            "The last branch",
            Order::Branch,
            shape("BRANCH", Left, Some(8), Some(8)),
        ),
        facts(
            Column::Version,
            "version",
            "The agent's version",
            Order::Version,
            shape("VERSION", Left, None, Some(8)),
        ),
        facts(
            Column::Started,
            "started",
            "When the session began, in local time",
            Order::Started,
            shape("STARTED", Left, None, Some(8)),
        ),
        facts(
            Column::Home,
            "home",
            "The agent's home",
            Order::Home,
            shape("HOME", Left, Some(10), Some(8)),
        ),
        facts(
            Column::Context,
            "context",
            "How full the context is",
            Order::Context,
            shape("CONTEXT", Right, None, Some(7)),
        ),
        facts(
            Column::Tokens,
            "tokens",
            "The tokens that the session used",
            Order::Tokens,
            shape("TOKENS", Right, None, Some(7)),
        ),
        facts(
            Column::Cost,
            "cost",
            "What they cost",
            Order::Cost,
            shape("COST", Right, None, Some(7)),
        ),
        facts(
            Column::Cpu,
            "cpu",
            "The processor time that its processes use",
            Order::Cpu,
            shape("CPU", Right, None, Some(7)),
        ),
        facts(
            Column::Memory,
            "mem",
            "The memory of its processes",
            Order::Memory,
            shape("MEM", Right, None, Some(7)),
        ),
        facts(
            Column::Threads,
            "threads",
            "The threads of its process",
            Order::Threads,
            shape("THREADS", Right, None, Some(7)),
        ),
        facts(
            Column::Io,
            "io",
            "What its process has read from storage and written to it",
            Order::Io,
            shape("IO", Right, None, Some(7)),
        ),
    ]
};

const fn facts(
    column: Column,
    name: &'static str,
    help: &'static str,
    order: Order,
    shape: Shape,
) -> Facts {
    Facts {
        column,
        name,
        help,
        order,
        shape,
    }
}

const fn shape(
    heading: &'static str,
    side: Side,
    width_min: Option<usize>,
    left_out_at: Option<u8>,
) -> Shape {
    Shape {
        heading,
        side,
        width_min,
        left_out_at,
    }
}

impl Column {
    /// Every column.
    pub(crate) const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Agent; TABLE.len()];
        let mut at = 0;
        while at < TABLE.len() {
            all[at] = TABLE[at].column;
            at += 1;
        }
        all
    };

    /// The default columns.
    pub(crate) const DEFAULT: [Self; 8] = [
        Self::Agent,
        Self::State,
        Self::Id,
        Self::Title,
        Self::Directory,
        Self::Age,
        Self::Pid,
        Self::Pane,
    ];

    const fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }

    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        self.facts().name
    }

    /// What the column shows.
    pub(crate) const fn help(self) -> &'static str {
        self.facts().help
    }

    /// How a list is sorted by this column.
    pub(crate) const fn order(self) -> Order {
        self.facts().order
    }

    /// It needs counts from whole transcripts.
    pub(crate) const fn needs_usage(self) -> bool {
        matches!(self, Self::Tokens | Self::Cost)
    }

    /// It needs measurements of processes.
    pub(crate) const fn needs_resources(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::Threads | Self::Io)
    }

    /// Finds a column by its name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    /// Finds the column of `--sort`. `activity` is the former name of `age`.
    pub(crate) fn from_sort_name(name: &str) -> Option<Self> {
        match name {
            "activity" => Some(Self::Age),
            _ => Self::from_name(name),
        }
    }

    /// The place in the table.
    pub(crate) const fn shape(self) -> Shape {
        self.facts().shape
    }
}

#[cfg(test)]
mod tests {
    use super::Column;

    #[test]
    fn the_table_is_in_the_order_of_the_columns() {
        for column in Column::ALL {
            assert_eq!(column.facts().column, column);
        }
    }
}
