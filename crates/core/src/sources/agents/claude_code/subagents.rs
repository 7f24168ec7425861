//! Sub-agents: conversations below a session's, in files of their own.

use std::path::{Path, PathBuf};

use whosup_sidecar::file::{Links, read_regular};
use whosup_sidecar::{SessionId, StrictObject};

use super::AGENT;
use super::projects::TRANSCRIPT_SUFFIX;
use super::transcript::read_opening;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{names_in, names_or_report};
use crate::sources::agents::kit::title::one_line;

/// The prefix of their file names.
pub(super) const PREFIX: &str = "agent-";
/// How many sub-agents of one session are listed.
const SUB_AGENTS_MAX: usize = 1_000;
/// How many names in one folder are read: each sub-agent has a transcript and a description.
const NAMES_MAX: usize = 2 * SUB_AGENTS_MAX + 2;
/// How deep the folders of sub-agents are: their own, the folder of all workflows, and the
/// folder of each workflow.
const LEVELS_MAX: usize = 4;
/// How many folders of one level are looked into.
const FOLDERS_MAX: usize = 256;
/// How many files of sub-agents beside sessions are opened in one project
/// folder. Versions before 2.1 or so left them there.
const BESIDE_MAX: usize = 256;
/// How large the description of a sub-agent or the title of a session may be, in bytes.
const META_BYTES_MAX: u64 = 64 * 1024;

/// A sub-agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubAgent {
    pub(super) id: SessionId,
    pub(super) transcript: PathBuf,
}

/// Lists the sub-agents in the folder of a session: `subagents/agent-ID.jsonl`,
/// and those of workflows deeper, `subagents/workflows/WORKFLOW/agent-ID.jsonl`.
pub(super) fn of_session(folder: &Path) -> Found<Vec<SubAgent>> {
    let folder = folder.join("subagents");
    let mut found = Found::default();
    let mut level = vec![folder.clone()];
    for _ in 0..LEVELS_MAX {
        let mut deeper = Vec::new();
        for folder in &level {
            list(folder, &mut found, &mut deeper);
        }
        deeper.truncate(FOLDERS_MAX);
        level = deeper;
    }
    if found.found.len() > SUB_AGENTS_MAX {
        found.found.truncate(SUB_AGENTS_MAX);
        let message = format!("more than {SUB_AGENTS_MAX} sub-agents: the rest is left out");
        found.problems.push(Problem::at(&AGENT, &folder, message));
    }
    found
}

fn list(folder: &Path, found: &mut Found<Vec<SubAgent>>, deeper: &mut Vec<PathBuf>) {
    let names = match names_in(folder, NAMES_MAX) {
        // A file that is called like a session.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return,
        listed => names_or_report(listed, NAMES_MAX, |why| {
            found.problems.push(Problem::at(&AGENT, folder, why));
        }),
    };
    for name in names.texts() {
        let transcript = folder.join(name);
        match id_of(name) {
            Some(id) => found.found.push(SubAgent { id, transcript }),
            None if !name.contains('.') => deeper.push(folder.join(name)),
            None => {}
        }
    }
}

/// The id of a sub-agent by the name of its transcript.
fn id_of(name: &str) -> Option<SessionId> {
    let id = name.strip_prefix(PREFIX)?.strip_suffix(TRANSCRIPT_SUFFIX)?;
    SessionId::parse(id).ok()
}

/// Reads the sub-agents in the folders beside transcripts, with their parent sessions.
pub(super) fn beside_sessions(transcripts: &[PathBuf]) -> Vec<(SessionId, SubAgent)> {
    let some = transcripts.iter().take(BESIDE_MAX);
    some.filter_map(|transcript| {
        let id = id_of(transcript.file_name()?.to_str()?)?;
        let parent = read_opening(transcript).ok()?.session?;
        let transcript = transcript.clone();
        Some((parent, SubAgent { id, transcript }))
    })
    .collect()
}

/// The task of a sub-agent: `agent-ID.meta.json`.
pub(super) fn title(transcript: &Path) -> Option<String> {
    let meta = transcript.with_extension("meta.json");
    text_in(&meta, &["description", "agentType"])
}

/// The first of these texts in a small file with an object.
pub(super) fn text_in(path: &Path, keys: &[&str]) -> Option<String> {
    let file = read_regular(path, META_BYTES_MAX, Links::Refuse).ok()?;
    let object = StrictObject::parse(&file.bytes).ok()?;
    let text = |key: &&str| object.opt_string(key).ok().flatten().and_then(one_line);
    keys.iter().find_map(text)
}
