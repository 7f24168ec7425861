//! Programs above a hook that serve no session.

use whosup_core::adapter::Program;

/// What a program that is no known agent is to a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It runs another program: what that does is the other's.
    PassedOver,
    /// It began what is below it, and nothing above it has to do with the hook.
    Boundary,
    /// Something else, perhaps an agent.
    Other,
}

/// Shells, and programs that run another one.
const PASSED_OVER: &[&str] = &[
    "sh",
    "ash",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "tcsh",
    "csh",
    "nu",
    "elvish",
    "xonsh",
    "pwsh",
    "busybox",
    "env",
    "timeout",
    "nice",
    "nohup",
    "setsid",
    "ionice",
    "chrt",
    "taskset",
    "stdbuf",
    "script",
    "time",
    "xargs",
    "sudo",
    "doas",
    "su",
    "runuser",
    "setpriv",
    "unshare",
    "nsenter",
    "bwrap",
    "firejail",
    "strace",
    "ltrace",
    "unbuffer",
    "catchsegv",
    "flock",
    "watch",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "bunx",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "mise",
    "asdf",
    "direnv",
    "nix",
    "nix-shell",
    "git",
    "go",
    "make",
    "just",
    "whosup",
];

/// Service managers, multiplexers, terminals, and what else begins a session of a user.
const BOUNDARIES: &[&str] = &[
    "systemd",
    "init",
    "launchd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "runit",
    "runsv",
    "s6-supervise",
    "s6-svscan",
    "supervisord",
    "containerd-shim",
    "containerd-shim-runc-v2",
    "conmon",
    "login",
    "sshd",
    "sshd-session",
    "sshd-auth",
    "dropbear",
    "mosh-server",
    "cron",
    "crond",
    "atd",
    "anacron",
    "tmux",
    "tmux: server",
    "screen",
    "SCREEN",
    "zellij",
    "dtach",
    "abduco",
    "herdr",
    "xterm",
    "kitty",
    "alacritty",
    "foot",
    "ghostty",
    "konsole",
    "terminator",
    "tilix",
    "ptyxis",
    "ptyxis-agent",
    "gnome-terminal-",
    "gnome-terminal-server",
    "xfce4-terminal",
    "lxterminal",
    "urxvt",
    "rxvt",
    "st",
    "wezterm",
    "wezterm-gui",
    "wezterm-mux-server",
    "code",
    "cursor",
    "zed",
    "electron",
    "idea",
    "emacs",
    "vim",
    "nvim",
];

/// Classifies a program by the names that it goes by. The name of its file counts
/// before the one that it was started by, which anybody may choose.
pub(super) fn kind_of(program: &Program<'_>) -> Kind {
    let exe = program.exe_name();
    let exe = exe.map(|name| name.strip_suffix(" (deleted)").unwrap_or(name));
    // What a runtime runs has its name from its title: `npm exec x`, `tmux: server`.
    let title = program
        .comm()
        .filter(|comm| exe.is_none() || program.is_runtime() || comm.starts_with("tmux"));
    let word = title.and_then(|title| title.split([' ', ':']).next());
    let names = || [exe, title, word].into_iter().flatten();
    if names().any(|name| BOUNDARIES.contains(&name)) {
        Kind::Boundary
    } else if names().any(|name| PASSED_OVER.contains(&name)) {
        Kind::PassedOver
    } else {
        Kind::Other
    }
}

#[cfg(test)]
mod tests {
    use whosup_core::process::{Backend as _, Recorded, RecordedProcess};

    use super::*;

    #[track_caller]
    fn check(exe: Option<&str>, comm: &str, kind: Kind) {
        let process = RecordedProcess::new(100, 1_000, 0).comm(comm);
        let process = match exe {
            Some(exe) => process.exe(exe),
            None => process.foreign(),
        };
        let table = Recorded::initial().with(process.clone());
        let details = table.details(&process.process);
        let program = Program {
            process: &process.process,
            details: &details,
        };
        assert_eq!(kind_of(&program), kind, "{exe:?} {comm}");
    }

    #[test]
    fn a_program_goes_by_its_file_and_a_runtime_by_its_title() {
        check(Some("/bin/bash"), "bash", Kind::PassedOver);
        check(Some("/bin/bash (deleted)"), "bash", Kind::PassedOver);
        check(Some("/usr/bin/node"), "npm exec x", Kind::PassedOver);
        check(None, "npm exec x", Kind::PassedOver);
        check(None, "sh", Kind::PassedOver);
        check(Some("/usr/bin/tmux"), "tmux: server", Kind::Boundary);
        check(None, "tmux: server", Kind::Boundary);
        check(Some("/usr/sbin/cron"), "cron", Kind::Boundary);
        check(Some("/opt/bin/cc"), "sh", Kind::Other);
        check(Some("/usr/bin/node"), "MainThread", Kind::Other);
        check(Some("/lib64/ld-linux-x86-64.so.2"), "sh", Kind::Other);
        check(None, "cc", Kind::Other);
    }
}
