//! What keys and the mouse do. Pure.

use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};

use super::item::{Item, RowId};
use super::model::{Model, Sheet};

/// How long a filter may be, in characters.
const FILTER_CHARS_MAX: usize = 200;
/// How many lines a turn of the wheel scrolls.
const WHEEL_LINES: isize = 3;

/// The keys, for help.
pub(super) const KEYS: [(&str, &str); 12] = [
    ("Up Down, j k", "select"),
    ("PgUp PgDn, Home End", "select far away"),
    ("Enter", "details and evidence"),
    ("m", "last messages"),
    ("g", "go to the session's pane"),
    ("r", "copy the command that resumes it"),
    ("d", "dismiss an exited session"),
    ("/", "filter; Enter keeps it, Esc clears it"),
    ("s", "sort by state, age, turn, context, cpu, memory"),
    ("p", "what could not be read"),
    ("Ctrl-Z", "suspend"),
    ("q, Esc, Ctrl-C", "quit"),
];

/// What is to be done outside of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Quit,
    Suspend,
    /// Go to the pane of the selected session.
    Go,
    /// Hide the selected session.
    Dismiss,
    /// Copy this text.
    Copy(String),
    /// Ask this about the selected row; the answer goes to the sheet that awaits it.
    Ask(Question),
}

/// What can be asked about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Details,
    Messages,
}

impl Model {
    /// Takes an event of the terminal.
    pub(super) fn take(&mut self, event: &Event) -> Option<Act> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.press(*key),
            Event::Mouse(mouse) => {
                match (mouse.kind, self.sheet.is_some()) {
                    (MouseEventKind::ScrollUp, false) => self.scroll(-WHEEL_LINES),
                    (MouseEventKind::ScrollDown, false) => self.scroll(WHEEL_LINES),
                    (MouseEventKind::ScrollUp, true) => self.turn(-WHEEL_LINES),
                    (MouseEventKind::ScrollDown, true) => self.turn(WHEEL_LINES),
                    (MouseEventKind::Down(MouseButton::Left), false) => self.click(mouse.row),
                    _ => {}
                }
                None
            }
            _ => None,
        }
    }

    fn press(&mut self, key: KeyEvent) -> Option<Act> {
        self.note = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Act::Quit),
                KeyCode::Char('z') => Some(Act::Suspend),
                _ => None,
            };
        }
        if self.is_typing {
            self.type_filter(key.code);
            return None;
        }
        let page = isize::try_from(self.height()).unwrap_or(isize::MAX);
        let lines = match key.code {
            KeyCode::Up | KeyCode::Char('k') => Some(-1),
            KeyCode::Down | KeyCode::Char('j') => Some(1),
            KeyCode::PageUp => Some(-page),
            KeyCode::PageDown => Some(page),
            KeyCode::Home => Some(isize::MIN),
            KeyCode::End => Some(isize::MAX),
            _ => None,
        };
        match (lines, self.sheet.is_some()) {
            (Some(lines), true) => self.turn(lines),
            (Some(lines), false) => self.move_by(lines),
            (None, true) => {
                if matches!(
                    key.code,
                    KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?')
                ) {
                    self.sheet = None;
                }
            }
            (None, false) => return self.command(key.code),
        }
        None
    }

    fn command(&mut self, key: KeyCode) -> Option<Act> {
        match key {
            KeyCode::Char('q') => return Some(Act::Quit),
            KeyCode::Esc if self.filter.is_empty() => return Some(Act::Quit),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('?') => self.open_help(),
            KeyCode::Char('p') => self.open_problems(),
            KeyCode::Enter => return self.ask(Question::Details),
            KeyCode::Char('m') => return self.ask(Question::Messages),
            KeyCode::Char('g') => return self.of_session(|_| Ok(Act::Go)),
            KeyCode::Char('d') => return self.of_session(|_| Ok(Act::Dismiss)),
            KeyCode::Char('r') => return self.of_session(copy_resume),
            _ => {}
        }
        self.settle();
        None
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(character) if self.filter.chars().count() < FILTER_CHARS_MAX => {
                self.filter.push(character);
            }
            _ => {}
        }
        self.settle();
    }

    fn ask(&mut self, question: Question) -> Option<Act> {
        let item = self.selected()?;
        if question == Question::Messages && matches!(item.id, RowId::Process(..)) {
            return self.of_session(|_| Ok(Act::Ask(question)));
        }
        let name = if item.session.is_empty() {
            format!("{} process {}", item.agent, item.pid.unwrap_or_default())
        } else {
            format!("{} session {}", item.agent, item.session)
        };
        self.questions = self.questions.wrapping_add(1);
        self.sheet = Some(Sheet {
            title: name,
            lines: vec!["looking …".to_owned()],
            top: 0,
            awaits: Some(self.questions),
        });
        Some(Act::Ask(question))
    }

    /// Shows an answer, if its sheet is still open.
    pub(super) fn answer(&mut self, question: u64, lines: Vec<String>) {
        if let Some(sheet) = &mut self.sheet
            && sheet.awaits == Some(question)
        {
            sheet.lines = lines;
            sheet.awaits = None;
        }
    }

    fn of_session(&mut self, act: impl Fn(&Item) -> Result<Act, String>) -> Option<Act> {
        let item = self.selected()?;
        let done = match item.id {
            RowId::Session(_) => act(item),
            RowId::Process(..) => Err("no session is known of this process".to_owned()),
        };
        done.map_err(|why| self.note = Some(why)).ok()
    }

    fn open_help(&mut self) {
        let keys = KEYS.iter().map(|(key, does)| format!("{key:20}  {does}"));
        self.open("Keys", keys.collect());
    }

    fn open_problems(&mut self) {
        if self.problems.is_empty() {
            self.note = Some("everything could be read".to_owned());
        } else {
            self.open("What could not be read", self.problems.clone());
        }
    }

    fn open(&mut self, title: &str, lines: Vec<String>) {
        self.sheet = Some(Sheet {
            title: title.to_owned(),
            lines,
            top: 0,
            awaits: None,
        });
    }

    /// Scrolls the sheet.
    fn turn(&mut self, lines: isize) {
        let height = self.height();
        if let Some(sheet) = &mut self.sheet {
            let last = sheet.lines.len().saturating_sub(height);
            sheet.top = sheet.top.saturating_add_signed(lines).min(last);
        }
    }
}

fn copy_resume(item: &Item) -> Result<Act, String> {
    match &item.resume {
        Some(resume) if resume.is_trusted => Ok(Act::Copy(resume.line.clone())),
        Some(resume) => Err(format!(
            "not copied, since others may have written it: {}",
            resume.shown
        )),
        None => Err(
            "this session cannot be resumed: it is live, or its agent has no command".to_owned(),
        ),
    }
}
