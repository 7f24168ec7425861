//! Which processes without a claim may be serving a session.

use whosup_process::Pid;
use whosup_sidecar::SessionId;

use super::{process, transcript};
use crate::adapter::{AgentProcess, Clue, ClueKind};

/// The birth and last use of a session, by its records.
pub(super) struct Dates {
    pub(super) birth: transcript::Birth,
    pub(super) last_record_at_ms: Option<i64>,
    /// The latest possible date of a record, if the end of the file is missing.
    pub(super) perhaps_until_ms: Option<i64>,
    /// Some of the prompts; empty if the caller needs none.
    pub(super) prompts: Vec<String>,
}

/// How a process without a claim may be serving a session.
pub(super) struct Fit {
    pub(super) pid: Pid,
    /// Its arguments name the session.
    pub(super) is_named: bool,
    /// It may have resumed a session that another process left behind.
    pub(super) may_have_taken_up: bool,
    /// It runs without a person at a terminal.
    pub(super) is_headless: bool,
}

impl Fit {
    /// The runs that were asked something else, or before.
    pub(super) fn others(seekers: &[&AgentProcess], fits: &[Self]) -> Vec<Clue> {
        let is_other = |process: &&&AgentProcess| {
            process::PROGRAMS.is_headless(&process.program())
                && fits.iter().all(|fit| fit.pid != process.process.pid)
        };
        let pids = seekers
            .iter()
            .filter(is_other)
            .map(|seeker| seeker.process.pid);
        let clue = |pid| {
            let says = format!("process {pid} was asked something else");
            Clue::new(pid, ClueKind::Untouched, says)
        };
        pids.map(clue).collect()
    }

    /// `None` if the process cannot be serving it: the arguments do not name the session,
    /// and it was neither born nor used after the process began, or it does not contain the
    /// prompt in the arguments.
    pub(super) fn of(seeker: &AgentProcess, session: &SessionId, dates: &Dates) -> Option<Self> {
        let program = seeker.program();
        let is_named = seeker.names(session);
        let latest = dates.last_record_at_ms.max(dates.perhaps_until_ms);
        let is_of_its_time = seeker.had_begun_at_one_of([dates.birth.born_at_ms, latest]);
        let may_have_taken_up = is_named || process::PROGRAMS.continues(&program);
        let asked = process::plain_prompt(&program);
        let was_asked = |asked: &str| {
            let mut prompts = dates.prompts.iter();
            prompts.any(|prompt| prompt.contains(asked.trim()))
        };
        let is_missing = asked.is_some_and(|asked| !was_asked(asked));
        let is_other = is_missing && !dates.prompts.is_empty();
        // Later prompts of the process may be missing with the end.
        let may_lack_it = dates.perhaps_until_ms.is_some() && (may_have_taken_up || !is_other);
        let is_asked_other = is_other && !may_lack_it;
        (is_named || (is_of_its_time && !is_asked_other)).then(|| Self {
            pid: seeker.process.pid,
            is_named,
            may_have_taken_up,
            is_headless: process::PROGRAMS.is_headless(&program) || seeker.process.tty.is_none(),
        })
    }
}
