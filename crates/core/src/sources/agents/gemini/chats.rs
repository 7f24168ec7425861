//! The sessions of one project, by the files in its folder `chats`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use super::chat::{self, Chat, ChatFacts, ChatName, ID_CHARS_IN_NAME};
use super::project::Project;
use super::prompts::Prompts;
use super::scan::Scanning;
use crate::sources::agents::kit::folder::is_modified_since;

/// How many chats of one project are looked at.
const CHATS_MAX: usize = 200_000;
/// How much older than a process a file may look that the process has written, in
/// milliseconds: clocks are set. Older files need not be read.
const MODIFIED_SLACK_MS: i64 = 3_600_000;

impl Scanning<'_> {
    /// The sessions of a project: all of them, or those that may have to do with
    /// a process.
    pub(super) fn chats(
        &mut self,
        project: &Project,
        since_ms: Option<i64>,
        named: &[&str],
        prompts: Option<&Prompts>,
    ) -> Vec<Chat> {
        let directory = project.chats();
        let names = self.scan.names(&directory, CHATS_MAX);
        let names: Vec<ChatName> = names.texts().filter_map(ChatName::parse).collect();
        let mut by_id: BTreeMap<SessionId, Chat> = BTreeMap::new();
        let mut without_header = Vec::new();
        for name in &names {
            let path = directory.join(&name.file);
            let is_named = named.iter().any(|named| named.starts_with(&name.id_begins));
            let is_of_interest =
                since_ms.is_some_and(|since| is_named || may_be_written_since(&path, since));
            let read = if is_of_interest {
                chat::read_facts(&path)
            } else if self.scan.look.depth.is_walk() {
                chat::read_header(&path).map(|header| ChatFacts {
                    has_conversation: true,
                    ..ChatFacts::begun(header)
                })
            } else {
                continue;
            };
            match read {
                Ok(facts) => match &facts.header {
                    Some(header) if header.is_subagent => {}
                    Some(header) => {
                        let chat = chat_of(&mut by_id, header.id.clone());
                        chat.path = Some(match chat.path.take() {
                            Some(first) => newest(first, path),
                            None => path,
                        });
                        chat.add(facts);
                    }
                    None => without_header.push((name, path, facts)),
                },
                Err(message) => self.scan.problem(&path, message),
            }
        }
        for (name, path, facts) in without_header {
            let Some(id) = whole_id(name, &by_id, prompts) else {
                let message = "it has no header, and nothing else shows whose session it is";
                self.scan.problem(&path, message);
                continue;
            };
            let chat = chat_of(&mut by_id, id);
            chat.path = Some(path);
            chat.minute_ms = name.minute_ms;
            chat.add(facts);
        }
        if let (Some(prompts), Some(since)) = (prompts, since_ms) {
            add_removed(&mut by_id, &names, prompts, since);
        }
        by_id.into_values().collect()
    }
}

/// Of two files of one session, the one with the newest message; of equal ones the one with
/// lines, in which tokens are counted, and then the first by name. A resumed session has a
/// second file without messages, or, if an early release began it, its whole conversation in a
/// second file that is continued.
fn newest(first: PathBuf, second: PathBuf) -> PathBuf {
    let rank = |path: &Path| (chat::said(path), !chat::is_object(path));
    if rank(&second) > rank(&first) {
        second
    } else {
        first
    }
}

/// The id of a file that has lost its header: the typed texts have the whole of it.
fn whole_id(
    name: &ChatName,
    by_id: &BTreeMap<SessionId, Chat>,
    prompts: Option<&Prompts>,
) -> Option<SessionId> {
    let typed = prompts.into_iter().flat_map(|prompts| &prompts.typed);
    let typed = typed.map(|typed| typed.first_session.as_str());
    let known = by_id.keys().map(SessionId::as_str);
    let fitting = typed.chain(known).filter(|id| begins_with(id, name));
    let mut fitting: BTreeSet<&str> = fitting.collect();
    let only = fitting.pop_first().filter(|_| fitting.is_empty());
    SessionId::parse(only?).ok()
}

/// Adds the sessions with prompts since then whose files another start has removed.
fn add_removed(
    by_id: &mut BTreeMap<SessionId, Chat>,
    names: &[ChatName],
    prompts: &Prompts,
    since_ms: i64,
) {
    for typed in prompts.typed.iter().filter(|typed| typed.at_ms >= since_ms) {
        let id = typed.first_session.as_str();
        if names.iter().any(|name| begins_with(id, name)) {
            continue;
        }
        if let Ok(id) = SessionId::parse(id) {
            let chat = chat_of(by_id, id);
            chat.last_at_ms = chat.last_at_ms.max(Some(typed.at_ms));
        }
    }
}

/// The beginning of the session's id stands in the file's name.
fn begins_with(id: &str, name: &ChatName) -> bool {
    id.get(..ID_CHARS_IN_NAME).unwrap_or(id) == name.id_begins
}

/// A process may have written the file, or something in the folder, since then.
pub(super) fn may_be_written_since(path: &Path, since_ms: i64) -> bool {
    is_modified_since(path, since_ms.saturating_sub(MODIFIED_SLACK_MS))
}

fn chat_of(by_id: &mut BTreeMap<SessionId, Chat>, id: SessionId) -> &mut Chat {
    by_id.entry(id.clone()).or_insert_with(|| Chat::new(id))
}
