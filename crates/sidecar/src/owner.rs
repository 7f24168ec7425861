//! The writer: one handle that announces which session its process serves.

mod announced;
mod claim;
mod disk;
mod error;
mod format;
mod identity;
mod lock;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use whosup_process::Pid;

use self::claim::{Written, clear_left_overs, make_claim};
use self::identity::Identity;
use self::lock::lock;

pub use announced::{Agent, Phase, Place, Session, WaitingFor};
pub use claim::is_sidecar_name;
pub use error::WriteError;

/// Announces which session a process serves, by a sidecar.
///
/// ```
/// use whosup_sidecar::{Agent, Owner, Phase, Place, Session};
///
/// # let directory = std::env::temp_dir().join(format!("whosup-doc-{}", std::process::id()));
/// # let place = Place::Directory(directory.clone());
/// let agent = Agent::new("my-agent")?.version("1.2.0");
/// let session = Session::new("s1", "/home/dev/app")?;
/// # let session = session.place(place.clone())?;
/// let owner = Owner::establish(agent, session)?;
/// owner.update(Phase::Working)?;
/// # let next = Session::new("s2", "/home/dev/app")?.place(place)?;
/// # owner.switch_session(next)?;
/// owner.release()?;
/// # std::fs::remove_dir(directory).ok();
/// # Ok::<(), whosup_sidecar::WriteError>(())
/// ```
///
/// A process has one handle for each session that it serves at once, and every thread
/// may use it: calls take effect one after the other, each wholly before it returns. A
/// process that never serves more than one announces that with [`Agent::serves`].
///
/// What is at the path is always a whole sidecar, and it is never missing between
/// [`Owner::establish`] and [`Owner::release`]; in a switch the new file is there before
/// the old one goes.
///
/// Nothing of another process's is overwritten or removed, unless that process
/// is provably gone: while one lives, or may live, that serves the same session,
/// the claim is made beside its own, as `ID.claim-HEX.runtime.json`.
///
/// An error affects only the sidecar. An agent notes it and continues; the next call
/// tries again.
///
/// Dropping the handle, and the end of the process in whatever way, leave the
/// file where it is. No exit handler runs on a SIGKILL, so readers judge by the
/// process anyway; and the file that is left shows which session ended without
/// a release. An agent that ends a session on purpose calls [`Owner::release`].
///
/// After a `fork` the parent owns the session: in the child every call is
/// refused, and it establishes a session of its own. After an `exec` the same
/// process takes its file up again by establishing the same session; a session
/// that it serves no longer should be released before.
#[derive(Debug)]
pub struct Owner {
    agent: Agent,
    identity: Arc<Identity>,
    /// The process that made this handle.
    maker: u32,
    state: Mutex<State>,
}

/// What is announced now.
#[derive(Debug)]
struct State {
    session: Session,
    phase: Option<Phase>,
    started_at_ms: i64,
    /// Our file, unless it could not be written.
    written: Option<Written>,
    /// The file does not contain yet what is announced.
    is_behind: bool,
    /// Files of sessions that we left, which could not be removed yet.
    left: Vec<Written>,
    is_released: bool,
}

impl Owner {
    /// Announces that this process serves a session from now on.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the sidecar could not be written; then nothing was changed.
    pub fn establish(agent: Agent, session: Session) -> Result<Self, WriteError> {
        Self::establish_as(Identity::own(), agent, session)
    }

    /// Announces that another process serves a session from now on: a child of
    /// this one that does not announce itself.
    ///
    /// # Errors
    ///
    /// [`WriteError::NoSuchProcess`] if the process does not exist, and as in
    /// [`Owner::establish`].
    pub fn establish_for(pid: Pid, agent: Agent, session: Session) -> Result<Self, WriteError> {
        Self::establish_as(Identity::of(pid)?, agent, session)
    }

    fn establish_as(
        identity: Arc<Identity>,
        agent: Agent,
        session: Session,
    ) -> Result<Self, WriteError> {
        let owner = Self {
            agent,
            identity,
            maker: std::process::id(),
            state: Mutex::new(State {
                session,
                phase: None,
                started_at_ms: now_ms(),
                written: None,
                is_behind: true,
                left: Vec::new(),
                is_released: false,
            }),
        };
        let mut state = lock(&owner.state);
        owner.write_new(&mut state)?;
        if let Some(written) = &state.written {
            clear_left_overs(written, &state.session);
        }
        drop(state);
        Ok(owner)
    }

