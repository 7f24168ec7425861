//! The agents, as they are posed: which programs they run, and what they write
//! when. One file for each.

mod claude_code;
mod cline;
mod codex;
mod continue_cli;
mod copilot;
mod crush;
mod droid;
mod gemini;
mod kimi_cli;
mod kimi_code;
mod opencode;
mod pi;
mod qwen_code;
mod vibe;

use std::path::Path;

use serde_json::{Value, json};

use crate::actor::Program;
use crate::world::{Kind, World};

/// All of them.
pub(crate) const AGENTS: [&dyn Agent; 15] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &gemini::Gemini,
    &copilot::Copilot,
    &qwen_code::QwenCode,
    &kimi_cli::KimiCli,
    &kimi_code::KimiCode,
    &opencode::OPENCODE,
    &opencode::KILO,
    &pi::Pi,
    &vibe::Vibe,
    &cline::Cline,
    &droid::Droid,
    &crush::Crush,
    &continue_cli::Continue,
];

/// What an agent does, in general.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Habits {
    /// Its own files or locks decide which process serves which session.
    pub(crate) files_decide: bool,
    /// A title covers its arguments.
    pub(crate) hides_arguments: bool,
    /// Hooks tell of a session's start.
    pub(crate) has_hooks: bool,
    /// One process can leave a session for one that exists.
    pub(crate) resumes_inside: bool,
    /// Two processes can serve one session.
    pub(crate) shares_sessions: bool,
    /// `fork` starts a process with a copy.
    pub(crate) forks: bool,
    /// It can be started in a PID namespace of its own: one program.
    pub(crate) nests: bool,
    /// One process for each directory.
    pub(crate) is_alone_in_directory: bool,
}

/// What a process is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    New,
    Resume(usize),
    Fork(usize),
    /// One prompt, in a new session or in this one.
    Headless(Option<usize>),
}

impl Task {
    /// The session that it takes up.
    pub(crate) const fn named(&self) -> Option<usize> {
        match self {
            Self::Resume(session) => Some(*session),
            Self::Headless(session) => *session,
            Self::New | Self::Fork(_) => None,
        }
    }

    pub(crate) const fn is_headless(&self) -> bool {
        matches!(self, Self::Headless(_))
    }

    /// The id that the arguments have: of what is resumed or forked.
    fn id<'a>(&self, world: &'a World) -> Option<&'a str> {
        let at = match self {
            Self::Fork(at) => Some(*at),
            _ => self.named(),
        };
        Some(world.sessions.get(at?)?.id.as_str())
    }
}

/// How a process ends in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Somebody typed `/exit`, or one prompt is done.
    Exit,
    Terminated,
}

/// One agent.
pub(crate) trait Agent: Sync {
    fn id(&self) -> &'static str;
    fn habits(&self) -> Habits;
    /// The programs, each started by the one before. The last one serves.
    fn programs(&self, tools: &Path, task: &Task, world: &World) -> Vec<Program>;
    /// Writes what the agent writes at launch.
    fn launch(&self, world: &mut World, process: usize, task: &Task) -> anyhow::Result<()>;
    /// Writes a turn.
    fn prompt(&self, world: &mut World, process: usize) -> anyhow::Result<()>;
    /// Leaves the session, for one that exists or for a new one.
    fn switch(&self, world: &mut World, process: usize, to: Option<usize>) -> anyhow::Result<()>;
    /// Writes what the agent writes before it ends by itself.
    fn leave(&self, world: &mut World, process: usize, how: Leave) -> anyhow::Result<()>;
    /// The file that says which process serves the session, and could be torn.
    fn claim_file(&self, _world: &mut World, _process: usize) -> Option<String> {
        None
    }
    /// The payload of a hook, and what the command line names.
    fn hook(&self, _home: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
        let payload = json!({ "session_id": id, "cwd": cwd, "hook_event_name": event });
        (String::new(), payload)
    }
}

/// A payload that names the transcript as well, which has this path below the home.
fn hook_with_transcript(transcript: &Path, id: &str, event: &str, cwd: &str) -> (String, Value) {
    let payload = json!({
        "session_id": id, "transcript_path": transcript, "cwd": cwd, "hook_event_name": event,
    });
    (String::new(), payload)
}

/// A directory's name as Claude Code and qwen-code name their folders.
pub(crate) fn encoded(work_dir: &str) -> String {
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '-'
        }
    };
    work_dir.chars().map(plain).collect()
}

/// A program that keeps its arguments.
fn program(executable: &Path, comm: &'static str, argv: &[&str]) -> Program {
    Program {
        executable: executable.to_owned(),
        argv: argv.iter().map(|&argument| argument.to_owned()).collect(),
        comm,
        is_environment_wiped: false,
        variable: None,
    }
}

/// A program with a title over its arguments.
fn titled(executable: &Path, comm: &'static str, title: &str) -> Program {
    program(executable, comm, &[&format!("{title}{}", " ".repeat(24))])
}

/// Runs the hook of a start, of the session that a process serves now.
fn started(world: &mut World, process: usize, source: &str) -> anyhow::Result<()> {
    let session = world.scene(process)?.session;
    let more = json!({ "source": source });
    world.tell(process, session, Kind::Start, "SessionStart", &more)
}

/// Runs the hook of an end of a session in a process.
fn ended(world: &mut World, process: usize, session: usize, why: &str) -> anyhow::Result<()> {
    let more = json!({ "reason": why });
    world.tell(process, session, Kind::End, "SessionEnd", &more)
}

/// What a prompt says.
fn words(prompts: usize) -> String {
    format!("fix the login, part {prompts}")
}
