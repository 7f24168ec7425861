//! A terminal that shows one table, and is restored at the end.

use std::io::{self, Write};

/// The size if the terminal does not report one, in columns and rows.
const SIZE: (usize, usize) = (80, 24);

/// The alternate screen, without a cursor (xterm's private modes 1049 and 25).
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";
const TOP: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// A terminal that shows one table.
#[derive(Debug)]
pub(super) struct Screen {
    is_on: bool,
}

impl Screen {
    pub(super) fn begin(out: &mut dyn Write) -> io::Result<Self> {
        out.write_all(BEGIN.as_bytes())?;
        out.flush()?;
        Ok(Self { is_on: true })
    }

    /// Replaces the contents with the first lines of a text.
    pub(super) fn show(&self, out: &mut dyn Write, text: &str, height: usize) -> io::Result<()> {
        out.write_all(frame(text, height).as_bytes())?;
        out.flush()
    }

    pub(super) fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.is_on = false;
        out.write_all(END.as_bytes())?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // After a failure or a panic, the message belongs on the normal screen.
        if self.is_on {
            let mut out = io::stderr();
            out.write_all(END.as_bytes()).ok();
        }
    }
}

/// Lines are overwritten as a whole, so that nothing flickers.
fn frame(text: &str, height: usize) -> String {
    let lines = text.lines().count();
    let shown = if lines > height {
        height.saturating_sub(1)
    } else {
        lines
    };
    let mut frame = TOP.to_owned();
    for (at, line) in text.lines().take(shown).enumerate() {
        if at > 0 {
            frame.push_str("\r\n");
        }
        frame.push_str(line);
        frame.push_str(CLEAR_LINE);
    }
    if lines > shown {
        let more = lines.saturating_sub(shown);
        frame.push_str(&format!("\r\n… {more} more lines{CLEAR_LINE}"));
    }
    frame.push_str(CLEAR_BELOW);
    frame
}

/// The current size in columns and rows.
pub(super) fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(SIZE, |(width, height)| (width.0.into(), height.0.into()))
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(frame("a\nb\n", 3), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
        let cut = "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n… 2 more lines\x1b[K\x1b[J";
        assert_eq!(frame("a\nb\nc\nd\n", 3), cut);
        assert_eq!(frame("", 3), "\x1b[H\x1b[J");
    }
}
