//! What is shown: the rows in their order, the filter, the selection. Pure.

use std::collections::BTreeMap;
use std::path::PathBuf;

use whosup_core::adapter::claim::SessionKey;
use whosup_core::sessions::resources::{Resources, TreeUse};
use whosup_live::Rows;

use super::item::{Item, RowId};
use crate::text;

/// How many lines stand around the rows: two above, two below.
pub(super) const FRAME_LINES: u16 = 4;
/// How many lines stand above the rows.
pub(super) const HEAD_LINES: u16 = 2;

/// By what rows are in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    State,
    Age,
    Tokens,
    Context,
    Cpu,
    Memory,
}

impl Sort {
    const ALL: [Self; 6] = [
        Self::State,
        Self::Age,
        Self::Tokens,
        Self::Context,
        Self::Cpu,
        Self::Memory,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Age => "age",
            Self::Tokens => "turn",
            Self::Context => "context",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    pub(super) fn next(self) -> Self {
        let mut sorts = Self::ALL.into_iter().cycle();
        sorts.find(|sort| *sort == self);
        sorts.next().unwrap_or(self)
    }
}

/// A text over the rows: an answer, help, problems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) lines: Vec<String>,
    /// The first line that is shown.
    pub(super) top: usize,
    /// The question that it waits for an answer to.
    pub(super) awaits: Option<u64>,
}

/// One line of the view.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line<'a> {
    Project(&'a str, usize),
    Row(&'a Item),
}

/// What is shown.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) items: Vec<Item>,
    pub(super) problems: Vec<String>,
    pub(super) used: BTreeMap<SessionKey, Resources>,
    pub(super) now_ms: i64,
    pub(super) filter: String,
    pub(super) is_typing: bool,
    pub(super) sort: Sort,
    pub(super) sheet: Option<Sheet>,
    /// What came of the last key.
    pub(super) note: Option<String>,
    /// The width and height of the screen.
    pub(super) size: (u16, u16),
    /// The first line that is shown.
    pub(super) top: usize,
    pub(super) selected: Option<RowId>,
    /// The line where the selection was last.
    at: usize,
    pub(super) questions: u64,
    home: Option<PathBuf>,
}

impl Model {
    pub(super) fn new(size: (u16, u16), home: Option<PathBuf>) -> Self {
        Self {
            items: Vec::new(),
            problems: Vec::new(),
            used: BTreeMap::new(),
            now_ms: 0,
            filter: String::new(),
            is_typing: false,
            sort: Sort::State,
            sheet: None,
            note: None,
            size,
            top: 0,
            selected: None,
            at: 0,
            questions: 0,
            home,
        }
    }

    /// Takes what a look shows.
    pub(super) fn update(&mut self, rows: &Rows) {
        let home = self.home.as_deref();
        let sessions = rows.sessions.iter();
        let sessions = sessions.map(|(key, row)| Item::of_session(key, row, home));
        let processes = rows.unattributed.iter();
        let processes = processes.filter_map(|process| Item::of_process(process, home));
        self.items = sessions.chain(processes).collect();
        let words = |field: &serde_json::Value| text::one_line(field.as_str().unwrap_or_default());
        self.problems = rows
            .problems
            .iter()
            .map(|problem| {
                let parts = ["agent", "path", "message"].map(|part| words(&problem[part]));
                let parts: Vec<String> =
                    parts.into_iter().filter(|part| !part.is_empty()).collect();
                parts.join(": ")
            })
            .collect();
        self.now_ms = self.now_ms.max(rows.as_of_ms);
        self.settle();
    }

    /// What the processes of a session use together.
    pub(super) fn tree_of(&self, item: &Item) -> Option<TreeUse> {
        match &item.id {
            RowId::Session(key) => self.used.get(key)?.tree,
            RowId::Process(..) => None,
        }
    }

