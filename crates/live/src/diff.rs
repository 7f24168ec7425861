//! The difference between two looks. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use whosup_core::adapter::claim::SessionKey;

use crate::change::{Change, Why};
use crate::rows::{Gone, Row, Rows};

/// Fields of a session that do not count as changes.
const NOT_COMPARED: [&str; 1] = ["evidence"];

/// Whether a field counts as a change.
pub(crate) fn is_compared(field: &str) -> bool {
    !NOT_COMPARED.contains(&field)
}

/// The changes from `before` to `after`. `gone` has the current state of sessions that are no
/// longer shown; without it, the last shown state is used.
#[must_use]
pub fn diff(before: &Rows, after: &Rows, gone: &BTreeMap<SessionKey, Gone>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (key, row) in &before.sessions {
        let key = key.clone();
        let before = Arc::clone(row);
        match after.sessions.get(&key) {
            None => changes.push(removed(key, before, gone)),
            Some(after) if is_same(&before, after) => {}
            Some(after) => changes.push(Change::Changed {
                key,
                before,
                after: Arc::clone(after),
            }),
        }
    }
    // Their last process has exited since, or something shows that they have.
    let left = before
        .leaving
        .iter()
        .filter(|(key, _)| !after.leaving.contains_key(*key) && !after.sessions.contains_key(*key));
    changes.extend(left.map(|(key, row)| removed(key.clone(), Arc::clone(row), gone)));
    let added = after.sessions.iter();
    let added = added.filter(|(key, _)| !before.sessions.contains_key(key));
    changes.extend(added.map(|(key, row)| Change::Added {
        key: key.clone(),
        row: Arc::clone(row),
    }));
    if before.unattributed != after.unattributed {
        changes.push(Change::Unattributed {
            before: Arc::clone(&before.unattributed),
            after: Arc::clone(&after.unattributed),
        });
    }
    if before.problems != after.problems {
        changes.push(Change::Problems {
            before: Arc::clone(&before.problems),
            after: Arc::clone(&after.problems),
        });
    }
    changes
}

fn removed(key: SessionKey, before: Arc<Row>, gone: &BTreeMap<SessionKey, Gone>) -> Change {
    let (why, row) = match gone.get(&key) {
        Some(gone) => (gone.why, Arc::clone(&gone.row)),
        None => (Why::Hidden, Arc::clone(&before)),
    };
    Change::Removed {
        key,
        before,
        why,
        row,
    }
}

fn is_same(before: &Arc<Row>, after: &Arc<Row>) -> bool {
    // The directory decides which filters show a session.
    Arc::ptr_eq(before, after)
        || (before.directory == after.directory && is_shown_as(before, after))
}

/// Whether both are shown as the same.
pub(crate) fn is_shown_as(before: &Row, after: &Row) -> bool {
    // JSON maps are sorted by name.
    compared(before).eq(compared(after))
}

/// The fields that count, without absent fields.
fn compared(row: &Row) -> impl Iterator<Item = (&String, &Value)> {
    let fields = row.session.iter();
    fields.filter(|(name, value)| is_compared(name) && !value.is_null())
}

#[cfg(test)]
mod tests;
