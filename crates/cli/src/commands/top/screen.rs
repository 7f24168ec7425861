//! A terminal that is taken over, and given back as it was however this program ends.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::Show;
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::style::Print;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use super::draw::{Paint, draw};
use super::input::{MOUSE_OFF, MOUSE_ON};
use super::model::Model;

/// The terminal is taken over now.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over until this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
    direct: File,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn enter() -> io::Result<Self> {
        // Standard output itself is locked by whoever runs commands.
        let direct = || Ok::<_, io::Error>(File::from(io::stdout().as_fd().try_clone_to_owned()?));
        give_back_before_a_panic_is_reported(direct()?);
        let backend = CrosstermBackend::new(BufWriter::new(direct()?));
        let mut screen = Self {
            terminal: Terminal::new(backend)?,
            direct: direct()?,
        };
        screen.take()?;
        Ok(screen)
    }

    /// Takes the terminal over anew, after it was given back or its mode was changed.
    pub(super) fn take(&mut self) -> io::Result<()> {
        IS_TAKEN.store(true, Ordering::SeqCst);
        // Otherwise it would be taken to be in this mode still.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(self.direct, EnterAlternateScreen, Print(MOUSE_ON))?;
        // Everything is drawn anew. `Terminal::clear` would ask the terminal where the
        // cursor is, and fail when the answer is late.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Gives the terminal back.
    pub(super) fn give_back(&mut self) -> io::Result<()> {
        give_back(&mut self.direct)
    }

    /// Shows what has changed since the last time.
    pub(super) fn show(&mut self, model: &mut Model, paint: &Paint) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            if model.size != (area.width, area.height) {
                model.size = (area.width, area.height);
                model.settle();
            }
            draw(model, paint, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Puts a text on the clipboard of whoever sits at the terminal (OSC 52 of xterm).
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        write!(self.direct, "\x1b]52;c;{text}\x07")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing back.
        self.give_back().ok();
    }
}

fn give_back(out: &mut File) -> io::Result<()> {
    if !IS_TAKEN.swap(false, Ordering::SeqCst) {
        return Ok(());
    }
    let left = execute!(out, Print(MOUSE_OFF), LeaveAlternateScreen, Show);
    disable_raw_mode().and(left)
}

/// The report belongs on the usual screen. Other threads' panics end no view.
fn give_back_before_a_panic_is_reported(mut out: File) {
    let thread = std::thread::current().id();
    let report = panic::take_hook();
    let out = std::sync::Mutex::new(move || give_back(&mut out).ok());
    panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == thread
            && let Ok(mut give_back) = out.lock()
        {
            give_back();
        }
        report(panic);
    }));
}
