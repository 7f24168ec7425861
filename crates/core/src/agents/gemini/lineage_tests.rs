//! Who may be in which session, world by world. Times are seconds.

use whosup_sidecar::SessionId;

use super::*;

fn ms(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    let ms = (seconds * 1_000.0) as i64;
    1_795_800_000_000 + ms
}

fn server(pid: i64, began: f64) -> Server {
    Server {
        pid: Pid::new(pid).unwrap(),
        began_at_ms: ms(began),
        named: None,
        resumes: false,
        is_one_shot: false,
        has_first_prompt: false,
        typed_until_ms: None,
        shown_until_ms: None,
    }
}

fn chat(id: &str, born: f64, prompts: &[(&str, f64)]) -> Chat {
    let sent = prompts
        .iter()
        .rev()
        .map(|(text, at)| ((*text).to_owned(), ms(*at)));
    let last = prompts.last().map_or(born, |(_, at)| at + 1.0);
    Chat {
        id: SessionId::parse(id).unwrap(),
        path: Some(format!("/h/{id}.jsonl").into()),
        starts_ms: vec![ms(born)],
        minute_ms: None,
        last_at_ms: Some(ms(last)),
        perhaps_until_ms: None,
        torn_until_ms: None,
        prompts: sent.collect(),
        has_conversation: !prompts.is_empty(),
    }
}

/// Its file was removed and made anew: only the minute of its beginning is left.
fn made_anew(id: &str, minute: f64, prompts: &[(&str, f64)]) -> Chat {
    Chat {
        starts_ms: Vec::new(),
        minute_ms: Some(ms(minute)),
        ..chat(id, minute, prompts)
    }
}

fn typed(entries: &[(&str, &str, f64)]) -> Prompts {
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
fn check(servers: &[Server], chats: &[Chat], prompts: &Prompts, right: &[(&str, &[i32], bool)]) {
    let fates = fates(servers, chats, prompts);
    let found: Vec<(&str, Vec<i32>, bool)> = fates
        .iter()
        .map(|(id, fate)| {
            let owners = fate.owners.iter().map(|pid| pid.get()).collect();
            (id.as_str(), owners, fate.is_first)
        })
        .collect();
    let right: Vec<(&str, Vec<i32>, bool)> = right
        .iter()
        .map(|(id, owners, first)| (*id, owners.to_vec(), *first))
        .collect();
    assert_eq!(found, right);
}

#[test]
fn a_process_may_be_in_the_session_that_was_made_soon_after_its_start() {
    let chats = [
        chat("a", 8.0, &[]),
        chat("b", -9.0, &[]),
        chat("c", 100.0, &[]),
    ];
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[], true), ("c", &[], true)];
    check(&[server(1, 0.0)], &chats, &Prompts::default(), right);
}

#[test]
fn what_was_typed_leads_from_one_session_to_the_next() {
    let chats = [
        chat("a", 8.0, &[("one", 20.0)]),
        chat("b", 40.4, &[("two", 50.0)]),
        // Another process has been here, and was killed.
        chat("x", 60.0, &[("three", 70.0)]),
    ];
    let prompts = typed(&[
        ("a", "one", 19.7),
        ("a", "/clear", 40.0),
        ("a", "two", 49.7),
        ("x", "three", 69.7),
    ]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[1], false), ("x", &[], true)];
    check(&[server(1, 0.0)], &chats, &prompts, right);
}

#[test]
fn after_clear_the_new_session_is_known_before_its_first_prompt() {
    let chats = [chat("a", 8.0, &[("one", 20.0)]), chat("b", 40.4, &[])];
    let prompts = typed(&[("a", "one", 19.7), ("a", "/clear", 40.0)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[1], false)];
    check(&[server(1, 0.0)], &chats, &prompts, right);
    // The new one is not there yet: the process is in neither.
    let right: &[(&str, &[i32], bool)] = &[("a", &[], true)];
    check(&[server(1, 0.0)], &chats[..1], &prompts, right);
}

#[test]
fn two_processes_that_clear_at_once_may_have_made_either() {
    let chats = [
        chat("a", 8.0, &[("one", 20.0)]),
        chat("b", 108.0, &[("two", 120.0)]),
        chat("c", 140.4, &[]),
    ];
    let servers = [server(1, 0.0), server(2, 100.0)];
    let mut entries = vec![
        ("a", "one", 19.7),
        ("b", "two", 119.7),
        ("a", "/clear", 140.0),
        ("b", "/clear", 140.1),
    ];
    let nobody: &[(&str, &[i32], bool)] = &[("a", &[], true), ("b", &[], true), ("c", &[], false)];
    check(&servers, &chats, &typed(&entries), nobody);
    // What is typed next tells whose it is.
    let chats = [
        chats[0].clone(),
        chats[1].clone(),
        chat("c", 140.4, &[("three", 150.0)]),
    ];
    entries.push(("b", "three", 149.8));
    let right: &[(&str, &[i32], bool)] = &[("a", &[], true), ("b", &[2], true), ("c", &[2], false)];
    check(&servers, &chats, &typed(&entries), right);
}

