//! What reads and watches sessions, for Python: questions in, answers of
//! [`whosup_core::reader`] and changes out, as JSON of [`WireReply`]. The package `whosup` gives them types and raises the errors.

#[cfg(unix)]
mod bell;
#[cfg(unix)]
mod live;

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::Environment;
use whosup_core::reader::{self, IdQuery, ListQuery, ReadError, Wish};
use whosup_core::views::wire::WireReply;

/// The extension module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(list_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(session, module)?)?;
    module.add_function(wrap_pyfunction!(liveness, module)?)?;
    module.add_function(wrap_pyfunction!(why, module)?)?;
    #[cfg(unix)]
    live::add(module)?;
    #[cfg(feature = "testing")]
    testing::add(module)?;
    Ok(())
}

#[pyfunction]
fn list_sessions(
    py: Python<'_>,
    is_all: bool,
    agents: Vec<String>,
    cwd: Option<PathBuf>,
) -> PyResult<String> {
    let wish = Wish {
        is_all,
        work_dir: cwd,
        ..Wish::default()
    };
    let query = ListQuery {
        wish,
        ..ListQuery::default()
    };
    ask(py, || {
        let query = query.of_agents(&agents, &Environment::here())?;
        reader::list_sessions(&query)
    })
}

#[pyfunction]
fn session(py: Python<'_>, id: String, home: Option<PathBuf>) -> PyResult<String> {
    ask(py, || reader::session(&IdQuery { id, home }))
}

#[pyfunction]
fn liveness(py: Python<'_>, id: String, home: Option<PathBuf>) -> PyResult<String> {
    ask(py, || {
        let liveness = reader::liveness(&IdQuery { id, home })?;
        Ok(liveness.map_or("none", Liveness::name))
    })
}

#[pyfunction]
fn why(py: Python<'_>, id: String, home: Option<PathBuf>) -> PyResult<String> {
    ask(py, || reader::why(&IdQuery { id, home }))
}

/// Asks while other threads run.
fn ask<T: Serialize>(
    py: Python<'_>,
    question: impl FnOnce() -> Result<T, ReadError> + Send,
) -> PyResult<String> {
    let reply = py.detach(|| serde_json::to_string(&WireReply::from(question())));
    reply.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

#[cfg(feature = "testing")]
mod testing {
    use std::path::PathBuf;

    use pyo3::prelude::*;

    /// Adds what only tests call.
    pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add_function(wrap_pyfunction!(answer_to_fixture, module)?)?;
        module.add_function(wrap_pyfunction!(answer_to_vector, module)?)
    }

    #[pyfunction]
    fn answer_to_fixture(folder: PathBuf) -> String {
        whosup_worlds::answer_to_fixture(&folder)
    }

    #[pyfunction]
    fn answer_to_vector(vector: &str) -> Option<String> {
        whosup_worlds::answer_to_vector(vector)
    }
}
