//! What the title of a terminal shows about a process that its agent's log connects with
//! a session.
//!
//! opencode shows the title of the session that a person chooses from its list at once,
//! and logs nothing before the next prompt there (1.18.33, 2026-11).

use super::directory::Beside;
use super::{Drafts, ProcessKey};
use crate::adapter::claim::{EvidenceKind, SessionKey};
use crate::adapter::{AgentProcess, Role};
use crate::judging::verdict::{Confidence, LiveBecause, Verdict};
use crate::sessions::merge::{Draft, Parts};

/// Whether the title of a terminal is this name, or begins with it as with a part of its
/// own.
pub(super) fn is_named(title: &str, name: &str) -> bool {
    let is_whole = |rest: &str| rest.is_empty() || rest.starts_with(" |") || rest.starts_with(" -");
    let name = name.trim();
    !name.is_empty() && title.trim().strip_prefix(name).is_some_and(is_whole)
}

/// The session that a process shows now, if it may have moved there since its last known
/// session: all of its claims are inferred, and its title names exactly one session of its
/// directory.
pub(super) fn gone_on_to(
    drafts: &Drafts,
    parts: &Parts,
    process: &ProcessKey,
) -> Option<SessionKey> {
    let found = parts.process(process)?;
    let title = parts.terminal_titles.get(&found.process.pid)?;
    if found.role != Role::Session || !found.adapter.profile().shows_title_at_once {
        return None;
    }
    let mut claims = drafts.values().flat_map(Draft::live_claims);
    if !claims.all(|claim| !claim.is_about(process) || claim.claim.is_inferred) {
        return None;
    }
    let mut shown = drafts
        .iter()
        .filter(|(key, draft)| may_show(found, title, key, draft, parts));
    match (shown.next(), shown.next()) {
        (Some((key, _)), None) => Some(key.clone()),
        _ => None,
    }
}

fn may_show(
    process: &AgentProcess,
    title: &str,
    key: &SessionKey,
    draft: &Draft,
    parts: &Parts,
) -> bool {
    let sketch = &draft.sketch;
    let name = sketch.terminal_title.as_deref();
    let is_beside = || {
        let work_dir = sketch.work_dir.as_deref();
        let (process, details) = (&process.process, &process.details);
        parts.places.beside(process, details, work_dir) == Beside::Same
    };
    key.agent == process.agent
        && sketch.parent.is_none()
        && name.is_some_and(|name| is_named(title, name))
        && process.may_use(&key.home)
        && is_beside()
}

/// Records that a process moved to the session that its terminal shows.
pub(super) fn serve(draft: &mut Draft, parts: &Parts, process: &ProcessKey) {
    let Some(found) = parts.process(process) else {
        return;
    };
    let verdict = Verdict::Live(LiveBecause::Terminal, Confidence::Inferred);
    let says = format!(
        "the terminal of process {} shows its title",
        found.process.pid
    );
    draft.add_evidence(EvidenceKind::Terminal, says, verdict, Some(&found.process));
    if !draft.live_claims().any(|claim| claim.is_about(process)) {
        draft.serve_by(verdict, &found.process);
    }
}
