//! The sketches of a home: one for each session, even if several files have the same id.
//!
//! Moving to another worktree, or copying a directory, leaves a file with the session's id
//! and without messages. That file may be newer than the conversation.

use std::collections::BTreeMap;
use std::path::Path;

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use crate::adapter::claim::Claim;
use crate::adapter::{AgentScan, Clue, ClueKind, Sketch, Unclaimed};

/// Whether a file has messages, and how recent they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Said {
    /// The file has messages, or may have some.
    pub(crate) has_words: bool,
    /// The date of the last message.
    pub(crate) last_at_ms: Option<i64>,
}

impl Said {
    /// Of a file that cannot be read: it may hold a conversation.
    pub(crate) const UNREADABLE: Self = Self {
        has_words: true,
        last_at_ms: None,
    };
}

/// The sketches of a home, by session.
///
/// If several files have one id, the file that a running process may be working on wins: the
/// default depth reads no other. Then a file with messages wins, then the file with the
/// newest message, then the first file.
pub(crate) struct OnePerSession {
    /// Reads whether a transcript has messages. Called only where an id has several files.
    read: fn(&Path) -> Said,
    files: BTreeMap<SessionId, File>,
}

struct File {
    sketch: Box<Sketch>,
    /// The processes that may be working on it.
    open_to: Vec<Pid>,
    /// The claim that a sub-agent has ended, from its records.
    ended: Option<Box<Claim>>,
}

impl OnePerSession {
    pub(crate) fn new(read: fn(&Path) -> Said) -> Self {
        Self {
            read,
            files: BTreeMap::new(),
        }
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.files.contains_key(session)
    }

    /// Adds the facts in a file about its session, and the processes that may be working on
    /// that file.
    pub(crate) fn add(
        &mut self,
        sketch: impl Into<Box<Sketch>>,
        open_to: impl IntoIterator<Item = Pid>,
    ) {
        self.add_file(File {
            sketch: sketch.into(),
            open_to: open_to.into_iter().collect(),
            ended: None,
        });
    }

    /// Adds the file of a sub-agent, and the claim that the sub-agent has ended, if the
    /// file shows that.
    pub(crate) fn add_sub_agent(&mut self, sketch: Sketch, ended: Option<Claim>) {
        self.add_file(File {
            sketch: sketch.into(),
            open_to: Vec::new(),
            ended: ended.map(Box::new),
        });
    }

    fn add_file(&mut self, file: File) {
        let session = file.sketch.key.session.clone();
        let file = match self.files.remove(&session) {
            None => file,
            Some(first) if first.worth(self.read) >= file.worth(self.read) => first.beside(file),
            Some(first) => file.beside(first),
        };
        self.files.insert(session, file);
    }

    /// All of them, and `claims`, which do not depend on which file is the session's.
    pub(crate) fn into_scan(self, claims: Vec<Box<Claim>>) -> AgentScan {
        let mut scan = AgentScan::of(claims, [] as [Sketch; 0]);
        for file in self.files.into_values() {
            scan.claims.extend(file.ended);
            scan.sketches.push(file.sketch);
        }
        scan
    }
}

impl File {
    fn worth(&self, read: fn(&Path) -> Said) -> (bool, Said) {
        let said = self.sketch.transcript.as_deref().map(read);
        (!self.open_to.is_empty(), said.unwrap_or_default())
    }

    /// Keeps the processes of `other`, a file of lower rank: a process that works beside
    /// that file may still serve the session.
    fn beside(mut self, other: Self) -> Self {
        let mine = &mut self.sketch;
        mine.is_orphan_when_stale |= other.sketch.is_orphan_when_stale;
        mine.client = mine.client.take().or(other.sketch.client);
        if !other.open_to.is_empty() && mine.unclaimed == Unclaimed::NoProcess {
            mine.unclaimed = other.sketch.unclaimed;
        }
        let theirs = other.open_to.iter();
        let theirs = theirs.filter(|pid| !self.open_to.contains(pid));
        let says = "it may be working on another file with this session's ID";
        mine.clues
            .extend(theirs.map(|pid| Clue::new(*pid, ClueKind::Touched, says)));
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use whosup_sidecar::AgentId;

    use super::*;
    use crate::adapter::ClueKind;
    use crate::adapter::claim::SessionKey;

    /// The name of a file in this test stands for its messages: `WORDS-DATE`.
    fn said_by_name(path: &Path) -> Said {
        let name = path.to_str().unwrap_or_default();
        let (words, date) = name.split_once('-').unwrap_or_default();
        Said {
            has_words: words == "words",
            last_at_ms: date.parse().ok(),
        }
    }

    fn pid(number: i64) -> Pid {
        Pid::new(number).unwrap()
    }

    fn file(name: &str) -> Sketch {
        Sketch {
            transcript: (!name.is_empty()).then(|| PathBuf::from(name)),
            ..Sketch::new(SessionKey {
                agent: AgentId::from_static("test"),
                session: SessionId::parse("one").unwrap(),
                home: Path::new("/home").into(),
            })
        }
    }

    /// The sketch of the file that is the session's, in whichever order they come.
    #[track_caller]
    fn check(files: [(&str, &[i64]); 2], right: &str) {
        for order in [files, [files[1], files[0]]] {
            let mut kept = OnePerSession::new(said_by_name);
            for (name, open_to) in order {
                kept.add(file(name), open_to.iter().map(|number| pid(*number)));
            }
            let kept = kept.into_scan(Vec::new()).sketches;
            let names: Vec<_> = kept.into_iter().map(|sketch| sketch.transcript).collect();
            assert_eq!(names, [Some(PathBuf::from(right))], "{order:?}");
        }
    }

    #[test]
    fn the_file_with_words_is_the_sessions_unless_a_process_may_work_on_another() {
        check([("words-1", &[]), ("none-2", &[])], "words-1");
        check([("words-1", &[]), ("words-2", &[])], "words-2");
        check([("none-1", &[]), ("", &[])], "none-1");
        check([("words-1", &[]), ("none-2", &[7])], "none-2");
        check([("words-1", &[6]), ("none-2", &[7])], "words-1");
    }

    #[test]
    fn who_works_beside_the_other_file_may_serve_the_session() {
        let mut kept = OnePerSession::new(said_by_name);
        kept.add(file("words-1"), [pid(6)]);
        kept.add(file("none-2"), [pid(6), pid(7)]);
        let sketches = kept.into_scan(Vec::new()).sketches;
        let clues = sketches.iter().flat_map(|sketch| &sketch.clues);
        let clues: Vec<_> = clues.map(|clue| (clue.pid, clue.kind)).collect();
        assert_eq!(clues, [(pid(7), ClueKind::Touched)]);
    }
}
