//! Finds what a program reports about itself in all that it writes to its terminal.
//!
//! OSC 7501 (program status protocol, rev 0.4 of autumn 2026):
//! `ESC ] 7501 ; KEY=VALUE : KEY=VALUE … ST`, with `state` one of `idle`, `working`,
//! `done`, `blocked`, `error`, `clear`, and `kind` of a block `permission`, `question`
//! or `auth`. A report with an `id` is about a part of the program.
//! Titles (OSC 0 and 2): the symbols that agents put first.

use whosup_core::sidecar::{Phase, WaitingFor};

/// The maximum length of a terminal command; longer commands are ignored.
const COMMAND_BYTES_MAX: usize = 4096;

/// Finds terminal commands in a stream of bytes, however it is split.
#[derive(Debug, Default)]
pub(super) struct Words {
    at: At,
    command: Vec<u8>,
    has_announced: bool,
}

/// The state of the parser.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Escape,
    Command,
    /// An escape in a command, which ends if a backslash follows.
    CommandEscape,
}

impl Words {
    /// Reads on, and calls `heard` for every phase that is announced.
    pub(super) fn read(&mut self, bytes: &[u8], heard: &dyn Fn(Phase)) {
        for byte in bytes {
            self.at = match (self.at, byte) {
                (At::Escape, b']') => {
                    self.command.clear();
                    At::Command
                }
                (At::Text | At::Escape, 0x1b) => At::Escape,
                (At::Text | At::Escape, _) => At::Text,
                (At::Command, 0x1b) => At::CommandEscape,
                (At::Command, 0x07) | (At::CommandEscape, b'\\') => {
                    self.understand(heard);
                    At::Text
                }
                (At::Command, _) if self.command.len() < COMMAND_BYTES_MAX => {
                    self.command.push(*byte);
                    At::Command
                }
                (At::CommandEscape, b']') => {
                    self.command.clear();
                    At::Command
                }
                (At::Command | At::CommandEscape, _) => At::Text,
            };
        }
    }

    fn understand(&mut self, heard: &dyn Fn(Phase)) {
        let Ok(command) = std::str::from_utf8(&self.command) else {
            return;
        };
        let Some((number, rest)) = command.split_once(';') else {
            return;
        };
        let phase = match number {
            "7501" => status(rest).inspect(|_| self.has_announced = true),
            // With a program status, titles are not guessed from.
            "0" | "2" if !self.has_announced => title(rest),
            _ => None,
        };
        if let Some(phase) = phase {
            heard(phase);
        }
    }
}

/// The phase of a program status.
fn status(fields: &str) -> Option<Phase> {
    let field = |key: &str| {
        let mut pairs = fields.split(':').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    };
    if field("id").is_some() {
        return None;
    }
    match field("state")? {
        "idle" | "done" | "error" => Some(Phase::Idle),
        "working" => Some(Phase::Working),
        "blocked" => Some(Phase::Waiting(match field("kind") {
            Some("question") => WaitingFor::Question,
            Some("auth") => WaitingFor::Auth,
            _ => WaitingFor::Permission,
        })),
        _ => None,
    }
}

/// The phase of a title's first character: agents show a spinner while they work (braille
/// dots), and another symbol when they are done (`✳`).
fn title(title: &str) -> Option<Phase> {
    match title.chars().next()? {
        '\u{2801}'..='\u{28ff}' => Some(Phase::Working),
        '✳' => Some(Phase::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::Words;
    use whosup_core::sidecar::{Phase, WaitingFor};

    fn heard(bytes: &[u8], at_once: usize) -> Vec<Phase> {
        let heard = RefCell::new(Vec::new());
        let mut words = Words::default();
        for part in bytes.chunks(at_once) {
            words.read(part, &|phase| heard.borrow_mut().push(phase));
        }
        heard.into_inner()
    }

    #[track_caller]
    fn check(bytes: &[u8], right: &[Phase]) {
        for at_once in [1, 2, 3, 7, bytes.len().max(1)] {
            assert_eq!(heard(bytes, at_once), right, "{at_once} bytes at once");
        }
    }

    #[test]
    fn a_program_status_is_a_phase() {
        check(b"\x1b]7501;state=working\x07", &[Phase::Working]);
        check(b"text\x1b]7501;state=idle\x1b\\more", &[Phase::Idle]);
        check(b"\x1b]7501;state=done\x07", &[Phase::Idle]);
        let question = Phase::Waiting(WaitingFor::Question);
        check(b"\x1b]7501;state=blocked:kind=question\x07", &[question]);
        let permission = Phase::Waiting(WaitingFor::Permission);
        check(b"\x1b]7501;state=blocked\x07", &[permission]);
    }

    #[test]
    fn signs_of_titles_are_phases_unless_the_program_announces_itself() {
        let title = "\x1b]0;\u{2802} busy\x07\x1b]2;✳ Claude Code\x07";
        check(title.as_bytes(), &[Phase::Working, Phase::Idle]);
        check("\x1b]0;vim ✳\x07".as_bytes(), &[]);
        let both = "\x1b]7501;state=idle\x07\x1b]0;\u{2802} busy\x07";
        check(both.as_bytes(), &[Phase::Idle]);
    }

    #[test]
    fn everything_else_is_passed_over() {
        check(b"\x1b[31mred\x1b[0m \x1b]8;;http://x\x1b\\link", &[]);
        check(b"\x1b]7501;state=dancing\x07", &[]);
        check(b"\x1b]7501;?\x07\x1b]7501;state=working:id=a/b\x07", &[]);
        check(b"\x1b]7501\x07\x1b]\x07\x1b]7501;\x07", &[]);
        check(b"\x1b]0;\xff\xfe\x07", &[]);
        let mut long = b"\x1b]7501;state=working".to_vec();
        long.extend([b' '; 9000]);
        long.push(7);
        check(&long, &[]);
    }
}
