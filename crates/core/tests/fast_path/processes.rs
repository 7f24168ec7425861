//! Makes the processes of a world: as each agent's look from outside.

use std::path::Path;

use whosup_process::{Absent, RecordedProcess, TerminalUse};

use crate::generated::{MINUTE_MS, TICK_MS, UPTIME_MS, agent_home, work_dir};
use crate::spec::{Agent, Kind, ProcessSpec};

/// The PID of the first process.
const FIRST_PID: i32 = 1000;

/// A process, by its place in the world.
pub fn recorded(
    spec: &ProcessSpec,
    number: usize,
    home: &Path,
    now_ms: i64,
    named: Option<&str>,
) -> RecordedProcess {
    let place = i64::try_from(number).unwrap();
    // No two at the same instant.
    let began_at_ms = now_ms - spec.began_minutes_ago * MINUTE_MS - place * 1000;
    let ticks = (began_at_ms - (now_ms - UPTIME_MS)) / TICK_MS;
    let pid = FIRST_PID + i32::try_from(number).unwrap();
    let mut process = RecordedProcess::new(pid, u64::try_from(ticks).unwrap(), began_at_ms)
        .ppid(1)
        .uid(rustix::process::geteuid().as_raw())
        .cwd(work_dir(home, spec.directory));
    process = match spec.agent {
        Agent::ClaudeCode => claude_code(process, spec.kind, named),
        Agent::Codex => codex(process, spec.kind, named),
        Agent::QwenCode => qwen_code(process, spec.kind, named),
        Agent::KimiCli => kimi_cli(process, spec.kind, named),
    };
    if spec.has_terminal && spec.kind != Kind::Host {
        // Somebody has just typed in every second terminal, and nobody in the others.
        let used_ms = if number.is_multiple_of(2) {
            now_ms
        } else {
            began_at_ms
        };
        process = process
            .tty(136, u32::try_from(number).unwrap())
            .terminal_use(TerminalUse {
                no_input_since_ms: used_ms,
                no_output_since_ms: used_ms,
                is_noted: true,
            });
    }
    let variable = match spec.agent {
        Agent::ClaudeCode => "CLAUDE_CONFIG_DIR",
        Agent::Codex => "CODEX_HOME",
        Agent::QwenCode => "QWEN_HOME",
        Agent::KimiCli => "KIMI_SHARE_DIR",
    };
    let moved = agent_home(home, spec.agent, spec.home);
    process = process.env(&[("HOME", home.to_str().unwrap())]);
    if spec.home > 0 {
        process = process.env(&[(variable, moved.to_str().unwrap())]);
    }
    if !spec.has_environment {
        process.environment = Err(Absent::PermissionDenied);
    }
    process
}

fn claude_code(process: RecordedProcess, kind: Kind, named: Option<&str>) -> RecordedProcess {
    let mut argv = vec!["claude"];
    match (kind, named) {
        (Kind::OneShot, _) => argv.extend(["-p", "hello"]),
        (Kind::Host, Some(named)) => argv.extend(["--session-id", named]),
        (Kind::Interactive, Some(named)) => argv.extend(["--resume", named]),
        (_, None) => {}
    }
    process
        .comm("claude")
        .exe("/opt/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
        .argv(&argv)
}

fn codex(process: RecordedProcess, kind: Kind, named: Option<&str>) -> RecordedProcess {
    let mut argv = vec!["codex"];
    match (kind, named) {
        (Kind::Host, _) => argv.extend(["app-server", "--listen", "unix://", "--managed-daemon"]),
        (Kind::OneShot, _) => argv.extend(["exec", "hello"]),
        (Kind::Interactive, Some(named)) => argv.extend(["resume", named]),
        (Kind::Interactive, None) => {}
    }
    process
        .comm("codex")
        .exe("/opt/node_modules/@openai/codex-linux-x64/vendor/x/bin/codex")
        .argv(&argv)
}

fn qwen_code(process: RecordedProcess, kind: Kind, named: Option<&str>) -> RecordedProcess {
    let mut argv = vec!["node", "/opt/node_modules/@qwen-code/qwen-code/cli.js"];
    match kind {
        Kind::Host => argv.push("--acp"),
        Kind::OneShot => argv.extend(["-p", "hello"]),
        Kind::Interactive => {}
    }
    if let (Some(named), Kind::OneShot | Kind::Interactive) = (named, kind) {
        argv.extend(["--resume", named]);
    }
    process.comm("node").exe("/usr/bin/node").argv(&argv)
}

fn kimi_cli(process: RecordedProcess, kind: Kind, named: Option<&str>) -> RecordedProcess {
    let process = process.exe("/opt/kimi/bin/python3.13");
    match (kind, named) {
        (Kind::Interactive | Kind::Host, Some(named)) => process.comm("python3.13").argv(&[
            "python3.13",
            "/opt/kimi/bin/kimi",
            "--session",
            named,
        ]),
        _ => process.comm("Kimi Code").title("Kimi Code"),
    }
}
