//! Processes that may be an agent although no adapter recognizes them.
//!
//! Without a process, a session has exited only if no such process is running. The agent may
//! run under a loader that hides the program, as a script that cannot be read, or under a
//! name that a user chose.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use whosup_process::{Details, Pid, Process, ProcessTable};
use whosup_sidecar::AgentId;

use super::look_through::{is_name_of_layer, unwrapped_name};
use crate::adapter::{Adapter, AgentProcess, Program, Role, is_runtime_name};
use crate::sources::agents::{self, AGENTS};

/// Script names that very many packages use: only their folders identify the program.
const USUAL_SCRIPTS: &[&str] = &["__main__", "app", "cli", "entry", "index", "main", "run"];
/// How many words among the arguments of a runtime are looked at.
const WORDS_MAX: usize = 2;
/// Options that a runtime takes code or a module with instead of a script.
const CODE_OPTIONS: &[&str] = &["--eval", "--print", "-c", "-e", "-m", "-p"];

/// A process that may be an agent although no adapter recognizes it.
#[derive(Debug, Clone)]
pub struct PossibleProcess {
    /// The process.
    pub process: Process,
    /// Further details of the process, for the program that it runs.
    pub details: Arc<Details>,
    /// Which agents it may be; empty if any of them.
    pub agents: BTreeSet<AgentId>,
}

impl PossibleProcess {
    /// Returns whether the process may be `agent`.
    #[must_use]
    pub fn may_be(&self, agent: &AgentId) -> bool {
        self.agents.is_empty() || self.agents.contains(agent)
    }
}

/// The agents that an unrecognized process may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Possible {
    /// None: it is certainly another program, as far as is visible.
    NoAgent,
    /// One of these.
    OneOf(BTreeSet<AgentId>),
    /// Unknown: its program is not visible.
    AnyAgent,
}

impl Possible {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::AnyAgent, _) | (_, Self::AnyAgent) => Self::AnyAgent,
            (Self::NoAgent, other) => other,
            (this, Self::NoAgent) => this,
            (Self::OneOf(mut agents), Self::OneOf(others)) => {
                agents.extend(others);
                Self::OneOf(agents)
            }
        }
    }

    /// It may be `agent`.
    pub(crate) fn includes(&self, agent: &AgentId) -> bool {
        match self {
            Self::NoAgent => false,
            Self::OneOf(agents) => agents.contains(agent),
            Self::AnyAgent => true,
        }
    }
}

/// Returns which agents a process may be that no adapter recognizes, by the program it runs.
///
/// `raw` is the kernel's view of the process, and `program` the program behind it.
pub(crate) fn possible_agents(raw: &Details, program: &Program<'_>) -> Possible {
    let Some(exe) = program.exe_name() else {
        // Processes that can't be inspected are handled by name elsewhere.
        return Possible::NoAgent;
    };
    if is_name_of_layer(exe) {
        return Possible::AnyAgent;
    }
    if is_runtime_name(exe) {
        return by_script(program);
    }
    let raw_name = raw.exe.as_deref().ok().and_then(file_name);
    let was_wrapped = raw_name.is_some_and(|name| unwrapped_name(name).is_some());
    let started_as = program.argv().first().map(Path::new).and_then(file_name);
    let is_by_other_name = started_as.is_some_and(|name| name != exe);
    let is_numbered = exe.starts_with(|first: char| first.is_ascii_digit());
    if !(was_wrapped || is_by_other_name || is_numbered) {
        return Possible::NoAgent;
    }
    one_of(|adapter| adapter.profile().programs.may_be_called(exe))
}

/// By what a language runtime runs: a script, a module, code, or a title.
fn by_script(program: &Program<'_>) -> Possible {
    let Ok(argv) = &program.details.argv else {
        return Possible::AnyAgent;
    };
    if argv.iter().all(|argument| argument.is_empty()) {
        return Possible::AnyAgent;
    }
    if let Some(title) = program.title() {
        return by_text(title);
    }
    let is_option = |argument: &&OsString| argument.as_encoded_bytes().starts_with(b"-");
    let has_code = argv
        .iter()
        .skip(1)
        .take_while(is_option)
        .any(|option| CODE_OPTIONS.iter().any(|code| option == code));
    // The first word may be the value of an option, or a subcommand (`bun run SCRIPT`).
    let words = argv.iter().skip(1).filter(|argument| !is_option(argument));
    let mut found = Possible::NoAgent;
    for word in words.take(WORDS_MAX) {
        let of_word = match word.to_str() {
            None => Possible::AnyAgent,
            Some(code) if has_code => by_text(code),
            Some(path) => by_path(Path::new(path), path),
        };
        found = found.or(of_word);
    }
    found
}

/// By the name of a script, or by its folders if the name is a common one.
fn by_path(script: &Path, text: &str) -> Possible {
    match script.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if USUAL_SCRIPTS.contains(&stem) => by_text(text),
        Some(stem) => by_text(stem),
        None => Possible::NoAgent,
    }
}

/// The agents with a name that occurs in a text, as a word.
fn by_text(text: &str) -> Possible {
    let mentions = |name: &str| {
        let first = words_of(name).next();
        first.is_some_and(|first| words_of(text).any(|word| word.eq_ignore_ascii_case(first)))
    };
    one_of(|adapter| {
        mentions(adapter.profile().id) || adapter.profile().programs.names().any(mentions)
    })
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty())
}

