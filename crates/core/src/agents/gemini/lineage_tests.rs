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
    let path = Lineage { chats, prompts }.path_of(&id(first));
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
    // Somebody resumed it later.
    let mut resumed = chats[1].clone();
    resumed.starts_ms.push(ms(90));
    assert_eq!(launches(&resumed), [ms(90)]);
}

#[test]
fn a_new_session_that_is_not_there_yet_is_not_known() {
    let chats = [chat("a", 8, &[("one", 20)])];
    let prompts = typed(&[("a", "one", 20), ("a", "/clear", 40)]);
    check(&chats, &prompts, "a", &[("a", 20)], Some(40));
}

#[test]
fn two_that_were_cleared_together_are_not_told_apart() {
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
    assert_eq!(lineage.path_of(&id("a")).quit_at_ms, Some(ms(30)));
}
