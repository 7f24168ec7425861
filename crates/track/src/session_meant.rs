//! Finds the session of an event whose payload names another session.

use std::path::Path;

use whosup_core::adapter::hook_event::{EventKind, HookEvent, StartSource};
use whosup_core::adapter::{Adapter, Hooks, Program};
use whosup_core::machine::mounts::Mounts;
use whosup_core::process::Backend;
use whosup_core::sidecar::SessionId;

use crate::owner::FoundOwner;

/// Where an agent's files are and how they are read.
pub(crate) struct AgentFiles<'a> {
    pub(crate) adapter: &'a dyn Adapter,
    pub(crate) hooks: &'a Hooks,
    pub(crate) home: &'a Path,
    /// Decides which of the paths that the event names can be touched.
    pub(crate) mounts: &'a Mounts,
}

/// Corrects the session of an event. `is_first`: its process has reported nothing before.
pub(crate) fn set_session(
    event: &mut HookEvent,
    files: &AgentFiles<'_>,
    (owner, is_first): (&FoundOwner, bool),
    backend: &dyn Backend,
) {
    let forked = || session_that_was_forked(event, files.adapter, files.home, owner, backend);
    if let Some(forked) = is_first.then(forked).flatten() {
        event.session = forked;
        // The event names the transcript of the origin session.
        event.transcript = None;
    } else if let Some(written) = session_that_is_written(event, files) {
        event.session = written;
    }
}

/// A fork reports its origin session when it starts, but the agent's registry already
/// names the fork for this process. (Seen in Claude Code 2.1.197, 2026-11,
/// `--fork-session`.)
///
/// Only a process that was started to fork does so, and only at first. When a person changes
/// the session within a process (`/resume`, perhaps to the origin), the hook is right: the
/// registry names the session that was left for a moment longer (seen in 2.1.332, 2026-11).
fn session_that_was_forked(
    event: &HookEvent,
    adapter: &dyn Adapter,
    home: &Path,
    owner: &FoundOwner,
    backend: &dyn Backend,
) -> Option<SessionId> {
    let FoundOwner::Owner { owner, .. } = owner else {
        return None;
    };
    if event.kind != EventKind::SessionStarted(StartSource::Resume) || owner.is_shared {
        return None;
    }
    let process = backend.probe(owner.pid).ok().flatten()?;
    let details = backend.details(&process);
    let program = Program {
        process: &process,
        details: &details,
    };
    let is_owner = Some(&process.stamp) == owner.stamp.as_ref();
    let forked = adapter
        .session_forked_by(home, &program)
        .filter(|_| is_owner)?;
    let is_about_parent = forked.parent.is_none_or(|parent| parent == event.session);
    (is_about_parent && forked.session != event.session).then_some(forked.session)
}

/// The session whose transcript is written, where the payload names another one
/// that has no transcript (claude-code#26563).
fn session_that_is_written(event: &HookEvent, files: &AgentFiles<'_>) -> Option<SessionId> {
    let transcript = event.transcript.as_deref()?;
    let written = (files.hooks.session_of_transcript)(transcript)?;
    if written == event.session {
        return None;
    }
    let extension = transcript.extension()?;
    let named = transcript.with_file_name(event.session.as_str());
    let mut named = named.into_os_string();
    named.push(".");
    named.push(extension);
    let touchable = |path: &Path| files.mounts.touchable(path).ok();
    let is_written = touchable(transcript)?.is_file();
    (is_written && !touchable(Path::new(&named))?.exists()).then_some(written)
}
