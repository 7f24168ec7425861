//! Receives one event of a hook.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use whosup_core::adapter::Adapter;

use whosup_core::adapter::hook_event::{EventKind, HookEvent};
use whosup_core::machine::Environment;
use whosup_core::machine::mounts::Mounts;
use whosup_core::process::{Backend, Pid};
use whosup_core::sources::agents;
use whosup_core::sources::record::{
    EndCause, HistoryEvent, HistoryLine, KnownOwner, LoggedEnd, LoggedEvent, OWNERS_MAX,
    PROMPT_CHARS_MAX, PaneHint, RecordedOwner, SessionRecord,
};

use crate::append::{append, read_record};
use crate::closed_terminal::was_closed;
use crate::end::{Ended, Pass, end_event, end_session, pass_on};
use crate::git::branch_of;
use crate::history::HistoryFile;
use crate::owner::{FoundOwner, HookOf, find_owner};
use crate::session_meant::{AgentFiles, set_session};
use crate::{SessionFiles, SessionLock, Store, TrackError, refresh};

/// How long a hook waits for another writer of the record. The event is in the log
/// by then, and the next reader writes the record.
const LOCK_PATIENCE: Duration = Duration::from_millis(40);

/// How many owners of a session that reported no end are looked at, whether they are gone.
const MANY_OWNERS: usize = OWNERS_MAX - 4;

/// The world of a hook.
#[derive(Debug, Clone)]
pub struct HookWorld {
    /// Its environment, which is its agent's.
    pub environment: Environment,
    /// The processes.
    pub backend: Arc<dyn Backend>,
    /// The hook itself.
    pub hook: Pid,
    /// The event, where the command line names it.
    pub event: Option<String>,
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
    /// What becomes of prompts.
    pub prompts: Prompts,
    /// It runs within a command that was started at the end of another session.
    pub is_aftermath: bool,
}

/// What becomes of prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// Their beginning is kept.
    Keep,
    /// They are not written down.
    Drop,
}

/// Records one event that an agent's hook reported. Returns the record of the
/// session if it has ended and it is now for the caller to pass that on.
///
/// # Errors
///
/// [`TrackError`] if it reports nothing or could not be recorded.
pub fn receive(
    adapter: &dyn Adapter,
    payload: &[u8],
    world: &HookWorld,
) -> Result<Option<SessionRecord>, TrackError> {
    let agent = agents::id_of(adapter);
    let hooks = adapter
        .profile()
        .hooks
        .ok_or_else(|| TrackError::UnknownAgent {
            agent: agent.to_string(),
        })?;
    let mut event = hooks.parse(payload, world.event.as_deref())?;
    let home = home(adapter, event.transcript.as_ref(), world);
    let mounts = Mounts::of_this_machine();
    for relied_on in world.environment.home().into_iter().chain([home.as_path()]) {
        mounts.rely_on(relied_on);
    }
    let agent_files = AgentFiles {
        adapter,
        hooks,
        home: &home,
        mounts: &mounts,
    };
    let of = HookOf {
        adapter,
        home: &home,
        session: &event.session,
        environment: &world.environment,
    };
    let owner = find_owner(world.backend.as_ref(), &of, world.hook);
    let history = match &owner {
        FoundOwner::Owner { owner, .. } if !owner.is_shared => {
            HistoryFile::of(&world.environment, owner)
        }
        FoundOwner::Owner { .. } | FoundOwner::NotFound(_) => None,
    };
    let is_first = history.as_ref().is_none_or(HistoryFile::is_empty);
    set_session(
        &mut event,
        &agent_files,
        (&owner, is_first),
        world.backend.as_ref(),
    );
    let store = Store::of(&world.environment)?;
    let files = store.files_of(&agent, &event.session);
    let mut logged = logged(event, owner, home.clone(), world, &mounts);
    logged.has_left = history
        .as_ref()
        .is_some_and(|file| has_left(file, &files, &logged));
    if logged.kind == EventKind::SessionEnded {
        // `None`: it waits for the lock here, as any event does.
        let ended = end_session(&files, &logged, None)?;
        note(history.as_ref(), &files, &logged, HistoryEvent::Ended)?;
        return Ok(match ended {
            Ended::Now(record) => Some(*record),
            Ended::Already | Ended::GoesOn | Ended::Noted => None,
        });
    }
    append(&files, &logged)?;
    if logged.kind.is_claim() {
        note(history.as_ref(), &files, &logged, HistoryEvent::TakenUp)?;
    }
    let Some(lock) = SessionLock::take(&files, LOCK_PATIENCE)? else {
        return Ok(None);
    };
    // Another process may have recorded an end while the lock was held.
    let mut record = refresh(&files, &lock)?;
    let gone = record.as_ref().map(|record| gone_of_many(record, world));
    for end in gone.into_iter().flatten() {
        append(&files, &end)?;
        record = refresh(&files, &lock)?;
    }
    let (record, pass) = pass_on(&files, record, &lock)?;
    Ok(record.filter(|_| pass == Pass::On))
}

/// The ends of owners that are gone and reported none, where so many are kept that the next
/// ones would displace others.
fn gone_of_many(record: &SessionRecord, world: &HookWorld) -> Vec<LoggedEvent> {
    let open: Vec<&KnownOwner> = record.owners.open().collect();
    if open.len() < MANY_OWNERS {
        return Vec::new();
    }
    let gone = open.iter().filter_map(|known| {
        let owner = known.identity.as_ref()?;
        let end = LoggedEnd {
            cause: EndCause::ProcessGone,
            ended_at_ms: known.last_event_at_ms,
        };
        let id = format!("gone-{}-{}-{}", owner.pid, world.hook, unique(world));
        is_gone(owner, world.backend.as_ref()).then(|| LoggedEvent {
            owner: Some(owner.clone()),
            ..end_event(record, end, id)
        })
    });
    gone.collect()
}

