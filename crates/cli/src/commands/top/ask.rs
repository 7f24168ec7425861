//! What commands answer about one row, asked in a thread of its own.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::thread::Builder;

use whosup_core::process::Pid;

use super::item::{Item, RowId};
use super::keys::Question;
use crate::app::{App, Face, World};
use crate::commands::{dismiss, show, why};
use crate::exit::ExitStatus;
use crate::id::IdArgs;
use crate::text;

/// How many messages are shown.
const MESSAGES: usize = 50;

/// Asks commands.
pub(super) struct Asking {
    /// The configuration that the command line names.
    pub(super) config_file: Option<PathBuf>,
    /// Where answers go, with the number of the question.
    pub(super) answers: Sender<(u64, Vec<String>)>,
}

impl Asking {
    /// Asks about a row, and calls `wake` when the answer has come.
    pub(super) fn ask(
        &self,
        item: &Item,
        (number, question): (u64, Question),
        width: u16,
        wake: impl Fn() + Send + 'static,
    ) -> anyhow::Result<()> {
        let (config_file, answers) = (self.config_file.clone(), self.answers.clone());
        let (item, width) = (item.clone(), usize::from(width));
        Builder::new().name("question".to_owned()).spawn(move || {
            let lines = answer(config_file, width, |app| put(app, &item, question));
            // Whoever has ended wants no answer.
            answers.send((number, lines)).ok();
            wake();
        })?;
        Ok(())
    }

    /// Hides a session; returns what came of it.
    pub(super) fn dismiss(&self, item: &Item) -> String {
        let Some(id) = id_of(item) else {
            return String::new();
        };
        let arguments = dismiss::DismissArgs { id, undo: false };
        let lines = answer(self.config_file.clone(), usize::MAX, |app| {
            dismiss::run(app, &arguments)
        });
        lines.join(" ")
    }
}

fn id_of(item: &Item) -> Option<IdArgs> {
    let (id, home) = item.named()?;
    let home = Some(home);
    Some(IdArgs { id, home })
}

fn put(app: &mut App<'_>, item: &Item, question: Question) -> anyhow::Result<ExitStatus> {
    let (Some(id), RowId::Session(_)) = (id_of(item), &item.id) else {
        let pid = Pid::new(item.pid.unwrap_or_default())?;
        return why::run(app, &why::WhyArgs::of_process(pid));
    };
    match question {
        Question::Messages => show::run_messages(app, &id, MESSAGES),
        Question::Details => {
            why::run(app, &why::WhyArgs::of_session(&id))?;
            writeln!(app.out)?;
            show::run(app, &show::ShowArgs::of(id))
        }
    }
}

/// What a command prints, errors and all, in lines that fit.
fn answer(
    config_file: Option<PathBuf>,
    width: usize,
    run: impl FnOnce(&mut App<'_>) -> anyhow::Result<ExitStatus>,
) -> Vec<String> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut app = App {
        world: World::here(config_file),
        out: &mut out,
        err: &mut err,
        face: Face {
            is_coloured: false,
            width: Some(width),
        },
        is_verbose: false,
    };
    if let Err(error) = run(&mut app) {
        crate::exit::report(&error, app.err);
    }
    out.extend(err);
    let text = String::from_utf8_lossy(&out);
    let lines = text::lines(&text).into_iter();
    lines.flat_map(|line| folded(&line, width)).collect()
}

/// A line in parts of at most so many columns, broken between words where it can be.
fn folded(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut parts = Vec::new();
    let mut part = String::new();
    for character in line.chars() {
        part.push(character);
        if text::width(part.trim_end()) > width {
            let end = part.trim_end().rfind(' ').filter(|end| *end > 0);
            // Without a blank, all but the last character fits.
            let end = end.map_or(part.len() - character.len_utf8(), |end| end + 1);
            let rest = part.split_off(end);
            parts.push(std::mem::replace(&mut part, rest));
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::folded;
    use crate::text;

    #[test]
    fn lines_are_folded_between_words_and_nothing_is_lost() {
        assert_eq!(folded("one two three", 8), ["one two ", "three"]);
        assert_eq!(folded("one two", 7), ["one two"]);
        assert_eq!(folded("", 5), [""]);
        for text in [
            "abcdefgh ij",
            "会话恢复 会话",
            " leading",
            "a  b",
            "e\u{301}e\u{301}e",
        ] {
            for width in 2..12 {
                let parts = folded(text, width);
                assert_eq!(parts.concat(), text);
                let widths = parts.iter().map(|part| text::width(part.trim_end()));
                assert!(widths.max() <= Some(width), "{parts:?}");
            }
        }
    }
}
