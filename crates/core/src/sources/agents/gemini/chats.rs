//! The sessions of one project, by the files in its folder `chats`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use whosup_sidecar::SessionId;

use super::chat::{self, Chat, ChatName, ID_CHARS_IN_NAME};
use super::project::Project;
use super::prompts::Prompts;
use super::scan::Scanning;
use crate::sources::agents::kit::folder::is_modified_since;

/// How many chats of one project are looked at.
const CHATS_MAX: usize = 200_000;
/// How much older than a process a file may look that the process has written, in
/// milliseconds: clocks are set. Older files need not be read.
pub(super) const MODIFIED_SLACK_MS: i64 = 3_600_000;

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
        let names = self.names(&directory, CHATS_MAX);
        let names: Vec<ChatName> = names.texts().filter_map(ChatName::parse).collect();
        let mut by_id: BTreeMap<SessionId, Chat> = BTreeMap::new();
        let mut without_header: Vec<(ChatName, PathBuf, chat::ChatFacts)> = Vec::new();
        for name in &names {
            let path = directory.join(&name.file);
            let is_named = named.iter().any(|named| named.starts_with(&name.id_begins));
            let is_of_interest = since_ms.is_some_and(|since| {
                is_named || is_modified_since(&path, since.saturating_sub(MODIFIED_SLACK_MS))
            });
            let read = if is_of_interest {
                chat::read_facts(&path)
            } else if self.look.depth.is_walk() {
                let header = chat::read_header(&path);
                header.map(|header| chat::ChatFacts {
                    starts_ms: header
                        .iter()
                        .filter_map(|first| first.started_at_ms)
                        .collect(),
                    header,
                    has_conversation: true,
                    ..chat::ChatFacts::default()
                })
            } else {
                continue;
            };
            match read {
                Ok(facts)
                    if facts
                        .header
                        .as_ref()
                        .is_some_and(|header| header.is_subagent) => {}
                Ok(facts) => match facts.header.clone() {
                    Some(header) => add_file(&mut by_id, &header, path, facts),
                    None => without_header.push((name.clone(), path, facts)),
                },
                Err(message) => self.problem(&path, message),
            }
        }
        for (name, path, facts) in without_header {
            self.add_without_header(&mut by_id, &name, path, facts, prompts);
        }
        if let (Some(prompts), Some(since)) = (prompts, since_ms) {
            add_removed(&mut by_id, &names, prompts, since);
        }
        by_id.into_values().collect()
    }

    /// Adds a file that has lost its header: the typed texts have the whole id.
    fn add_without_header(
        &mut self,
        by_id: &mut BTreeMap<SessionId, Chat>,
        name: &ChatName,
        path: PathBuf,
        facts: chat::ChatFacts,
        prompts: Option<&Prompts>,
    ) {
        let ids_typed = prompts.into_iter().flat_map(|prompts| &prompts.typed);
        let ids_typed = ids_typed.map(|typed| typed.first_session.as_str());
        let known = by_id.keys().map(SessionId::as_str);
        let fitting: BTreeSet<&str> = ids_typed
            .chain(known)
            .filter(|id| begins_with(id, name))
            .collect();
        let id = match fitting.first() {
            Some(id) if fitting.len() == 1 => SessionId::parse(id).ok(),
            _ => None,
        };
        let Some(id) = id else {
            self.problem(
                &path,
                "it has no header, and nothing else tells whose session it is",
            );
            return;
        };
        let chat = by_id.entry(id.clone()).or_insert_with(|| Chat::new(id));
        chat.path = Some(path);
        chat.minute_ms = name.minute_ms;
        add_facts(chat, facts);
    }
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
            let chat = by_id.entry(id.clone()).or_insert_with(|| Chat::new(id));
            chat.last_at_ms = chat.last_at_ms.max(Some(typed.at_ms));
        }
    }
}

/// The beginning of the session's id stands in the file's name.
fn begins_with(id: &str, name: &ChatName) -> bool {
    id.get(..ID_CHARS_IN_NAME).unwrap_or(id) == name.id_begins
}

/// Adds a file to its session. The first file by name has the messages; a later file shows
/// that the session was resumed.
fn add_file(
    by_id: &mut BTreeMap<SessionId, Chat>,
    header: &chat::Header,
    path: PathBuf,
    facts: chat::ChatFacts,
) {
    let id = header.id.clone();
    let chat = by_id.entry(id.clone()).or_insert_with(|| Chat::new(id));
    chat.path.get_or_insert(path);
    add_facts(chat, facts);
}

fn add_facts(chat: &mut Chat, facts: chat::ChatFacts) {
    chat.last_at_ms = chat.last_at_ms.max(facts.last_at_ms);
    if let Some(end) = facts.missing_end {
        chat.perhaps_until_ms = chat.perhaps_until_ms.max(Some(end.until_ms));
        if end.is_torn {
            chat.torn_until_ms = chat.torn_until_ms.max(Some(end.until_ms));
        }
    }
    chat.has_conversation |= facts.has_conversation;
    chat.starts_ms.extend(facts.starts_ms);
    chat.starts_ms.sort_unstable();
    chat.starts_ms.dedup();
    chat.prompts.extend(facts.prompts);
    chat.prompts
        .sort_by_key(|(_, at_ms)| std::cmp::Reverse(*at_ms));
}