fn one_of(is_it: impl Fn(&dyn Adapter) -> bool) -> Possible {
    let agents: BTreeSet<AgentId> = AGENTS
        .iter()
        .filter(|adapter| is_it(**adapter))
        .map(|adapter| agents::id_of(*adapter))
        .collect();
    if agents.is_empty() {
        Possible::NoAgent
    } else {
        Possible::OneOf(agents)
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Removes processes below a recognized process of the same agent, for an agent starts its
/// tools and servers from its own executable, too; and those above one, which have started it
/// (`npx` has the package in its title).
pub(super) fn without_tools_and_launchers(
    table: &ProcessTable,
    possible: Vec<PossibleProcess>,
    recognized: &[AgentProcess],
) -> Vec<PossibleProcess> {
    let agent_of: HashMap<Pid, &AgentId> = recognized
        .iter()
        .map(|one| (one.process.pid, &one.agent))
        .collect();
    let launched = recognized.iter().filter(|one| one.role != Role::Auxiliary);
    let mut launched_by: HashMap<Pid, Vec<&AgentId>> = HashMap::new();
    for one in launched {
        for above in table.ancestors(&one.process) {
            launched_by.entry(above.pid).or_default().push(&one.agent);
        }
    }
    let mut left = Vec::new();
    for mut one in possible {
        let is_any_agent = one.agents.is_empty();
        for above in table.ancestors(&one.process) {
            if let Some(agent) = agent_of.get(&above.pid) {
                one.agents.remove(*agent);
            }
        }
        for agent in launched_by.get(&one.process.pid).into_iter().flatten() {
            one.agents.remove(*agent);
        }
        if is_any_agent || !one.agents.is_empty() {
            left.push(one);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use whosup_process::{Absent, RecordedProcess};

    use super::*;
    use crate::sources::agents::kit::program_tests::program_of;
    use crate::sources::recognize::look_through;

    fn possible(process: &RecordedProcess) -> Possible {
        let raw = process.details.clone();
        let mut seen = process.clone();
        seen.details = look_through(&raw).unwrap_or_else(|| raw.clone());
        possible_agents(&raw, &program_of(&seen))
    }

    fn process(exe: &str, argv: &[&str]) -> RecordedProcess {
        RecordedProcess::new(7, 1, 0).exe(exe).argv(argv)
    }

    fn agents(names: &[&str]) -> Possible {
        let ids = names.iter().map(|name| AgentId::parse(name).unwrap());
        Possible::OneOf(ids.collect())
    }

    #[track_caller]
    fn check(exe: &str, argv: &[&str], right: Possible) {
        assert_eq!(possible(&process(exe, argv)), right, "{exe} {argv:?}");
    }

    #[test]
    fn what_runs_something_that_cannot_be_seen_may_be_any_agent() {
        for exe in ["/usr/bin/ld.so", "/usr/bin/qemu-x86_64", "/usr/bin/box64"] {
            check(exe, &[exe], Possible::AnyAgent);
        }
        let mut runtime = process("/usr/bin/node", &["node", "x.js"]);
        runtime.details.argv = Err(Absent::PermissionDenied);
        assert_eq!(possible(&runtime), Possible::AnyAgent);
        check("/usr/bin/python3.13", &["", ""], Possible::AnyAgent);
        check("/usr/bin/python3.13", &[], Possible::AnyAgent);
    }

    #[test]
    fn a_runtime_may_be_the_agent_that_its_script_has_a_name_of() {
        let node = "/usr/bin/node";
        check(node, &["node", "server.js"], Possible::NoAgent);
        check(
            node,
            &["node", "/w/gemini-clone/server.js"],
            Possible::NoAgent,
        );
        check(node, &["node"], Possible::NoAgent);
        check(node, &["node", "--version"], Possible::NoAgent);
        check(
            node,
            &["node", "/opt/my-qwen/cli.js"],
            agents(&["qwen-code"]),
        );
        check(
            node,
            &["node", "-r", "hook.js", "/x/qwen.mjs"],
            agents(&["qwen-code"]),
        );
        check(
            "/usr/bin/bun",
            &["bun", "run", "/x/opencode.ts"],
            agents(&["opencode"]),
        );
        check(
            "/usr/bin/python3",
            &["python3", "-m", "http.server"],
            Possible::NoAgent,
        );
        check(
            "/usr/bin/python3",
            &["python3", "-c", "from kimi_cli import main; main()"],
            agents(&["kimi-cli", "kimi-code"]),
        );
        let titled = process(node, &[]).title("next-server (v14)");
        assert_eq!(possible(&titled), Possible::NoAgent);
        let titled = process(node, &[]).title("gemini [busy]");
        assert_eq!(possible(&titled), agents(&["gemini"]));
    }

    #[test]
    fn an_agents_executable_under_another_name_may_be_that_agent() {
        check("/opt/claude", &["someone"], agents(&["claude-code"]));
        check(
            "/nix/x/.copilot-wrapped",
            &["copilot"],
            agents(&["copilot"]),
        );
        check("/opt/2.1.332", &["/opt/2.1.332"], agents(&["claude-code"]));
        check("/opt/claude", &["claude"], Possible::NoAgent);
        check("/usr/bin/dash", &["sh"], Possible::NoAgent);
        check("/nix/x/.firefox-wrapped", &["firefox"], Possible::NoAgent);
        check("/opt/2.1", &["/opt/2.1"], Possible::NoAgent);
    }

    #[test]
    fn what_cannot_be_looked_into_is_asked_about_elsewhere() {
        let mut hidden = process("/opt/claude", &["cc"]);
        hidden.details.exe = Err(Absent::PermissionDenied);
        assert_eq!(possible(&hidden), Possible::NoAgent);
    }
}
