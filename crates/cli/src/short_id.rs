//! Ids short enough to type.

use whosup_core::sessions::session::Session;
use whosup_core::sidecar::SessionId;

/// The least number of characters of a short ID, after a prefix that many IDs share.
const SHORT_ID_CHARS_MIN: usize = 8;

/// The shortest prefix of each id that no other id of a list has: commands accept it.
#[derive(Debug, Default)]
pub(crate) struct ShortIds {
    /// Sorted; an ID that two homes have is in it twice.
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

    /// The short form of an ID; the whole ID if it is not in the list.
    pub(crate) fn get<'a>(&self, id: &'a SessionId) -> &'a str {
        let neighbour = |at: usize| self.ids.get(at).map(SessionId::as_str).unwrap_or_default();
        let Ok(at) = self.ids.binary_search(id) else {
            return id.as_str();
        };
        let before = at.checked_sub(1).map(neighbour).unwrap_or_default();
        shorten(id.as_str(), before, neighbour(at + 1))
    }

    /// Sessions of several agents or homes have this id.
    pub(crate) fn is_shared(&self, id: &SessionId) -> bool {
        let end = self.ids.partition_point(|one| one <= id);
        let before_last = end.checked_sub(2).and_then(|at| self.ids.get(at));
        before_last == Some(id)
    }
}

/// Cuts an ID behind the first character that differs from both neighbours in the sorted
/// list.
fn shorten<'a>(id: &'a str, before: &str, after: &str) -> &'a str {
    let shared = shared_chars(id, before).max(shared_chars(id, after));
    let wanted = (shared + 1).max(common_prefix_chars(id) + SHORT_ID_CHARS_MIN);
    let mut ends = id.char_indices().map(|(at, _)| at).skip(wanted);
    // A hyphen at the end would look like a cut-off ID.
    let short = ends.find_map(|end| {
        let short = id.get(..end)?;
        (!short.ends_with(['-', '_'])).then_some(short)
    });
    short.unwrap_or(id)
}

/// A word followed by a hyphen or underscore, as in `session_0a022b20` and `nightly-42`,
/// does not distinguish sessions. Hexadecimal digits are no word.
fn common_prefix_chars(id: &str) -> usize {
    let Some((word, _)) = id.split_once(['-', '_']) else {
        return 0;
    };
    let is_word = word.chars().all(|c| c.is_ascii_alphabetic());
    let is_hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
    if is_word && !is_hexadecimal {
        word.len() + 1
    } else {
        0
    }
}

fn shared_chars(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use whosup_core::sidecar::SessionId;

    use super::{ShortIds, shorten};

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
    fn a_common_prefix_does_not_count() {
        assert_eq!(shorten("nightly-42", "", ""), "nightly-42");
        let id = "session_0a022b20-8b66-4429-9815-234560ccc5d1";
        assert_eq!(shorten(id, "", ""), "session_0a022b20");
        assert_eq!(
            shorten(id, "session_0a022b20-8b", ""),
            "session_0a022b20-8b6"
        );
        assert_eq!(shorten("decade-0a022b20-8b66", "", ""), "decade-0");
        assert_eq!(shorten("0a022b2--_xy", "", ""), "0a022b2--_x");
    }

    #[test]
    fn an_id_that_several_have_is_known_as_that() {
        let ids = ["a", "b", "b", "c"].map(|id| SessionId::parse(id).unwrap());
        let short = ShortIds::of_ids(ids.to_vec());
        let shared = ids.map(|id| short.is_shared(&id));
        assert_eq!(shared, [false, true, true, false]);
    }

    #[test]
    fn short_and_foreign_ids_stay_whole() {
        assert_eq!(shorten("ses_1", "", "ses_2"), "ses_1");
        assert_eq!(shorten("会话恢复测试会话一二", "", ""), "会话恢复测试会话");
    }
}
