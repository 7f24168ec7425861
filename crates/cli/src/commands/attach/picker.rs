//! Lets a person choose a session: type to filter, arrows to move, Enter to take.

use std::io::{self, IsTerminal as _, Write};

use anstyle::{Effects, Style};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::app::Face;
use crate::colour::paint;
use crate::text::{cut, width};

/// How many rows are shown at once.
const ROWS_SHOWN_MAX: usize = 12;
/// The width if the terminal does not report one.
const WIDTH_USUAL: usize = 80;
/// How long a filter may be, in characters.
const FILTER_CHARS_MAX: usize = 200;
/// The width of the states.
const STATE_WIDTH: usize = 20;

/// How many bytes are read at once.
const READ_BYTES: usize = 256;

/// One row of the list.
pub(super) struct Row {
    /// The state of the session.
    pub(super) state: String,
    /// The style of the state.
    pub(super) style: Style,
    /// The rest of the line.
    pub(super) text: String,
}

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    Text(String),
    Erase,
    Up,
    Down,
    Take,
    Leave,
    Other,
}

/// Whether there is a terminal for it.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks. Returns the index of the chosen row; `None` if the person left.
///
/// # Errors
///
/// If the terminal cannot be used.
pub(super) fn pick(err: &mut dyn Write, rows: &[Row], face: Face) -> anyhow::Result<Option<usize>> {
    let _raw = RawTerminal::enter()?;
    let mut choice = Choice::default();
    let mut drawn = 0;
    loop {
        let shown = choice.matches(rows);
        choice.at = choice.at.min(shown.len().saturating_sub(1));
        drawn = draw(err, rows, &shown, &choice, face, drawn)?;
        for key in read_keys()? {
            match key {
                Key::Text(text) => {
                    let room = FILTER_CHARS_MAX.saturating_sub(choice.filter.chars().count());
                    choice.filter.extend(text.chars().take(room));
                    choice.at = 0;
                }
                Key::Erase => {
                    choice.filter.pop();
                }
                Key::Up => choice.at = choice.at.saturating_sub(1),
                Key::Down => choice.at = choice.at.saturating_add(1),
                Key::Take => {
                    let shown = choice.matches(rows);
                    let at = choice.at.min(shown.len().saturating_sub(1));
                    if let Some(taken) = shown.get(at) {
                        clear(err, drawn)?;
                        return Ok(Some(*taken));
                    }
                }
                Key::Leave => {
                    clear(err, drawn)?;
                    return Ok(None);
                }
                Key::Other => {}
            }
        }
    }
}

/// The filter and the selected row.
#[derive(Debug, Default)]
struct Choice {
    filter: String,
    at: usize,
}

impl Choice {
    /// The rows that contain every word of the filter.
    fn matches(&self, rows: &[Row]) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let matches = |row: &Row| {
            let text = format!("{} {}", row.state, row.text).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let rows = rows.iter().enumerate().filter(|(_, row)| matches(row));
        rows.map(|(at, _)| at).collect()
    }
}

/// Draws over the last drawing, and returns the number of lines.
fn draw(
    err: &mut dyn Write,
    rows: &[Row],
    shown: &[usize],
    choice: &Choice,
    face: Face,
    drawn: usize,
) -> io::Result<usize> {
    clear(err, drawn)?;
    let columns = terminal_size::terminal_size_of(io::stderr());
    let columns = columns.map_or(WIDTH_USUAL, |(width, _)| usize::from(width.0));
    // The selected row stays visible.
    let first = choice.at.saturating_sub(ROWS_SHOWN_MAX.saturating_sub(1));
    let mut text = String::new();
    let mut lines = 0;
    for (at, row) in shown.iter().enumerate().skip(first).take(ROWS_SHOWN_MAX) {
        let Some(row) = rows.get(*row) else { continue };
        let mark = if at == choice.at { "> " } else { "  " };
        let state = cut(&row.state, STATE_WIDTH);
        let gap = " ".repeat(STATE_WIDTH.saturating_sub(width(&state)) + 1);
        let rest = cut(&row.text, columns.saturating_sub(STATE_WIDTH + 4));
        let style = if at == choice.at {
            Style::new().effects(Effects::BOLD)
        } else {
            Style::new()
        };
        let state = paint(&state, row.style, face.is_coloured);
        let rest = paint(&rest, style, face.is_coloured);
        text.push_str(&format!("{mark}{state}{gap}{rest}\r\n"));
        lines += 1;
    }
    let count = format!("{}/{} ", shown.len(), rows.len());
    let filter = cut(&choice.filter, columns.saturating_sub(count.len() + 3));
    text.push_str(&format!("{count}> {filter}"));
    err.write_all(text.as_bytes())?;
    err.flush()?;
    Ok(lines + 1)
}

