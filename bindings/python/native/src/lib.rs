//! What reads sessions, for Python: questions in, documents of
//! [`whosup_core::views::reader`] out, as JSON. The package `whosup` gives them types.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyType;
use serde::Serialize;
use whosup_core::machine::Environment;
use whosup_core::views::reader::{self, IdQuery, ListQuery, ReadError, Wish, in_full};

/// The extension module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(list_sessions, module)?)?;
    module.add_function(wrap_pyfunction!(session, module)?)?;
    module.add_function(wrap_pyfunction!(is_live, module)?)?;
    module.add_function(wrap_pyfunction!(why, module)?)?;
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
fn is_live(py: Python<'_>, id: String, home: Option<PathBuf>) -> PyResult<String> {
    ask(py, || reader::is_live(&IdQuery { id, home }))
}

#[pyfunction]
fn why(py: Python<'_>, id: String, home: Option<PathBuf>) -> PyResult<String> {
    ask(py, || reader::why(&IdQuery { id, home }))
}

/// Asks while other threads run, and gives the answer as JSON.
fn ask<T: Serialize + Send>(
    py: Python<'_>,
    question: impl FnOnce() -> Result<T, ReadError> + Send,
) -> PyResult<String> {
    let answer = py.detach(|| match question() {
        Ok(answer) => serde_json::to_string(&answer).map_err(|error| error.to_string()),
        Err(error) => Err(in_full(&error)),
    });
    answer.map_err(|text| read_error(py, text))
}

/// The exception that the package knows, also where this module is missing.
fn read_error(py: Python<'_>, text: String) -> PyErr {
    let class = py
        .import("whosup._error")
        .and_then(|module| module.getattr("ReadError"))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, text),
        Err(error) => error,
    }
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
