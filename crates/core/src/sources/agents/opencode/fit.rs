//! Which processes may be serving a session, by arguments, directories and dates.

use super::process::continues_last;
use super::session::Row;
use crate::adapter::AgentProcess;
use crate::machine::composed::composed;
use crate::machine::mounts::Mounts;

/// How much older than its process a session may look and still be its own, in
/// milliseconds, as in the solver.
const ROUNDING_MS: i64 = 250;
/// How long ago a session may have been used last to be resumed by `--continue`, in
/// milliseconds: thirty days, less a day for scans close to the limit.
const CONTINUED_MS_MAX: i64 = 29 * 24 * 60 * 60 * 1_000;

/// Where directories really are, in one Unicode form.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealPaths<'a>(pub(super) &'a Mounts);

impl RealPaths<'_> {
    /// The session is one of the process's directory.
    pub(super) fn are_beside(self, process: &AgentProcess, row: &Row) -> bool {
        row.directory.as_ref().is_some_and(|directory| {
            let real = self.0.real_path(directory);
            let mut own = process.work_dirs();
            own.any(|own| real == composed(own.to_owned()) || directory == own)
        })
    }
}

/// The session was born, or got a message, since the process began.
pub(super) fn is_since(process: &AgentProcess, row: &Row) -> bool {
    let began = process.process.began_ms();
    began.is_some_and(|began| row.used_at_ms() >= Some(began.saturating_sub(ROUNDING_MS)))
}

/// The process's arguments name the session.
pub(super) fn is_named(process: &AgentProcess, row: &Row) -> bool {
    process.named_session() == Some(row.id.as_str())
}

/// The session that a process started with `--continue` resumed: of the process's directory
/// and those below, the session that changed last before the process began. `None` if one of
/// them was changed since, because the order then is no longer known.
pub(super) fn continued<'a>(
    process: &AgentProcess,
    rows: &'a [Row],
    real: RealPaths<'_>,
) -> Option<&'a Row> {
    if !continues_last(process.adapter.profile().programs, &process.program()) {
        return None;
    }
    let began = process.process.began_ms()?;
    let work_dir = composed(process.work_dir()?.to_owned());
    let was_there = |row: &&Row| {
        let is_below = row.directory.as_deref().is_some_and(|directory| {
            directory.starts_with(&work_dir) || real.0.real_path(directory).starts_with(&work_dir)
        });
        is_below && row.parent.is_none() && row.created_at_ms.is_none_or(|at| at < began)
    };
    let there: Vec<&Row> = rows.iter().filter(was_there).collect();
    let newest = there.iter().copied().max_by_key(|row| row.updated_at_ms)?;
    let updated = newest.updated_at_ms?;
    let is_newest = |row: &&&Row| row.updated_at_ms == Some(updated);
    let is_tie = there.iter().filter(is_newest).count() > 1;
    let is_recent = began.saturating_sub(updated) < CONTINUED_MS_MAX;
    // A session below may belong to another project, in which opencode would not offer it.
    let is_here = real.are_beside(process, newest);
    let is_certain = updated < began && !is_tie && is_recent && is_here && !newest.is_archived;
    is_certain.then_some(newest)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use whosup_process::RecordedProcess;
    use whosup_sidecar::SessionId;

    use super::*;
    use crate::adapter::Role;
    use crate::sources::agents::opencode::OPENCODE;

    const T: i64 = 1_795_813_200_000;

    fn process(args: &[&str]) -> AgentProcess {
        let argv: Vec<&str> = std::iter::once("opencode")
            .chain(args.iter().copied())
            .collect();
        let mut made = RecordedProcess::new(7, 1_000, T)
            .exe("/bin/opencode")
            .argv(&argv);
        made.details.cwd = Ok(PathBuf::from("/w/app"));
        AgentProcess {
            agent: OPENCODE.0.id(),
            adapter: &OPENCODE,
            process: made.process,
            details: Arc::new(made.details),
            role: Role::Session,
            homes: Vec::new(),
            launched_in: crate::adapter::LaunchedIn::There,
        }
    }

    fn row(id: &str, directory: &str, created: i64, updated: i64) -> Row {
        Row {
            id: SessionId::parse(id).expect("an id"),
            parent: None,
            directory: Some(PathBuf::from(directory)),
            title: None,
            version: None,
            model: None,
            created_at_ms: Some(T + created),
            updated_at_ms: Some(T + updated),
            last_message_at_ms: None,
            is_archived: false,
            database: 0,
        }
    }

    fn before() -> Vec<Row> {
        vec![
            row("ses_1", "/w/app", -90_000, -50_000),
            row("ses_2", "/w/app", -80_000, -60_000),
            row("ses_3", "/w/other", -80_000, -1_000),
        ]
    }

    fn continued<'a>(process: &AgentProcess, rows: &'a [Row]) -> Option<&'a Row> {
        super::continued(process, rows, RealPaths(&Mounts::of_this_machine()))
    }

    #[track_caller]
    fn check(rows: &[Row], right: Option<&str>) {
        let found = continued(&process(&["-c"]), rows);
        assert_eq!(found.map(|row| row.id.as_str()), right);
    }

    #[test]
    fn continue_takes_up_what_was_used_last_before_it() {
        check(&before(), Some("ses_1"));
        assert!(continued(&process(&[]), &before()).is_none());
        assert!(continued(&process(&["-c", "--fork"]), &before()).is_none());
        // Sub-agents and sessions that were made since were not offered.
        let mut rows = before();
        rows.push(row("ses_4", "/w/app", 5_000, 9_000));
        let mut child = row("ses_5", "/w/app", -9_000, -8_000);
        child.parent = Some(SessionId::parse("ses_1").expect("an id"));
        rows.push(child);
        check(&rows, Some("ses_1"));
    }

    #[test]
    fn what_continue_resumed_is_unknown_once_something_changed() {
        let mut changed = before();
        changed[1].updated_at_ms = Some(T + 1_000);
        check(&changed, None);
        let mut tie = before();
        tie[1].updated_at_ms = tie[0].updated_at_ms;
        check(&tie, None);
        let mut below = before();
        below.push(row("ses_4", "/w/app/vendor", -9_000, -8_000));
        check(&below, None);
        let mut archived = before();
        archived[0].is_archived = true;
        check(&archived, None);
        let mut old = before();
        old.truncate(1);
        old[0].updated_at_ms = Some(T - 40 * 24 * 3_600_000);
        check(&old, None);
    }

    #[test]
    fn a_session_is_of_a_process_s_time_if_something_was_said_since() {
        let process = process(&["-s", "ses_1"]);
        assert!(is_since(&process, &row("ses_2", "/w", 0, 0)));
        let mut renewed = row("ses_1", "/w", -9_000, 9_000);
        // It was renamed, or its project was found.
        assert!(!is_since(&process, &renewed));
        renewed.last_message_at_ms = Some(T + 1);
        assert!(is_since(&process, &renewed));
        assert!(is_named(&process, &renewed));
        assert!(!is_named(&process, &row("ses_12", "/w", 0, 0)));
    }
}