    /// Announces that the process has left its session for another one.
    ///
    /// The new file is written, then the old one removed: only our own one, and
    /// only if it is still as we wrote it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if one of the two failed. The process serves the new
    /// session all the same, so the old file goes in any case, and the next
    /// call writes what is missing.
    pub fn switch_session(&self, session: Session) -> Result<(), WriteError> {
        let mut state = self.open()?;
        let old_place = self.place_of(&state.session)?;
        let new_place = self.place_of(&session)?;
        let is_other_session = state.session.id != session.id;
        state.session = session;
        state.phase = None;
        state.started_at_ms = now_ms();
        state.is_behind = true;
        if !is_other_session && old_place == new_place {
            self.write(&mut state)?;
        } else {
            let old = state.written.take();
            let written = self.write_new(&mut state);
            state.left.extend(old);
            remove_left(&mut state)?;
            written?;
        }
        remove_left(&mut state)
    }

    /// Announces what the conversation is doing. The same phase again costs nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the sidecar could not be written; the old one is there still.
    pub fn update(&self, phase: Phase) -> Result<(), WriteError> {
        let mut state = self.open()?;
        state.is_behind |= state.phase != Some(phase);
        state.phase = Some(phase);
        if state.is_behind {
            self.write(&mut state)?;
        }
        remove_left(&mut state)
    }

    /// Announces that the process serves its session no longer: its file goes,
    /// and nothing is written by this handle any more. A second call only
    /// tries again what the first one could not remove.
    ///
    /// # Errors
    ///
    /// [`WriteError::Remove`] if the file could not be removed.
    pub fn release(&self) -> Result<(), WriteError> {
        self.require_maker()?;
        let mut state = lock(&self.state);
        state.is_released = true;
        let written = state.written.take();
        state.left.extend(written);
        remove_left(&mut state)
    }

    /// Where the sidecar is; `None` after a release, or if it could not be written.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.require_maker().ok()?;
        let state = lock(&self.state);
        state.written.as_ref().map(|written| written.path.clone())
    }

    /// The state, unless this handle may no longer write.
    fn open(&self) -> Result<std::sync::MutexGuard<'_, State>, WriteError> {
        self.require_maker()?;
        let state = lock(&self.state);
        if state.is_released {
            return Err(WriteError::Released);
        }
        Ok(state)
    }

    /// Asked before any lock: a forked child may have inherited it locked.
    fn require_maker(&self) -> Result<(), WriteError> {
        let this = std::process::id();
        if this == self.maker {
            return Ok(());
        }
        Err(WriteError::Forked {
            owner: self.maker,
            this,
        })
    }

    fn place_of(&self, session: &Session) -> Result<(PathBuf, String), WriteError> {
        session.place.of(&self.agent.id, &session.id)
    }

    fn bytes(&self, state: &State) -> Result<Vec<u8>, WriteError> {
        format::sidecar_bytes(
            &self.agent,
            &self.identity,
            &state.session,
            state.phase,
            state.started_at_ms,
        )
    }

    /// Writes what is announced, in place of what we wrote before.
    fn write(&self, state: &mut State) -> Result<(), WriteError> {
        let bytes = self.bytes(state)?;
        match &mut state.written {
            Some(written) if written.is_in_place() => {
                let path = &written.path;
                disk::replace(path, &bytes).map_err(|source| WriteError::Write {
                    path: path.clone(),
                    source,
                })?;
                written.bytes = bytes;
                state.is_behind = false;
                Ok(())
            }
            // Another process has removed it, or written over it.
            _ => {
                let lost = state.written.take();
                let written = self.write_new(state);
                if let Some(lost) = lost {
                    lost.forget();
                }
                written
            }
        }
    }

    /// Writes what is announced where nothing of ours is yet.
    fn write_new(&self, state: &mut State) -> Result<(), WriteError> {
        let (directory, name) = self.place_of(&state.session)?;
        let bytes = self.bytes(state)?;
        let levels = state.session.place.levels_of_ours();
        disk::make_directory(&directory, levels).map_err(|source| WriteError::Directory {
            path: directory.clone(),
            source,
        })?;
        let made = make_claim((&directory, &name), &state.session, &self.identity, bytes);
        let written = made.map_err(|source| WriteError::Write {
            path: directory.join(&name),
            source,
        })?;
        state.written = Some(written);
        state.is_behind = false;
        Ok(())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.require_maker().is_err() {
            return;
        }
        if let Some(written) = &lock(&self.state).written {
            written.forget();
        }
    }
}

/// Removes the files of sessions that we left; what can't be removed is kept
/// for the next call.
fn remove_left(state: &mut State) -> Result<(), WriteError> {
    let mut first_failure = None;
    state.left.retain(|written| match written.remove() {
        Ok(()) => false,
        Err(source) => {
            first_failure.get_or_insert(WriteError::Remove {
                path: written.path.clone(),
                source,
            });
            true
        }
    });
    first_failure.map_or(Ok(()), Err)
}

fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
