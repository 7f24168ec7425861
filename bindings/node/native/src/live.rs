//! Watching and waiting. Nothing here polls: the engine waits in a thread of its own, and calls
//! a function of JavaScript when there is something to read.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::AsyncTask;
use napi::threadsafe_function::{
    ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue,
};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use whosup_core::reader::IdQuery;
use whosup_live::{
    Engine, Filter, ThisMachine, Until, Wait, Waiting, WatchError, Watched, Whom, failed,
};

/// A function of JavaScript that is called in its own thread when there is something to read.
type Bell = ThreadsafeFunction<(), UnknownReturnValue, (), Status, false>;

/// Something that is watched. It ends when it is closed.
#[napi]
#[derive(Default)]
pub struct Live {
    watched: Mutex<Option<Watched>>,
    /// Why it can't be watched, as a reply in JSON.
    failed: Option<String>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        // What is taken from it is whole after a panic too.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[napi]
impl Live {
    /// What there is to read, as a reply in JSON; `None` if there is nothing.
    #[napi]
    pub fn take(&self) -> Option<String> {
        if let Some(failed) = &self.failed {
            return Some(failed.clone());
        }
        self.lock().as_mut()?.take()
    }

    /// Ends it, and its thread; the event loop no longer waits for it.
    #[napi]
    pub fn close(&self) {
        let watched = self.lock().take();
        drop(watched);
    }
}

/// Begins to watch, in a thread beside the event loop.
pub struct Beginning {
    asked: Option<Asked>,
    bell: Option<Bell>,
}

impl std::fmt::Debug for Beginning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beginning").finish_non_exhaustive()
    }
}

struct Asked {
    agents: Vec<String>,
    directory: Option<PathBuf>,
    wait: Option<(Whom, Until, bool)>,
}

impl Asked {
    fn begin(self) -> std::result::Result<Watched, WatchError> {
        let filter = Filter::of(&self.agents, self.directory.as_deref())?;
        let Some((whom, until, is_next)) = self.wait else {
            let engine = Engine::start(ThisMachine::default())?;
            return Ok(Watched::Changes(engine.subscribe(filter, None), engine));
        };
        let wait = Wait {
            whom,
            until,
            is_next,
            filter,
        };
        Ok(Watched::Waiting(Box::new(Waiting::begin(
            ThisMachine::default(),
            wait,
        )?)))
    }
}

impl Task for Beginning {
    type Output = Live;
    type JsValue = Live;

    fn compute(&mut self) -> Result<Live> {
        let (Some(asked), Some(bell)) = (self.asked.take(), self.bell.take()) else {
            return Ok(Live::default());
        };
        let live = match asked.begin() {
            Ok(watched) => {
                watched.engine().on_change(move || {
                    // Whoever is gone needs to hear of nothing.
                    bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
                });
                Live {
                    watched: Mutex::new(Some(watched)),
                    failed: None,
                }
            }
            Err(error) => Live {
                failed: Some(failed(&error)),
                ..Live::default()
            },
        };
        Ok(live)
    }

    fn resolve(&mut self, _env: Env, live: Live) -> Result<Live> {
        Ok(live)
    }
}

/// Watches changes; `bell` is called when there are more.
#[napi]
pub fn watch(bell: Bell, agents: Vec<String>, cwd: Option<String>) -> AsyncTask<Beginning> {
    beginning(bell, agents, cwd, None)
}

/// Waits; `bell` is called when what is waited for may have come.
///
/// # Errors
///
/// If `until` is nothing that can be waited for.
#[napi]
pub fn wait(
    bell: Bell,
    until: String,
    is_next: bool,
    id: Option<String>,
    home: Option<String>,
    agents: Vec<String>,
    cwd: Option<String>,
) -> Result<AsyncTask<Beginning>> {
    let known = Until::from_name(&until);
    let known = known.ok_or_else(|| {
        let names = Until::names().join(", ");
        Error::from_reason(format!("`until` is one of {names}"))
    })?;
    let whom = id.map_or(Whom::Any, |id| {
        Whom::One(IdQuery {
            id,
            home: home.map(PathBuf::from),
        })
    });
    Ok(beginning(bell, agents, cwd, Some((whom, known, is_next))))
}

fn beginning(
    bell: Bell,
    agents: Vec<String>,
    cwd: Option<String>,
    wait: Option<(Whom, Until, bool)>,
) -> AsyncTask<Beginning> {
    AsyncTask::new(Beginning {
        asked: Some(Asked {
            agents,
            directory: cwd.map(PathBuf::from),
            wait,
        }),
        bell: Some(bell),
    })
}
