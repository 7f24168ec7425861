//! Terminals that can be recognized above a process, but list no panes.

use whosup_process::{Process, ProcessTable};

use super::{PANE_HOSTS, Pane, relays_a_terminal};

/// How to recognize the process with the window.
enum Looks {
    /// It has this name in the process table, which keeps 15 bytes of it.
    Named(&'static [u8]),
    /// Its name begins with this.
    NameBegins(&'static [u8]),
    /// Its executable's path contains this.
    Executable(&'static str),
    /// An argument contains this.
    Argument(&'static str),
}

use Looks::{Argument, Executable, NameBegins, Named};

/// Each terminal with its looks. Terminals that run inside others come first.
///
/// Programs of one family share a name, so that a fork stands before the original.
const TERMINALS: &[(&str, &[Looks])] = &[
    ("kitty", &[Named(b"kitty")]),
    (
        "wezterm",
        &[Named(b"wezterm-gui"), Named(b"wezterm-mux-ser")],
    ),
    ("iterm2", &[NameBegins(b"iTermServer"), Named(b"iTerm2")]),
    (
        "ghostty",
        &[NameBegins(b"ghostty"), NameBegins(b".ghostty")],
    ),
    (
        "windows-terminal",
        &[NameBegins(b"WindowsTerminal"), NameBegins(b"OpenConsole")],
    ),
    (
        "cursor",
        &[
            Named(b"cursor"),
            Executable("/cursor/"),
            Executable("/.cursor-server/"),
        ],
    ),
    (
        "windsurf",
        &[
            Named(b"windsurf"),
            Executable("/windsurf/"),
            Executable("/.windsurf-server/"),
        ],
    ),
    (
        "vscodium",
        &[
            Named(b"codium"),
            Executable("/codium/"),
            Executable("/.vscodium-server/"),
        ],
    ),
    (
        "vscode",
        &[
            Named(b"code"),
            Named(b"code-insiders"),
            Named(b"code-oss"),
            Named(b"code-server"),
            Executable("/.vscode-server"),
            Executable("/Visual Studio Code"),
            Argument("/.vscode-server"),
            Argument("code-server/"),
        ],
    ),
    (
        "jetbrains",
        &[
            Argument("com.intellij.idea.Main"),
            Argument("com.jetbrains."),
            Named(b"idea"),
            Named(b"pycharm"),
            Named(b"webstorm"),
            Named(b"goland"),
            Named(b"clion"),
            Named(b"rustrover"),
            Named(b"phpstorm"),
            Named(b"rubymine"),
            Named(b"rider"),
        ],
    ),
    ("zed", &[Named(b"zed-editor"), Named(b"zed")]),
    ("gnome-terminal", &[NameBegins(b"gnome-terminal-")]),
    ("gnome-console", &[Named(b"kgx")]),
    ("ptyxis", &[NameBegins(b"ptyxis")]),
    ("konsole", &[Named(b"konsole"), Named(b"yakuake")]),
    ("terminal.app", &[Executable("/Terminal.app/")]),
    ("alacritty", &[Named(b"alacritty")]),
    ("foot", &[Named(b"foot"), Named(b"footclient")]),
    ("xterm", &[Named(b"xterm")]),
    ("rxvt", &[Named(b"urxvt"), Named(b"urxvtd"), Named(b"rxvt")]),
    ("xfce4-terminal", &[NameBegins(b"xfce4-terminal")]),
    ("tilix", &[Named(b"tilix")]),
    ("terminator", &[Named(b"terminator")]),
    ("warp", &[NameBegins(b"warp")]),
];

/// Finds the terminal that a process runs in: the nearest ancestor that is a terminal, unless
/// another terminal is in between.
pub(super) fn above(process: &Process, table: &ProcessTable) -> Option<Pane> {
    let mut tty = process.tty?;
    for ancestor in table.ancestors(process) {
        if let Some(host) = terminal(ancestor, table) {
            return Some(Pane {
                host,
                tty: process.tty,
                ..Pane::default()
            });
        }
        let is_server = PANE_HOSTS.iter().any(|host| host.is_server(ancestor));
        let other = ancestor.tty.filter(|other| *other != tty);
        if is_server || other.is_some() && !relays_a_terminal(ancestor) {
            return None;
        }
        tty = ancestor.tty.unwrap_or(tty);
    }
    None
}

/// The name of the terminal that a process is.
fn terminal(process: &Process, table: &ProcessTable) -> Option<&'static str> {
    let comm = process.comm.as_slice();
    let is_shown = |looks: &Looks| match looks {
        Named(name) => comm == *name,
        NameBegins(start) => comm.starts_with(start),
        Executable(part) => {
            let details = table.details(process);
            details
                .exe
                .as_ref()
                .is_ok_and(|exe| exe.to_string_lossy().contains(part))
        }
        Argument(part) => {
            let details = table.details(process);
            let argv = details.argv.as_deref().unwrap_or_default();
            argv.iter()
                .any(|word| word.to_string_lossy().contains(part))
        }
    };
    let mut terminals = TERMINALS.iter();
    let (name, _) = terminals.find(|(_, looks)| looks.iter().any(is_shown))?;
    Some(name)
}