/// Returns whether a process that could be seen from here, if it ran, has exited.
fn is_gone(owner: &RecordedOwner, backend: &dyn Backend) -> bool {
    let scope = backend.scope();
    let is_of_here = owner.boot.is_some()
        && owner.boot == scope.boot.ok()
        && owner.pid_namespace.is_some()
        && owner.pid_namespace == scope.pid_namespace.ok();
    is_of_here
        && match backend.probe(owner.pid) {
            Ok(None) => true,
            Ok(Some(now)) => {
                let stamp = owner.stamp.as_ref();
                let is_same = stamp.and_then(|stamp| stamp.is_same_as(&now.stamp));
                is_same == Some(false) || (is_same == Some(true) && now.is_exited)
            }
            Err(_) => false,
        }
}

/// Returns whether the event comes late: its process has taken up another session since it
/// took up, or worked in, this one. Work in a session that the process never reported to take
/// up does not come late.
fn has_left(file: &HistoryFile, files: &SessionFiles, event: &LoggedEvent) -> bool {
    if event.kind.is_claim() || event.kind == EventKind::SessionEnded {
        return false;
    }
    let has_left = |heard_at_ms| {
        let history = file.history();
        history.has_left(&files.agent, &files.session, heard_at_ms)
    };
    match event.kind.starts_work() {
        true => has_left(Some(i64::MAX)),
        false => has_left(None) && has_left(worked_at_ms(files, event.owner.as_ref())),
    }
}

/// When this process was last heard to work in the session.
fn worked_at_ms(files: &SessionFiles, owner: Option<&RecordedOwner>) -> Option<i64> {
    let record = read_record(files)?;
    let mut known = record.owners.iter();
    let known = known.find(|known| {
        let identity = known.identity.as_ref().zip(owner);
        identity.is_some_and(|(known, owner)| known.is_same_process(owner))
    });
    known?.worked_at_ms
}

/// Records which session the process has taken up, or which has ended in it.
fn note(
    history: Option<&HistoryFile>,
    files: &SessionFiles,
    event: &LoggedEvent,
    what: HistoryEvent,
) -> Result<(), TrackError> {
    let Some((history, owner)) = history.zip(event.owner.clone()) else {
        return Ok(());
    };
    history.note(&HistoryLine {
        at_ms: event.at_ms,
        what,
        agent: files.agent.clone(),
        session: files.session.clone(),
        home: event.home.clone(),
        owner,
    })
}

fn logged(
    event: HookEvent,
    owner: FoundOwner,
    home: PathBuf,
    world: &HookWorld,
    mounts: &Mounts,
) -> LoggedEvent {
    let (owner, cpu_ms, chain) = match owner {
        FoundOwner::Owner {
            owner,
            cpu_ms,
            chain,
        } => (Some(owner), cpu_ms, chain),
        FoundOwner::NotFound(_) => (None, None, Vec::new()),
    };
    let is_beginning = matches!(
        event.kind,
        EventKind::SessionStarted(_) | EventKind::TurnStarted
    );
    let git_branch = event
        .work_dir
        .as_ref()
        .filter(|_| is_beginning)
        .and_then(|directory| branch_of(directory, mounts));
    let prompt = event.prompt.filter(|_| world.prompts == Prompts::Keep);
    let is_shared = owner.as_ref().is_some_and(|owner| owner.is_shared);
    let is_end = event.kind == EventKind::SessionEnded;
    let owner_at_end = owner.as_ref().filter(|_| is_end);
    let is_closed = owner_at_end.is_some_and(|owner| was_closed(world.backend.as_ref(), owner));
    let end_cause = match is_closed {
        true => EndCause::TerminalClosed,
        false => EndCause::ExitHook,
    };
    LoggedEvent {
        id: format!("{}-{}", world.hook, unique(world)),
        at_ms: world.now_ms,
        kind: event.kind,
        home,
        git_branch,
        work_dir: event.work_dir,
        transcript: event.transcript,
        prompt: prompt.map(|prompt| prompt.chars().take(PROMPT_CHARS_MAX).collect()),
        reason: event.reason,
        // A shared process has the variables of the terminal that happened to start it.
        pane: pane(&world.environment).filter(|_| !is_shared),
        owner,
        chain,
        has_left: false,
        cpu_ms,
        is_aftermath: world.is_aftermath,
        end: is_end.then_some(LoggedEnd {
            cause: end_cause,
            ended_at_ms: world.now_ms,
        }),
    }
}

/// Distinguishes events of one PID: the start of the hook, and when it was heard.
fn unique(world: &HookWorld) -> String {
    let stamp = world.backend.probe(world.hook).ok().flatten();
    let stamp = stamp
        .map(|process| process.stamp.to_string())
        .unwrap_or_default();
    format!("{stamp}-{}", world.now_ms)
}

/// The agent's home: the one that the transcript is in, if there are several.
fn home(adapter: &dyn Adapter, transcript: Option<&PathBuf>, world: &HookWorld) -> PathBuf {
    let homes = adapter.homes(&world.environment);
    let is_around = |home: &&PathBuf| transcript.is_some_and(|path| path.starts_with(home));
    let found = homes.iter().find(is_around).or_else(|| homes.first());
    found.cloned().unwrap_or_default()
}

fn pane(environment: &Environment) -> Option<PaneHint> {
    let text = |name| Some(environment.variable(name)?.to_str()?.to_owned());
    Some(PaneHint {
        tmux: text("TMUX")?,
        pane: text("TMUX_PANE")?,
    })
}
