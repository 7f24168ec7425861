//! The view without a terminal: keys and changes in, cells out.

mod world;

use std::collections::BTreeMap;

use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use serde_json::json;

use self::world::{NOW_MS, few, key_of, many, rows, session, used};
use super::draw::{Paint, draw};
use super::keys::{Act, Question};
use super::model::{Model, Sort};
use crate::config::Config;

fn model(size: (u16, u16), sessions: Vec<serde_json::Value>) -> Model {
    let mut model = Model::new(size, Some("/home/dev".into()));
    model.update(&rows(sessions));
    model.now_ms = NOW_MS;
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Act> {
    let acts = keys.chars().filter_map(|key| {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            '^' => KeyCode::Home,
            '$' => KeyCode::End,
            key => KeyCode::Char(key),
        };
        let modifiers = KeyModifiers::NONE;
        model.take(&Event::Key(KeyEvent::new(code, modifiers)))
    });
    acts.collect()
}

fn mouse(model: &mut Model, kind: MouseEventKind, row: u16) {
    let (column, modifiers) = (5, KeyModifiers::NONE);
    let event = MouseEvent {
        kind,
        column,
        row,
        modifiers,
    };
    assert_eq!(model.take(&Event::Mouse(event)), None);
}

fn selected(model: &Model) -> &str {
    model.selected().map_or("", |item| &item.session)
}

fn terminal(model: &Model, is_coloured: bool) -> Terminal<TestBackend> {
    let (width, height) = model.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let paint = Paint::of(&Config::default(), is_coloured);
    terminal
        .draw(|frame| draw(model, &paint, frame.buffer_mut()))
        .unwrap();
    terminal
}

fn picture(model: &Model) -> String {
    let terminal = terminal(model, false);
    // The backend can't write down a screen without a cell.
    if model.size == (0, 0) {
        return String::new();
    }
    terminal.backend().to_string()
}

#[test]
fn the_view_at_every_width_with_none_few_and_many_sessions() {
    for width in [60, 80, 120] {
        for (name, sessions) in [("none", vec![]), ("few", few()), ("many", many(60))] {
            let mut model = model((width, 24), sessions);
            model.used = used(&model);
            model.settle();
            insta::assert_snapshot!(format!("top_{name}_{width}"), picture(&model));
        }
    }
}

#[test]
fn help_details_and_problems_lie_over_the_rows() {
    let mut model = model((80, 16), few());
    press(&mut model, "?");
    insta::assert_snapshot!("top_help", picture(&model));
    press(&mut model, "q");
    assert_eq!(press(&mut model, "\n"), [Act::Ask(Question::Details)]);
    assert!(picture(&model).contains("looking …"));
    let question = model.questions;
    model.answer(
        question.wrapping_sub(1),
        vec!["of another question".to_owned()],
    );
    model.answer(question, vec!["live (start-stamp)\u{1b}[2J".to_owned(); 40]);
    let shown = picture(&model);
    assert!(shown.contains("live (start-stamp)\\u{1b}[2J"), "{shown}");
    assert!(!shown.contains("of another question"), "{shown}");
    press(&mut model, "jjjj$\u{1b}p");
    assert!(picture(&model).contains("qwen-code: /home/dev/x/runtime.json: `pid` is not"));
}

#[test]
fn a_small_screen_says_so_and_none_is_too_small_to_draw() {
    for (width, height) in [(59, 24), (60, 5), (1, 1), (0, 0), (300, 6)] {
        let mut model = model((width, height), few());
        for line in 0..8 {
            mouse(&mut model, MouseEventKind::Down(MouseButton::Left), line);
        }
        press(&mut model, "jk$^?jk");
        let shown = picture(&model);
        let is_refused = shown.contains("whosup top needs 60x6");
        assert_eq!(is_refused, width == 59 || height == 5, "{shown}");
    }
}

#[test]
fn the_selection_stays_on_its_session_when_rows_move() {
    let mut sessions = few();
    let mut model = model((80, 24), sessions.clone());
    assert_eq!(selected(&model), "waits");
    press(&mut model, "j");
    assert_eq!(selected(&model), "works");
    // Another one waits, for longer: it comes first.
    sessions.push(session("first", "waiting", "/home/dev/a", 9_000));
    model.update(&rows(sessions.clone()));
    assert_eq!(model.row_ids().len(), 8);
    assert_eq!(selected(&model), "works");
    // The session is gone: the next row is selected.
    sessions.retain(|session| session["session_id"] != "works");
    model.update(&rows(sessions));
    assert_eq!(selected(&model), "died");
    model.update(&rows(vec![]));
    assert_eq!(selected(&model), "");
    assert!(press(&mut model, "jk\nmgrd$^").is_empty());
}

#[test]
fn keys_and_wheel_move_over_rows_and_never_beyond() {
    let mut model = model((80, 14), many(60));
    let first = selected(&model).to_owned();
    press(&mut model, "kk");
    assert_eq!(selected(&model), first);
    press(&mut model, "$");
    let last = selected(&model).to_owned();
    press(&mut model, "jj");
    assert_eq!(selected(&model), last);
    assert_eq!(model.top, model.row_ids().len() - model.height());
    press(&mut model, "^");
    assert_eq!((selected(&model), model.top), (first.as_str(), 0));
    for _ in 0..5 {
        mouse(&mut model, MouseEventKind::ScrollDown, 5);
    }
    assert_eq!(model.top, 15);
    let shown = picture(&model);
    assert!(shown.contains(selected(&model)), "{shown}");
    mouse(&mut model, MouseEventKind::Down(MouseButton::Left), 5);
    let clicked = model.row_ids()[model.top + 3].clone();
    assert!(clicked.is_some() && model.selected == clicked);
    // A project is no row.
    let project = model
        .row_ids()
        .iter()
        .skip(model.top)
        .position(Option::is_none);
    let line = u16::try_from(project.unwrap()).unwrap() + 2;
    mouse(&mut model, MouseEventKind::Down(MouseButton::Left), line);
    assert_eq!(model.selected, clicked);
}

