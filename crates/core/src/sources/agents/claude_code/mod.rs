//! Claude Code.
//!
//! What it leaves below its home (`CLAUDE_CONFIG_DIR`, `~/.claude`). Seen in
//! Claude Code 2.1.197 and 2.1.332, 2026-11; what is marked *read* was read in the
//! program and not exercised.
//!
//! | File | Written | Says | After the end |
//! |---|---|---|---|
//! | `sessions/PID.json` | half a second to three after launch, before any prompt | PID, start, session, directory, kind; what it is doing | removed; **stays after SIGKILL**, until the next start |
//! | `sessions/PID.HASH.key`, `….key.tmp.HEX` | just before the record (2.1.332) | a token: never read here | as the record |
//! | `projects/ENCODED/SESSION.jsonl` | at the first prompt; by `/clear` at once | the conversation | stays |
//! | `projects/ENCODED/SESSION/custom-title.json` | by `/rename` (2.1.332) | the title | stays |
//! | `projects/ENCODED/SESSION/subagents/agent-ID.jsonl`, `.meta.json` | when a sub-agent starts | its conversation | stays |
//! | `daemon/roster.json` | by `--bg` | workers (`pid` is the terminal host, `replPid` in 2.1.332 the session), and tokens: never read here | stays |
//!
//! - The record is written without a rename, so that a reader may see it cut off.
//!   `/clear`, `/resume` and `--continue` change its `sessionId` in place and leave
//!   its dates as they are. A clean exit, SIGTERM and SIGHUP remove it.
//! - `--continue` begins with a throw-away session id, for a third of a second.
//!   Nothing ever happens under it. The same is true of `--resume` without an
//!   id, while it lets a person choose (*read*).
//! - `-p` has a record without `status` for its whole life in 2.1.197, and with one in
//!   2.1.332; recognize it by `entrypoint`, not by `kind` or `status`.
//! - `pidDomain` names the PID namespace of `pid` (2.1.332).
//! - An interrupted turn or question makes `status` idle within a tenth of a second;
//!   no hook reports it. Where nothing was answered yet, the transcript does not
//!   either: its last line is the prompt (2.1.332).
//! - `ENCODED` is the directory with everything but ASCII letters and digits as
//!   `-`, cut at 200 with a hash behind it (*read*). It can't be turned back.
//! - `claude --bg` starts a daemon, per session a terminal host and a worker. The
//!   worker has the record; `claude attach SHORT` shows it, SHORT being the
//!   beginning of the session's id, and has none. In 2.1.332 the worker is a spare
//!   that was started before; it keeps its arguments when it is given a session, and
//!   gets a terminal then that no pane has.
//! - Lines of a transcript have `session_id` beside `sessionId` in 2.1.332. In those
//!   that a fork has copied the former names another session: only `sessionId` counts.
//! - Versions before 2.1 or so have no `sessions` folder: there a session is
//!   found by its transcript and a process in its directory.

mod hooks;
mod line;
mod processes;
mod projects;
mod record;
mod registry;
mod sessions;
mod subagents;
mod transcript;

use std::path::Path;

use whosup_process::{Pid, StartStamp};
use whosup_sidecar::{AgentId, SessionId};

use crate::adapter::phase::{FactSource, Phase, PhaseFact};
use crate::adapter::{
    Adapter, AgentScan, Description, Forked, Home, Invocation, Look, Profile, Program, Sketch,
    Watched,
};
use crate::machine::problem::Found;

use self::line::DIALECT;
use self::projects::Projects;
use self::sessions::Sessions;

/// The id of this agent.
const AGENT: AgentId = AgentId::from_static("claude-code");
/// How much of a session's id `claude attach` takes.
const SHORT_ID_BYTES: usize = 8;

/// The first character of the terminal title during a turn. The title begins with `✳` both
/// when idle and while a person is asked, so that sign shows neither.
const SIGNS_OF_WORK: [char; 2] = ['⠂', '⠐'];

