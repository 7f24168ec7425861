//! Watching and waiting. Nothing here polls: the engine waits in a thread of its own, and
//! rings a [`Bell`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use whosup_core::reader::IdQuery;
use whosup_live::{
    Engine, Filter, ThisMachine, Until, Wait, Waiting, WatchError, Watched, Whom, failed,
};

use crate::bell::Bell;

/// Adds what watches.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Live>()?;
    module.add_function(wrap_pyfunction!(watch, module)?)?;
    module.add_function(wrap_pyfunction!(wait, module)?)
}

/// Something that is watched. It ends when it is closed or dropped.
#[pyclass(frozen, module = "whosup._native")]
struct Live {
    watched: Mutex<Option<Watched>>,
    bell: Bell,
    is_closed: AtomicBool,
}

/// What is watched, or a reply in JSON that says why it can't be.
type Begun = (Option<Live>, Option<String>);

#[pyfunction]
fn watch(py: Python<'_>, agents: Vec<String>, cwd: Option<PathBuf>) -> PyResult<Begun> {
    begin(py, || {
        let filter = Filter::of(&agents, cwd.as_deref())?;
        let engine = Engine::start(ThisMachine::default())?;
        Ok(Watched::Changes(engine.subscribe(filter, None), engine))
    })
}

#[pyfunction]
fn wait(
    py: Python<'_>,
    id: Option<String>,
    home: Option<PathBuf>,
    until: &str,
    is_next: bool,
    agents: Vec<String>,
    cwd: Option<PathBuf>,
) -> PyResult<Begun> {
    let known = Until::from_name(until);
    let until = known.ok_or_else(|| PyValueError::new_err(Until::names().join(", ")))?;
    begin(py, || {
        let wait = Wait {
            whom: id.map_or(Whom::Any, |id| Whom::One(IdQuery { id, home })),
            until,
            is_next,
            filter: Filter::of(&agents, cwd.as_deref())?,
        };
        Ok(Watched::Waiting(Box::new(Waiting::begin(
            ThisMachine::default(),
            wait,
        )?)))
    })
}

fn begin(
    py: Python<'_>,
    watched: impl FnOnce() -> Result<Watched, WatchError> + Send,
) -> PyResult<Begun> {
    let watched = match py.detach(watched) {
        Ok(watched) => watched,
        Err(error) => return Ok((None, Some(failed(&error)))),
    };
    let bell = Bell::new()?;
    watched.engine().on_change(bell.ringer()?);
    let live = Live {
        watched: Mutex::new(Some(watched)),
        bell,
        is_closed: AtomicBool::new(false),
    };
    Ok((Some(live), None))
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        // What is taken from it is whole after a panic too.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Live {
    /// What there is to read, as a reply in JSON; `None` if there is nothing.
    fn take(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| {
            self.bell.silence();
            self.lock().as_mut()?.take()
        })
    }

    /// Waits until there may be something to read. Returns whether there may be.
    #[pyo3(signature = (timeout_s=None))]
    fn ring(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<bool> {
        let timeout = timeout_s.map(|timeout| Duration::try_from_secs_f64(timeout.max(0.0)));
        let timeout = timeout.transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.bell.wait(py, timeout)
    }

    /// What an event loop waits for instead.
    fn fileno(&self) -> i32 {
        self.bell.descriptor()
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Ends it, and its thread. Whoever waits for it hears that.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Relaxed);
        py.detach(|| {
            let watched = self.lock().take();
            self.bell.ring();
            drop(watched);
        });
    }
}