#[test]
fn a_filter_shows_what_has_all_of_its_words() {
    let mut model = model((80, 24), few());
    press(&mut model, "/CODEX shopx\u{8}\n");
    assert_eq!(model.filter, "CODEX shop");
    assert_eq!(selected(&model), "died");
    assert_eq!(model.row_ids().iter().flatten().count(), 1);
    // A letter is a key again.
    press(&mut model, "s");
    assert_eq!(model.sort, Sort::Age);
    press(&mut model, "/zzz\n");
    assert!(picture(&model).contains("No session matches the filter."));
    assert!(press(&mut model, "\u{1b}").is_empty());
    assert_eq!(model.row_ids().iter().flatten().count(), 4);
    assert_eq!(press(&mut model, "\u{1b}"), [Act::Quit]);
}

#[test]
fn rows_are_sorted_by_what_was_chosen_and_what_is_not_known_comes_last() {
    let mut model = model((80, 24), few());
    model.used = used(&model);
    let mut order = |keys: &str| {
        press(&mut model, keys);
        press(&mut model, "^");
        (model.sort.name(), selected(&model).to_owned())
    };
    assert_eq!(order(""), ("state", "waits".to_owned()));
    assert_eq!(order("s"), ("age", "died".to_owned()));
    assert_eq!(order("s"), ("turn", "works".to_owned()));
    assert_eq!(order("s"), ("context", "works".to_owned()));
    assert_eq!(order("s"), ("cpu", "works".to_owned()));
    assert_eq!(order("s"), ("memory", "waits".to_owned()));
    assert_eq!(order("s"), ("state", "waits".to_owned()));
}

#[test]
fn what_is_done_is_done_to_the_selected_session() {
    let mut model = model((80, 24), few());
    assert_eq!(press(&mut model, "g"), [Act::Go]);
    assert_eq!(press(&mut model, "m"), [Act::Ask(Question::Messages)]);
    press(&mut model, "q");
    assert!(press(&mut model, "r").is_empty());
    assert!(model.note.as_ref().unwrap().contains("cannot be resumed"));
    // The one that died, then a process without a session.
    press(&mut model, "jj");
    let copied = "cd /home/dev/shop && codex resume 'a b'".to_owned();
    assert_eq!(press(&mut model, "r"), [Act::Copy(copied)]);
    assert_eq!(press(&mut model, "d"), [Act::Dismiss]);
    press(&mut model, "$");
    assert!(press(&mut model, "gdmr").is_empty());
    assert_eq!(press(&mut model, "\n"), [Act::Ask(Question::Details)]);
}

#[test]
fn a_command_that_others_may_have_written_is_not_copied() {
    let mut session = session("odd", "idle", "/w", 5);
    session["resume"] =
        json!({ "argv": ["sh", "-c", "x"], "cwd": null, "env": {}, "trusted": false });
    let mut model = model((80, 24), vec![session]);
    assert!(press(&mut model, "r").is_empty());
    assert!(model.note.as_ref().unwrap().starts_with("not copied"));
}

#[test]
fn control_characters_are_keys_and_texts_of_agents_steer_nothing() {
    let mut odd = session("odd", "working", "/w/\u{1b}]0;x\u{7}", 5);
    odd["title"] = json!("a\u{1b}[2Jb\u{202e}c 会话恢复会话恢复会话恢复 e\u{301}\u{200d}");
    let mut model = model((60, 10), vec![odd]);
    let shown = terminal(&model, true);
    for cell in shown.backend().buffer().content() {
        assert!(!cell.symbol().contains(['\u{1b}', '\u{7}', '\u{202e}']));
    }
    let ctrl = |key| Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
    assert_eq!(model.take(&ctrl('c')), Some(Act::Quit));
    assert_eq!(model.take(&ctrl('z')), Some(Act::Suspend));
    press(&mut model, "/");
    assert_eq!(model.take(&ctrl('c')), Some(Act::Quit));
}

#[test]
fn states_have_their_colours_unless_there_are_none() {
    let model = model((80, 24), few());
    let colours = |is_coloured| {
        let terminal = terminal(&model, is_coloured);
        let cells = terminal.backend().buffer().content();
        let mut counts = BTreeMap::new();
        for cell in cells {
            *counts.entry(format!("{:?}", cell.fg)).or_insert(0) += 1;
        }
        counts
    };
    let with = colours(true);
    for colour in [Color::Yellow, Color::Green, Color::Red, Color::Magenta] {
        assert!(with.contains_key(&format!("{colour:?}")), "{with:?}");
    }
    assert_eq!(colours(false).into_keys().collect::<Vec<_>>(), ["Reset"]);
}

#[test]
fn a_session_of_a_shared_daemon_has_no_numbers_of_its_own() {
    let mut model = model((80, 24), few());
    model.used = used(&model);
    for resources in model.used.values_mut() {
        resources.is_shared = true;
        resources.tree = None;
    }
    let item = model.selected().unwrap();
    assert!(model.used.contains_key(&key_of("claude-code", "waits")));
    assert_eq!(model.tree_of(item), None);
}