static PROFILE: Profile = Profile {
    id: "claude-code",
    name: "Claude Code",
    default_home: ".claude",
    // Claude Code itself takes an empty value for a path, which is never intended.
    home_variables: &["CLAUDE_CONFIG_DIR"],
    detection: "registry file per process, with the process's start stamp",
    checked_against: "2.1.332, 2026-11",
    // A process that has one before its first prompt has a record of it; one
    // without a record has none that a folder could show.
    // Since 2.1 (seen in 2.1.332).
    pid_variable: Some("CLAUDE_PID"),
    watched: &[Watched::at("sessions"), Watched::tree("projects")],
    programs: &processes::PROGRAMS,
    hooks: Some(&hooks::HOOKS),
    counting: Some(&line::COUNTING),
    dialect: Some(&DIALECT),
    resume: &["claude", "--resume", "{id}"],
    ..Profile::USUAL
};

/// The adapter for Claude Code.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn published_session(&self, home: &Path, pid: Pid, stamp: &StartStamp) -> Option<SessionId> {
        registry::session_of(home, pid, stamp)
    }

    fn session_forked_by(&self, home: &Path, program: &Program<'_>) -> Option<Forked> {
        let is_fork = processes::PROGRAMS.has(program, processes::PROGRAMS.forks);
        let process = is_fork.then_some(program.process)?;
        let session = registry::session_of(home, process.pid, &process.stamp)?;
        let parent = processes::PROGRAMS.forked_session(program);
        let parent = parent.and_then(|id| SessionId::parse(id).ok());
        Some(Forked { session, parent })
    }

    fn phase_in_title(&self, title: &str) -> Option<PhaseFact> {
        let rest = title.strip_prefix(SIGNS_OF_WORK)?;
        let working = || PhaseFact::new(FactSource::Title, Some(Phase::Working));
        rest.starts_with(' ').then(|| working().in_word("spinner"))
    }

    fn scan(&self, look: &Look<'_>, home: &Home) -> Found<AgentScan> {
        let mut sessions = Sessions::new(look, home);
        sessions.add_registered();
        sessions.add_beside_unregistered();
        if look.depth.is_walk() {
            sessions.add_all();
        }
        sessions.add_sub_agents();
        sessions.finish()
    }

    fn describe(&self, sketch: &Sketch) -> Found<Description> {
        let mut problems = Vec::new();
        let transcript = match &sketch.transcript {
            Some(transcript) => Some(transcript.clone()),
            None if sketch.parent.is_some() => None,
            None => Projects::new(&sketch.key.home)
                .find(&sketch.key.session, sketch.work_dir.as_deref())
                .take(&mut problems),
        };
        let described = transcript.map(|path| transcript::describe(sketch, &path));
        let found = described.unwrap_or_default().take(&mut problems);
        Found { found, problems }
    }

    fn resume(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let command = PROFILE.resume_of(sketch, is_default_home)?;
        // Elsewhere Claude Code does not find the conversation, wherever a shell's `cd` has
        // taken the session (seen in 2.1.197, 2026-11).
        Some(command.run_in(sketch.work_dir.as_deref()))
    }

    fn attach(&self, sketch: &Sketch, is_default_home: bool) -> Option<Invocation> {
        let id = sketch.key.session.as_str();
        let short = id.get(..SHORT_ID_BYTES).unwrap_or(id);
        let command = Invocation::new(["claude", "attach", short]);
        let command = PROFILE.in_home_of(sketch, is_default_home, command);
        command.filter(|_| sketch.is_terminal_hosted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_in_its_terminals_title_is_work_and_a_star_is_nothing() {
        let phase = |title: &str| ClaudeCode.phase_in_title(title)?.phase;
        assert_eq!(phase("⠂ Claude Code"), Some(Phase::Working));
        assert_eq!(phase("⠐ fix the parser"), Some(Phase::Working));
        for other in ["✳ Claude Code", "⠏ fix it | app", "⠂", ""] {
            assert_eq!(phase(other), None, "{other}");
        }
    }
}