#[test]
fn a_session_that_was_removed_and_made_anew_is_known_by_its_minute() {
    // Process 2 has removed the silent session of process 1.
    let chats = [made_anew("a", 0.0, &[("one", 90.0)]), chat("b", 82.0, &[])];
    let servers = [server(1, 20.0), server(2, 75.0)];
    let prompts = typed(&[("a", "one", 89.8)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[2], true)];
    check(&servers, &chats, &prompts, right);
}

#[test]
fn the_silent_session_of_the_youngest_process_is_its_own() {
    // It has removed the one of process 1, which is in none on disk.
    let servers = [server(1, 0.0), server(2, 12.0)];
    let chats = [chat("b", 21.0, &[])];
    check(&servers, &chats, &Prompts::default(), &[("b", &[2], true)]);
    // Another one began after both and is gone: it may have removed either.
    let chats = [chat("b", 21.0, &[]), chat("x", 300.0, &[("fix it", 300.5)])];
    let right: &[(&str, &[i32], bool)] = &[("b", &[1, 2], true), ("x", &[], true)];
    check(&servers, &chats, &Prompts::default(), right);
}

#[test]
fn the_youngest_process_has_not_lost_its_header() {
    // By their dates either could have begun with either.
    let servers = [server(1, 43.0), server(2, 54.0)];
    let chats = [
        made_anew("a", 0.0, &[("one", 90.0)]),
        chat("b", 57.0, &[("two", 80.0)]),
    ];
    let prompts = typed(&[("b", "two", 79.8), ("a", "one", 89.8)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[2], true)];
    check(&servers, &chats, &prompts, right);
    // Alone, it may have begun with either: whoever has removed the one may
    // have begun with the other.
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[1], true)];
    check(&servers[..1], &chats, &prompts, right);
}

#[test]
fn a_session_whose_file_was_removed_leads_on_by_what_was_typed() {
    let removed = Chat {
        last_at_ms: Some(ms(60.0)),
        ..Chat::new(SessionId::parse("a").unwrap())
    };
    let servers = [server(1, 0.0), server(2, 12.0), server(3, 80.0)];
    let chats = [
        removed,
        chat("b", 18.0, &[("two", 30.0)]),
        chat("c", 60.4, &[("three", 70.0)]),
        chat("d", 88.0, &[]),
    ];
    let prompts = typed(&[
        ("b", "two", 29.8),
        ("a", "one", 50.0),
        ("a", "/clear", 60.0),
        ("a", "three", 69.8),
    ]);
    let right: &[(&str, &[i32], bool)] = &[
        ("a", &[], true),
        ("b", &[2], true),
        ("c", &[1], false),
        ("d", &[3], true),
    ];
    check(&servers, &chats, &prompts, right);
}

#[test]
fn a_slow_start_counts_only_where_nothing_was_made_sooner() {
    let slow: &[(&str, &[i32], bool)] = &[("a", &[1], true)];
    check(
        &[server(1, 0.0)],
        &[chat("a", 40.0, &[])],
        &Prompts::default(),
        slow,
    );
    let chats = [chat("a", 8.0, &[]), chat("b", 40.0, &[])];
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[], true)];
    check(&[server(1, 0.0)], &chats, &Prompts::default(), right);
}

#[test]
fn prompts_that_nobody_typed_are_of_one_shot_runs() {
    let chats = [
        chat("a", 8.0, &[("one", 20.0)]),
        chat("x", 15.0, &[("fix it", 15.5)]),
    ];
    let prompts = typed(&[("a", "one", 19.7)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("x", &[], true)];
    check(&[server(1, 0.0)], &chats, &prompts, right);
    let one_shot = Server {
        is_one_shot: true,
        ..server(2, 7.0)
    };
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("x", &[2], true)];
    check(&[server(1, 0.0), one_shot], &chats, &prompts, right);
    // Where the first prompt stood in the arguments it may be either.
    let prompted = Server {
        has_first_prompt: true,
        ..server(1, 0.0)
    };
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("x", &[1], true)];
    check(&[prompted], &chats, &prompts, right);
}

#[test]
fn arguments_that_name_a_session_name_the_first() {
    let named = Server {
        named: Some("a".to_owned()),
        ..server(1, 100.0)
    };
    let chats = [chat("a", 8.0, &[("one", 20.0)]), chat("b", 105.0, &[])];
    let prompts = typed(&[("a", "one", 19.7)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[], true)];
    check(std::slice::from_ref(&named), &chats, &prompts, right);
    // It has gone on.
    let prompts = typed(&[("a", "one", 19.7), ("a", "/clear", 104.7)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[1], false)];
    check(&[named], &chats, &prompts, right);
}