/// Removes the last drawing.
fn clear(err: &mut dyn Write, drawn: usize) -> io::Result<()> {
    if drawn > 1 {
        write!(err, "\u{1b}[{}A", drawn - 1)?;
    }
    if drawn > 0 {
        write!(err, "\r\u{1b}[J")?;
    }
    err.flush()
}

fn read_keys() -> io::Result<Vec<Key>> {
    let mut bytes = [0; READ_BYTES];
    let length = rustix::io::read(io::stdin(), &mut bytes)?;
    Ok(keys(bytes.get(..length).unwrap_or_default()))
}

/// The keys of one read of the terminal: fast typing and pastes come together.
fn keys(bytes: &[u8]) -> Vec<Key> {
    match bytes {
        // The end of the input, or Escape alone.
        [] | [0x1b] => return vec![Key::Leave],
        b"\x1b[A" | b"\x1bOA" => return vec![Key::Up],
        b"\x1b[B" | b"\x1bOB" => return vec![Key::Down],
        // Another key with an escape sequence.
        [0x1b, ..] => return vec![Key::Other],
        _ => {}
    }
    let mut keys = Vec::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        let key = match c {
            // Ctrl-C and Ctrl-D.
            '\u{3}' | '\u{4}' => Key::Leave,
            '\r' | '\n' => Key::Take,
            // Ctrl-P and Ctrl-N, as in a shell.
            '\u{10}' => Key::Up,
            '\u{e}' => Key::Down,
            '\u{8}' | '\u{7f}' => Key::Erase,
            c if c.is_control() => Key::Other,
            c => Key::Text(c.to_string()),
        };
        match (keys.last_mut(), &key) {
            (Some(Key::Text(before)), Key::Text(text)) => before.push_str(text),
            _ => keys.push(key),
        }
    }
    keys
}

/// The terminal in raw mode, until the value is dropped.
struct RawTerminal(Termios);

impl RawTerminal {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no reset.
        tcsetattr(io::stdin(), OptionalActions::Drain, &self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::{Choice, Key, Row, keys};

    #[test]
    fn a_filter_wants_each_of_its_words() {
        let row = |state: &str, text: &str| Row {
            state: state.to_owned(),
            style: Style::new(),
            text: text.to_owned(),
        };
        let rows = [
            row("waiting", "codex Fix the Login"),
            row("idle", "claude-code Fix the shop"),
        ];
        let check = |filter: &str, expected: &[usize]| {
            let filter = filter.to_owned();
            let choice = Choice { filter, at: 0 };
            assert_eq!(choice.matches(&rows), expected, "{choice:?}");
        };
        check("", &[0, 1]);
        check("fix", &[0, 1]);
        check("LOGIN wait", &[0]);
        check("login idle", &[]);
    }

    #[test]
    fn keys_are_distinguished() {
        let text = |text: &str| Key::Text(text.to_owned());
        assert_eq!(keys(b"\x1b"), [Key::Leave]);
        assert_eq!(keys(b""), [Key::Leave]);
        assert_eq!(keys(b"\x1b[A"), [Key::Up]);
        assert_eq!(keys(b"\r"), [Key::Take]);
        assert_eq!(keys("é".as_bytes()), [text("é")]);
        assert_eq!(keys(b"\x1b[5~"), [Key::Other]);
        assert_eq!(keys(b"fast"), [text("fast")]);
        // Keys that come together are handled one by one.
        assert_eq!(
            keys(b"\x7f\x7ffast\r"),
            [Key::Erase, Key::Erase, text("fast"), Key::Take]
        );
    }
}
