//! Where processes went, world by world. Times are seconds.

use super::*;

const fn ms(seconds: i64) -> i64 {
    1_795_800_000_000 + seconds * 1_000
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn chat(session: &str, born: i64, prompts: &[(&str, i64)]) -> Chat {
    let sent = prompts.iter().rev();
    Chat {
        path: Some(format!("/h/{session}.jsonl").into()),
        starts_ms: vec![ms(born)],
        last_at_ms: Some(ms(prompts.last().map_or(born, |(_, at)| at + 1))),
        prompts: sent
            .map(|(text, at)| ((*text).to_owned(), ms(*at)))
            .collect(),
        has_conversation: !prompts.is_empty(),
        ..Chat::new(id(session))
    }
}

fn typed(entries: &[(&str, &str, i64)]) -> Prompts {
    let typed = entries.iter().map(|(first, text, at)| Typed {
        first_session: (*first).to_owned(),
        text: (*text).to_owned(),
        at_ms: ms(*at),
    });
    Prompts {
        typed: typed.collect(),
        is_cut: false,
    }
}

#[track_caller]
fn check(
    chats: &[Chat],
    prompts: &Prompts,
    first: &str,
    visits: &[(&str, i64)],
    lost: Option<i64>,
) {
    let lineage = Lineage { chats, prompts };
    let first = chats.iter().find(|chat| chat.id == id(first)).unwrap();
    let path = lineage.paths_of(first).pop().unwrap_or_default();
    let found: Vec<(&str, i64)> = path
        .visits
        .iter()
        .map(|(id, at)| (id.as_str(), *at))
        .collect();
    let right: Vec<(&str, i64)> = visits.iter().map(|(id, at)| (*id, ms(*at))).collect();
    assert_eq!((found, path.lost_at_ms), (right, lost.map(ms)));
}

#[test]
fn what_was_typed_leads_from_one_session_to_the_next() {
    let chats = [
        chat("a", 8, &[("one", 20)]),
        chat("b", 41, &[("two", 50)]),
        chat("x", 60, &[("three", 70)]),
    ];
    let prompts = typed(&[
        ("a", "one", 20),
        ("a", "/clear", 40),
        ("a", "two", 50),
        ("x", "three", 70),
    ]);
    check(
        &chats,
        &prompts,
        "a",
        &[("a", 20), ("b", 40), ("b", 50)],
        None,
    );
    check(&chats, &prompts, "x", &[("x", 70)], None);
    check(&chats, &prompts, "b", &[], None);
    let lineage = Lineage {
        chats: &chats,
        prompts: &prompts,
    };
    let launches = |chat: &Chat| lineage.launches_of(chat).to_vec();
    let all: Vec<Vec<i64>> = chats.iter().map(launches).collect();
    let starts = chats.each_ref().map(|chat| chat.starts_ms.clone());
    assert_eq!(all, [starts[0].clone(), Vec::new(), starts[2].clone()]);
    // A process resumed it later.
    let mut resumed = chats[1].clone();
    resumed.starts_ms.push(ms(90));
    assert_eq!(launches(&resumed), [ms(90)]);
    // Text that was typed before that shows that a process was launched with it at first.
    let launched = typed(&[("a", "/clear", 40), ("b", "two", 50)]);
    let lineage = Lineage {
        prompts: &launched,
        ..lineage
    };
    assert_eq!(lineage.launches_of(&resumed), resumed.starts_ms);
}

#[test]
fn a_new_session_that_is_not_there_yet_is_not_known() {
    let chats = [chat("a", 8, &[("one", 20)])];
    let prompts = typed(&[("a", "one", 20), ("a", "/clear", 40)]);
    check(&chats, &prompts, "a", &[("a", 20)], Some(40));
}

#[test]
fn two_that_were_cleared_together_stay_ambiguous() {
    let chats = [
        chat("a", 1, &[]),
        chat("b", 2, &[]),
        chat("c", 41, &[]),
        chat("d", 42, &[]),
    ];
    let prompts = typed(&[("a", "/clear", 40), ("b", "/clear", 41)]);
    check(&chats, &prompts, "a", &[], Some(40));
    check(&chats, &prompts, "b", &[], Some(41));
}

/// What the other terminal logged is missing.
#[test]
fn a_text_that_two_sessions_have_from_that_minute_leads_to_neither() {
    let chats = [
        chat("a", 0, &[("go on", 60)]),
        chat("b", 10, &[("go on", 62)]),
    ];
    let prompts = typed(&[("a", "go on", 60)]);
    check(&chats, &prompts, "a", &[], None);
    check(&chats[..1], &prompts, "a", &[("a", 60)], None);
}

#[test]
fn who_browses_sessions_is_in_none_that_is_known_until_something_is_typed() {
    let chats = [
        chat("a", 8, &[("one", 20)]),
        chat("old", -900, &[("before", -800), ("two", 60)]),
    ];
    let browsed = [("a", "one", 20), ("a", "/resume", 40)];
    check(&chats, &typed(&browsed), "a", &[("a", 20)], Some(40));
    let prompted = [("a", "one", 20), ("a", "/resume", 40), ("a", "two", 60)];
    check(
        &chats,
        &typed(&prompted),
        "a",
        &[("a", 20), ("old", 60)],
        None,
    );
}

#[test]
fn who_has_quit_is_gone() {
    let chats = [chat("a", 8, &[])];
    let prompts = typed(&[("a", "/quit", 30)]);
    let lineage = Lineage {
        chats: &chats,
        prompts: &prompts,
    };
    let quit_at_ms = |chat: &Chat| lineage.paths_of(chat)[0].quit_at_ms;
    assert_eq!(quit_at_ms(&chats[0]), Some(ms(30)));
    // Either of two may have.
    let mut twice = chats[0].clone();
    twice.starts_ms.push(ms(20));
    assert_eq!(quit_at_ms(&twice), None);
}

#[test]
fn two_that_were_launched_with_one_session_are_separated_by_directory() {
    let mut first = chat("a", 8, &[("one", 20), ("three", 70), ("four", 90)]);
    first.starts_ms.push(ms(60));
    let chats = [first, chat("b", 41, &[("two", 50)])];
    let entries = [
        ("a", "one", 20),
        ("a", "/clear", 40),
        ("a", "two", 50),
        ("a", "three", 70),
        ("a", "four", 90),
    ];
    let prompts = typed(&entries);
    let lineage = Lineage {
        chats: &chats,
        prompts: &prompts,
    };
    let visits = |path: &Path| -> Vec<(String, i64)> {
        let visits = path.visits.iter();
        visits.map(|(id, at)| (id.to_string(), *at)).collect()
    };
    let [older, younger] = &lineage.paths_of(&chats[0])[..] else {
        panic!("two launches");
    };
    let at = |id: &str, seconds: i64| (id.to_owned(), ms(seconds));
    assert_eq!(visits(older), [at("a", 20), at("b", 40), at("b", 50)]);
    assert_eq!(visits(younger), [at("a", 70), at("a", 90)]);
    // Where a command leads that either of them may have been given is not known.
    let prompts = typed(&[&entries[..], &[("a", "/clear", 100)]].concat());
    let lineage = Lineage {
        chats: &chats,
        prompts: &prompts,
    };
    let lost = lineage.paths_of(&chats[0]);
    let lost = lost.iter().map(|path| path.lost_at_ms);
    assert_eq!(lost.collect::<Vec<_>>(), [Some(ms(100)); 2]);
}