#[test]
fn a_session_that_is_taken_up_has_a_second_start() {
    let taken_up = Chat {
        starts_ms: vec![ms(8.0), ms(110.0)],
        ..chat("a", 8.0, &[("one", 20.0)])
    };
    let latest = Server {
        resumes: true,
        ..server(1, 100.0)
    };
    let prompts = typed(&[("a", "one", 19.7), ("a", "/quit", 30.0)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true)];
    check(std::slice::from_ref(&latest), &[taken_up], &prompts, right);
    // The mark is gone: what was typed since tells.
    let silent = [chat("a", 8.0, &[("one", 20.0)])];
    check(
        std::slice::from_ref(&latest),
        &silent,
        &prompts,
        &[("a", &[], true)],
    );
    let spoken = [made_anew("a", 0.0, &[("again", 130.0)])];
    let prompts = typed(&[
        ("a", "one", 19.7),
        ("a", "/quit", 30.0),
        ("a", "again", 129.8),
    ]);
    check(&[latest], &spoken, &prompts, right);
}

#[test]
fn a_process_that_browses_sessions_may_be_in_any_until_somebody_types() {
    let chats = [
        chat("a", -99.0, &[("old", -90.0)]),
        chat("b", 8.0, &[("one", 20.0)]),
    ];
    let mut entries = vec![
        ("a", "old", -90.2),
        ("b", "one", 19.7),
        ("b", "/resume", 30.0),
    ];
    let nobody: &[(&str, &[i32], bool)] = &[("a", &[], true), ("b", &[], true)];
    check(&[server(1, 0.0)], &chats, &typed(&entries), nobody);
    let chats = [
        chat("a", -99.0, &[("old", -90.0), ("back", 40.0)]),
        chats[1].clone(),
    ];
    entries.push(("b", "back", 39.8));
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[], true)];
    check(&[server(1, 0.0)], &chats, &typed(&entries), right);
}

#[test]
fn a_process_that_was_quit_is_gone() {
    let chats = [
        chat("a", 8.0, &[("one", 20.0)]),
        chat("b", 12.0, &[("two", 25.0)]),
    ];
    let prompts = typed(&[("a", "one", 19.7), ("b", "two", 24.7), ("b", "/quit", 40.0)]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[1], true), ("b", &[], true)];
    check(&[server(1, 0.0)], &chats, &prompts, right);
}

#[test]
fn of_equal_prompts_the_nearest_counts() {
    let chats = [
        chat("a", 8.0, &[("yes", 120.0)]),
        chat("b", 108.0, &[("yes", 130.0)]),
        chat("c", 60.4, &[("yes", 125.0)]),
    ];
    let servers = [server(1, 0.0), server(2, 100.0)];
    let prompts = typed(&[
        ("a", "/clear", 60.0),
        ("a", "yes", 119.8),
        ("a", "yes", 124.8),
        ("b", "yes", 129.8),
    ]);
    let right: &[(&str, &[i32], bool)] = &[("a", &[], true), ("b", &[2], true), ("c", &[1], false)];
    check(&servers, &chats, &prompts, right);
}

#[test]
fn a_chat_that_was_made_after_a_terminal_fell_silent_is_another_processs() {
    // Nobody has said anything to process 1; a start after it has removed its
    // chat, made its own, and was killed.
    let silent = Server {
        shown_until_ms: Some(ms(9.0)),
        ..server(1, 0.0)
    };
    let chats = [chat("x", 12.0, &[])];
    check(
        std::slice::from_ref(&silent),
        &chats,
        &Prompts::default(),
        &[("x", &[], true)],
    );
    let drawn = Server {
        shown_until_ms: Some(ms(20.0)),
        ..silent.clone()
    };
    check(&[drawn], &chats, &Prompts::default(), &[("x", &[1], true)]);
    // One that answers its one prompt shows nothing before it is done.
    let one_shot = Server {
        is_one_shot: true,
        ..silent
    };
    check(
        &[one_shot],
        &chats,
        &Prompts::default(),
        &[("x", &[1], true)],
    );
}

#[test]
fn a_session_in_which_somebody_typed_elsewhere_is_another_processs() {
    let idle = Server {
        typed_until_ms: Some(ms(30.0)),
        ..server(1, 0.0)
    };
    let chats = [chat("x", 12.0, &[("one", 50.0)])];
    let prompts = typed(&[("x", "one", 49.7)]);
    check(
        std::slice::from_ref(&idle),
        &chats,
        &prompts,
        &[("x", &[], true)],
    );
    let used = Server {
        typed_until_ms: Some(ms(60.0)),
        ..idle
    };
    check(&[used], &chats, &prompts, &[("x", &[1], true)]);
}
