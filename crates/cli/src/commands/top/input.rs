//! What is typed and clicked, read from the terminal.
//!
//! crossterm's own reader loses a key that comes together with a new size of the screen: it
//! waits for edges, and leaves its loop at the first of several files that are ready.

use std::io::{self, Read};

use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// How many bytes are read at once.
const READ_BYTES: usize = 1_024;
/// More than any sequence of a terminal has that means something here.
const SEQUENCE_BYTES_MAX: usize = 64;

/// What terminals send once they are asked for the mouse: presses and the wheel, as text
/// (xterm's private modes 1000 and 1006).
pub(super) const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
/// The end of that.
pub(super) const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// What is typed.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The beginning of a sequence whose end has not come yet.
    begun: Vec<u8>,
}

impl Input {
    /// Reads what has come; `None` if the terminal has gone.
    pub(super) fn read(&mut self, terminal: &mut impl Read) -> io::Result<Option<Vec<Event>>> {
        let mut bytes = [0; READ_BYTES];
        let length = match terminal.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Some(Vec::new()));
            }
            length => length?,
        };
        let read = bytes.get(..length).unwrap_or_default();
        Ok((length > 0).then(|| self.take(read)))
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.begun.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut at = 0;
        while let Some(rest) = self.begun.get(at..).filter(|rest| !rest.is_empty()) {
            let Some((length, event)) = parse(rest) else {
                break;
            };
            events.extend(event);
            at = at.saturating_add(length);
        }
        self.begun.drain(..at.min(self.begun.len()));
        if self.begun.len() > SEQUENCE_BYTES_MAX {
            self.begun.clear();
        }
        events
    }
}

/// The length of the first key or click and what it is, if that means something here;
/// `None` if its end is missing.
fn parse(bytes: &[u8]) -> Option<(usize, Option<Event>)> {
    match bytes {
        [0x1b] => Some((1, key(KeyCode::Esc))),
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
            let (parameters, last) = (rest.get(..end)?, *rest.get(end)?);
            Some((end.saturating_add(3), sequence(parameters, last)))
        }
        [0x1b, b'O', last, ..] => Some((3, sequence(b"", *last))),
        [0x1b, b'O'] => None,
        // Alt with a key means nothing here.
        [0x1b, 0x1b, ..] => Some((1, key(KeyCode::Esc))),
        [0x1b, _, ..] => Some((2, None)),
        [b'\r' | b'\n', ..] => Some((1, key(KeyCode::Enter))),
        [0x7f | 0x08, ..] => Some((1, key(KeyCode::Backspace))),
        [control @ 1..0x1b, ..] => {
            let letter = KeyCode::Char(char::from(control | 0x60));
            let event = KeyEvent::new(letter, KeyModifiers::CONTROL);
            Some((1, Some(Event::Key(event))))
        }
        [first, ..] => character(bytes, *first),
        [] => None,
    }
}

fn key(code: KeyCode) -> Option<Event> {
    Some(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn sequence(parameters: &[u8], last: u8) -> Option<Event> {
    match (parameters, last) {
        ([b'<', click @ ..], b'M') => mouse(click),
        (_, b'A') => key(KeyCode::Up),
        (_, b'B') => key(KeyCode::Down),
        (_, b'H') | (b"1" | b"7", b'~') => key(KeyCode::Home),
        (_, b'F') | (b"4" | b"8", b'~') => key(KeyCode::End),
        (b"5", b'~') => key(KeyCode::PageUp),
        (b"6", b'~') => key(KeyCode::PageDown),
        _ => None,
    }
}

/// `BUTTON;COLUMN;ROW`, counted from 1.
fn mouse(click: &[u8]) -> Option<Event> {
    let numbers = std::str::from_utf8(click).ok()?.split(';');
    let numbers: Vec<u16> = numbers
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let [button, column, row] = numbers[..] else {
        return None;
    };
    let kind = match button {
        0 => MouseEventKind::Down(MouseButton::Left),
        64 => MouseEventKind::ScrollUp,
        65 => MouseEventKind::ScrollDown,
        _ => return None,
    };
    Some(Event::Mouse(MouseEvent {
        kind,
        column: column.checked_sub(1)?,
        row: row.checked_sub(1)?,
        modifiers: KeyModifiers::NONE,
    }))
}

fn character(bytes: &[u8], first: u8) -> Option<(usize, Option<Event>)> {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let text = std::str::from_utf8(bytes.get(..length)?).ok();
    let character = text.and_then(|text| text.chars().next());
    match character.filter(|character| !character.is_control()) {
        Some(character) => Some((length, key(KeyCode::Char(character)))),
        None => Some((1, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[Option<Event>]) {
        let expected: Vec<Event> = expected.iter().flatten().cloned().collect();
        assert_eq!(Input::default().take(bytes), expected);
        // However it comes in pieces; a lone Esc is a key.
        for cut in (0..bytes.len()).filter(|cut| *cut == 0 || bytes[cut - 1] != 0x1b) {
            let mut input = Input::default();
            let mut events = input.take(&bytes[..cut]);
            events.extend(input.take(&bytes[cut..]));
            assert_eq!(events, expected, "cut at {cut}");
        }
    }

    #[test]
    fn keys_and_clicks_are_read_whole_or_in_pieces() {
        check(
            b"j\r\x7f",
            &[
                key(KeyCode::Char('j')),
                key(KeyCode::Enter),
                key(KeyCode::Backspace),
            ],
        );
        check(
            "é会🦀".as_bytes(),
            &[
                key(KeyCode::Char('é')),
                key(KeyCode::Char('会')),
                key(KeyCode::Char('🦀')),
            ],
        );
        check(
            b"\x1b[A\x1bOB\x1b[5~\x1b[1;5H",
            &[
                key(KeyCode::Up),
                key(KeyCode::Down),
                key(KeyCode::PageUp),
                key(KeyCode::Home),
            ],
        );
        check(b"\x1b\x1b", &[key(KeyCode::Esc), key(KeyCode::Esc)]);
        let click = sequence(b"<0;7;3", b'M');
        assert!(matches!(&click, Some(Event::Mouse(mouse)) if (mouse.column, mouse.row) == (6, 2)));
        check(
            b"\x1b[<0;7;3M\x1b[<0;7;3m\x1b[<65;1;1M",
            &[click, sequence(b"<65;1;1", b'M')],
        );
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        check(b"\x03", &[Some(Event::Key(interrupt))]);
    }

    #[test]
    fn garbage_is_no_key_and_is_not_kept() {
        check(b"\xff\xfe\x1b[<0;0;0M\x1b[<1;;1M\x1b[200~", &[]);
        let mut input = Input::default();
        assert_eq!(
            input.take(&[b"\x1b[".as_slice(), &[b'1'; 500]].concat()),
            []
        );
        assert_eq!(input.take(b"q"), [key(KeyCode::Char('q')).unwrap()]);
    }
}
