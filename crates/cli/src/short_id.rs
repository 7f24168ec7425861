//! Ids short enough to type.

use whosup_core::sessions::session::Session;
use whosup_core::sidecar::SessionId;

/// How much of an id is shown at least, in characters.
const SHORT_ID_CHARS_MIN: usize = 8;

/// The shortest beginning of each id that no other id of a list shares, and
/// that is not ridiculously short.
#[derive(Debug, Default)]
pub(crate) struct ShortIds {
    /// In order; one that two homes have is in it twice.
    ids: Vec<SessionId>,
}

impl ShortIds {
    /// Shortens the ids of these sessions.
    pub(crate) fn of(sessions: &[Session]) -> Self {
        let ids = sessions.iter().map(|session| &session.key.session);
        Self::of_ids(ids.cloned().collect())
    }

    /// Shortens these ids.
    pub(crate) fn of_ids(mut ids: Vec<SessionId>) -> Self {
        ids.sort_unstable();
        Self { ids }
    }

    /// The short form of one id; the whole of it if it was not among the list.
    pub(crate) fn get<'a>(&self, id: &'a SessionId) -> &'a str {
        let neighbour = |at: usize| self.ids.get(at).map(SessionId::as_str).unwrap_or_default();
        let Ok(at) = self.ids.binary_search(id) else {
            return id.as_str();
        };
        let before = at.checked_sub(1).map(neighbour).unwrap_or_default();
        shorten(id.as_str(), before, neighbour(at + 1))
    }
}

/// Cuts an id behind the first character by which it differs from both of its
/// neighbours in the order of ids.
fn shorten<'a>(id: &'a str, before: &str, after: &str) -> &'a str {
    let shared = shared_chars(id, before).max(shared_chars(id, after));
    let wanted = (shared + 1).max(SHORT_ID_CHARS_MIN);
    let mut ends = id.char_indices().map(|(at, _)| at).skip(wanted);
    let Some(end) = ends.next() else { return id };
    // A hyphen at the end would look like one that was cut off.
    match id.get(..end) {
        Some(short) if short.ends_with('-') => {
            ends.next().and_then(|end| id.get(..end)).unwrap_or(id)
        }
        Some(short) => short,
        None => id,
    }
}

fn shared_chars(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn an_id_is_cut_where_it_differs_from_its_neighbours() {
        let id = "0a022b20-8b66-4429-9815-234560ccc5d1";
        assert_eq!(shorten(id, "", ""), "0a022b20");
        assert_eq!(shorten(id, "0a022b1f-", "0b"), "0a022b20");
        assert_eq!(shorten(id, "", "0a022b20-8c"), "0a022b20-8b");
        assert_eq!(shorten(id, "0a022b2", "0a022b20"), "0a022b20-8");
        assert_eq!(shorten(id, id, ""), id);
    }

    #[test]
    fn short_and_foreign_ids_stay_whole() {
        assert_eq!(shorten("ses_1", "", "ses_2"), "ses_1");
        assert_eq!(shorten("会话恢复测试会话一二", "", ""), "会话恢复测试会话");
    }
}
