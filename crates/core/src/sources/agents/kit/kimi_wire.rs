//! What kimi-cli and its successor Kimi Code have in common: a wire file, in which the
//! engine records what it reports to the interface. The two name their records
//! differently.

use std::path::{Path, PathBuf};

use serde_json::Value;
use whosup_sidecar::AgentId;

use crate::adapter::phase::Phase;
use crate::adapter::{Description, Sketch};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::dialect::{Dialect, TokenCount, count_at};
use crate::sources::agents::kit::prompt::Wrapping;

/// The file in a session's directory that has the title.
pub(crate) const STATE: &str = "state.json";

/// Texts that both agents put in place of a prompt.
pub(crate) const WRAPPING: Wrapping = Wrapping {
    elements: &["kimi-", "notification", "system"],
    notices: &[],
};

/// The description of a session without a transcript: it waits for its first prompt.
pub(crate) fn of_untouched() -> Description {
    Description {
        phase: Some(Phase::Idle),
        ..Description::default()
    }
}

/// Where the files of a session are, and how they read.
pub(crate) struct SessionFiles {
    pub(crate) agent: AgentId,
    pub(crate) dialect: &'static Dialect,
    /// Where the wire file is in the session's directory.
    pub(crate) wire: &'static str,
    /// The name of the folder that has the sessions of a directory.
    pub(crate) folder_of: fn(&Path) -> Option<String>,
}

impl SessionFiles {
    /// Describes a session by its wire file. `add_state` adds what its state file shows, or
    /// returns why that can't be read.
    pub(crate) fn describe(
        &self,
        sketch: &Sketch,
        add_state: impl FnOnce(&Path, &mut Description) -> Result<(), String>,
    ) -> Found<Description> {
        let Some(directory) = self.directory_of(sketch) else {
            return Found::default();
        };
        let wire = directory.join(self.wire);
        let described = self.dialect.describe(&self.agent, &wire);
        let mut described = described.unwrap_or_else(|| Found::clean(of_untouched()));
        let state = directory.join(STATE);
        if let Err(why) = add_state(&state, &mut described.found) {
            let problem = Problem::at(&self.agent, &state, why);
            described.problems.push(problem);
        }
        described
    }

    /// The directory of a session: above its transcript, or, before there is one, by where
    /// it works.
    fn directory_of(&self, sketch: &Sketch) -> Option<PathBuf> {
        if let Some(transcript) = &sketch.transcript {
            let depth = Path::new(self.wire).components().count();
            return transcript.ancestors().nth(depth).map(Path::to_owned);
        }
        let folder = (self.folder_of)(sketch.work_dir.as_deref()?)?;
        let sessions = sketch.key.home.join("sessions");
        Some(sessions.join(folder).join(sketch.key.session.as_str()))
    }
}

/// The tokens of a request, by the names of their counts.
pub(crate) fn tokens_in(usage: &Value, names: [&str; 4]) -> TokenCount {
    let [input, cached_input, cache_writes, output] = names.map(|name| count_at(usage, name));
    TokenCount {
        input,
        cached_input,
        cache_writes,
        output,
        ..TokenCount::default()
    }
}
