//! The columns: which there are on a screen, how wide, and what stands in them.

use whosup_core::sessions::resources::TreeUse;

use crate::commands::top::item::Item;
use crate::commands::top::model::Model;
use crate::text;

/// What is not known.
const NOTHING: &str = "-";

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    State,
    Age,
    Agent,
    Title,
    Turn,
    ContextBar,
    Context,
    Cpu,
    Memory,
    Place,
}

/// The columns in their order, with their widths, and the width of the screen from which
/// on they are there. The title takes what is left.
const COLUMNS: [(Column, usize, usize); 10] = [
    (Column::State, 20, 0),
    (Column::Age, 4, 0),
    (Column::Agent, 11, 0),
    (Column::Title, 0, 0),
    (Column::Turn, 5, 80),
    (Column::ContextBar, 8, 100),
    (Column::Context, 5, 0),
    (Column::Cpu, 5, 72),
    (Column::Memory, 5, 80),
    (Column::Place, 18, 120),
];

/// The columns of a screen with their widths, one blank between them.
pub(super) fn chosen(width: usize) -> Vec<(Column, usize)> {
    let there = COLUMNS.iter().filter(|(_, _, from)| *from <= width);
    let there: Vec<(Column, usize)> = there.map(|(column, width, _)| (*column, *width)).collect();
    let taken: usize = there.iter().map(|(_, width)| width.saturating_add(1)).sum();
    // The mark of the selection takes two more.
    let left = width.saturating_sub(taken.saturating_add(1));
    let widths = there.into_iter().map(|(column, width)| match column {
        Column::Title => (column, left),
        column => (column, width),
    });
    widths.collect()
}

impl Column {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Age => "AGE",
            Self::Agent => "AGENT",
            Self::Title => "TITLE",
            Self::Turn => "TURN",
            Self::ContextBar => "CONTEXT",
            Self::Context => "CTX",
            Self::Cpu => "CPU",
            Self::Memory => "MEM",
            Self::Place => "WHERE",
        }
    }

    pub(super) const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Age | Self::Turn | Self::Context | Self::Cpu | Self::Memory
        )
    }

    /// What stands in a row.
    pub(super) fn text(self, model: &Model, item: &Item) -> String {
        let tree = || model.tree_of(item);
        let known = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
        match self {
            Self::State => item.state.clone(),
            Self::Age => known(item.since_ms.map(|since| text::age(model.now_ms, since))),
            Self::Agent => item.agent.clone(),
            Self::Title if item.title.is_empty() => item.session.clone(),
            Self::Title => item.title.clone(),
            Self::Turn => known(item.turn_tokens.map(text::tokens)),
            Self::ContextBar => item.context_percent.map(bar).unwrap_or_default(),
            Self::Context => known(match item.context_percent {
                Some(percent) => Some(format!("{percent:.0}%")),
                // The size of the window is not known.
                None => item.context_tokens.map(text::tokens),
            }),
            Self::Cpu => known(tree().and_then(cpu)),
            Self::Memory => known(tree().and_then(|tree| tree.rss_bytes).map(text::bytes)),
            Self::Place => item.place.clone(),
        }
    }
}

fn cpu(tree: TreeUse) -> Option<String> {
    tree.cpu_percent.map(|percent| format!("{percent:.0}%"))
}

/// How full a context is, in eight cells.
fn bar(percent: f64) -> String {
    let full = (1..=8).filter(|cell| percent >= f64::from(*cell) * 12.5 - 6.25);
    let full = full.count();
    format!("{}{}", "█".repeat(full), "░".repeat(8 - full))
}

/// A text in a column: cut, or filled up with blanks.
pub(super) fn fitted(text: &str, width: usize, is_number: bool) -> String {
    let text = text::cut(text, width);
    let blanks = " ".repeat(width.saturating_sub(text::width(&text)));
    if is_number {
        format!("{blanks}{text}")
    } else {
        format!("{text}{blanks}")
    }
}