    /// The lines in their order: projects by their first row.
    pub(super) fn lines(&self) -> Vec<Line<'_>> {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let items = self.items.iter();
        let mut items: Vec<&Item> = items.filter(|item| item.matches(&words)).collect();
        items.sort_by_cached_key(|item| (self.place_of(item), &item.project, &item.id));
        let mut projects: Vec<(&str, Vec<&Item>)> = Vec::new();
        for item in items {
            match projects.iter_mut().find(|(name, _)| *name == item.project) {
                Some((_, rows)) => rows.push(item),
                None => projects.push((&item.project, vec![item])),
            }
        }
        let lines = projects.into_iter().flat_map(|(name, rows)| {
            let head = Line::Project(name, rows.len());
            std::iter::once(head).chain(rows.into_iter().map(Line::Row))
        });
        lines.collect()
    }

    /// Where a row stands: the lowest first; what is not known comes last.
    fn place_of(&self, item: &Item) -> (i64, i64) {
        let since = item.since_ms.unwrap_or(i64::MAX);
        let tree = || self.tree_of(item);
        let highest = |number: Option<u64>| match number.map(i64::try_from) {
            Some(number) => number.unwrap_or(i64::MAX).saturating_neg(),
            None => 1,
        };
        // Tenths of a percent count, and no less.
        let percent =
            |percent: Option<f64>| highest(percent.map(|percent| (percent * 10.0) as u64));
        let rank = i64::try_from(item.condition.rank()).unwrap_or(i64::MAX);
        match self.sort {
            Sort::State => (rank, since),
            Sort::Age => (since, rank),
            Sort::Tokens => (highest(item.turn_tokens), rank),
            Sort::Context => (percent(item.context_percent), rank),
            Sort::Cpu => (percent(tree().and_then(|tree| tree.cpu_percent)), rank),
            Sort::Memory => (highest(tree().and_then(|tree| tree.rss_bytes)), rank),
        }
    }

    /// The row that is selected.
    pub(super) fn selected(&self) -> Option<&Item> {
        let selected = self.selected.as_ref()?;
        self.items.iter().find(|item| item.id == *selected)
    }

    /// How many lines of rows fit.
    pub(super) fn height(&self) -> usize {
        self.size.1.saturating_sub(FRAME_LINES).into()
    }

    /// Keeps the selection on its row, or on the nearest if that is gone, and in sight.
    pub(super) fn settle(&mut self) {
        let ids = self.row_ids();
        let followed = ids
            .iter()
            .position(|id| id.is_some() && *id == self.selected);
        let at = followed.or_else(|| nearest(&ids, self.at));
        self.select(&ids, at);
    }

    /// The row of each line; `None` for a project.
    pub(super) fn row_ids(&self) -> Vec<Option<RowId>> {
        let lines = self.lines();
        let ids = lines.iter().map(|line| match line {
            Line::Project(..) => None,
            Line::Row(item) => Some(item.id.clone()),
        });
        ids.collect()
    }

    /// Moves the selection by so many rows.
    pub(super) fn move_by(&mut self, rows: isize) {
        let ids = self.row_ids();
        let places: Vec<usize> = (0..ids.len()).filter(|at| ids[*at].is_some()).collect();
        let now = places.iter().position(|at| *at == self.at).unwrap_or(0);
        let last = places.len().saturating_sub(1);
        let at = places
            .get(now.saturating_add_signed(rows).min(last))
            .copied();
        self.select(&ids, at);
    }

    /// Selects the row of a line of the screen, counted from its top.
    pub(super) fn click(&mut self, line: u16) {
        let ids = self.row_ids();
        let Some(line) = line.checked_sub(HEAD_LINES).map(usize::from) else {
            return;
        };
        let at = self.top.saturating_add(line);
        if line < self.height() && ids.get(at).is_some_and(Option::is_some) {
            self.select(&ids, Some(at));
        }
    }

    /// Scrolls; a selection that would leave the screen stays at the edge.
    pub(super) fn scroll(&mut self, lines: isize) {
        let ids = self.row_ids();
        let last = ids.len().saturating_sub(self.height());
        self.top = self.top.saturating_add_signed(lines).min(last);
        let end = self.top.saturating_add(self.height().saturating_sub(1));
        let at = nearest(&ids, self.at.clamp(self.top, end));
        self.select(&ids, at);
    }

    fn select(&mut self, ids: &[Option<RowId>], at: Option<usize>) {
        self.selected = at.and_then(|at| ids.get(at).cloned().flatten());
        self.at = at.unwrap_or(0);
        // The project above the first row is in sight with it.
        let above = self.at.checked_sub(1);
        let first = above.filter(|above| ids.get(*above) == Some(&None));
        self.top = self.top.min(first.unwrap_or(self.at));
        let lines_below = self.height().saturating_sub(1);
        self.top = self.top.max(self.at.saturating_sub(lines_below));
        self.top = self.top.min(ids.len().saturating_sub(self.height()));
    }
}

/// The row at a line, else the next one below, else above.
fn nearest(ids: &[Option<RowId>], at: usize) -> Option<usize> {
    let is_row = |at: &usize| ids.get(*at).is_some_and(Option::is_some);
    let below = (at..ids.len()).find(is_row);
    below.or_else(|| (0..at.min(ids.len())).rev().find(is_row))
}
