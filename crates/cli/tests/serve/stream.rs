//! The stream of changes.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::json;
use whosup_live::replay;

use crate::client::{Event, Server, Stream};
use crate::soak::known;
use crate::world::{World, wait_for};

/// How often a death is tried of which nothing else on the machine diverts the engine.
const DEATHS_MAX: u32 = 20;

fn path(world: &World) -> String {
    format!("/api/v1/events?cwd={}", world.work_dir().display())
}

fn is_about(event: &Event, session: &str) -> bool {
    let data = &event.data;
    data["session_id"] == session || data["session"]["session_id"] == session
}

#[test]
fn a_snapshot_comes_first_and_then_each_change_once() {
    let world = World::new();
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path(&world), &[]);
    assert_eq!(stream.retry, "retry: 2000");
    let snapshot = stream.next();
    assert_eq!(
        (snapshot.kind.as_str(), snapshot.data["kind"].as_str()),
        ("snapshot", Some("snapshot"))
    );
    assert_eq!(snapshot.data["cursor"], snapshot.id.as_str());
    assert_eq!(snapshot.data["sessions"].as_array().unwrap().len(), 0);

    let mut posing = world.pose_as_claude();
    world.write_claude_transcript(".claude", &world.s1);
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let added = stream.until(|event| is_about(event, &world.s1));
    assert_eq!(added.kind, "added");
    assert_eq!(added.data["session"]["liveness"], "live");
    posing.kill();
    posing.reap();
    let died = stream.until(|event| {
        is_about(event, &world.s1) && event.data["changes"]["liveness"]["new"] == "exited"
    });
    assert_eq!(died.kind, "changed");
    assert_eq!(died.data["changes"]["liveness"]["old"], "live");
}

#[test]
fn a_death_is_known_before_the_look_after_it_and_is_what_that_look_shows() {
    let world = World::new();
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path(&world), &[]);
    let state = RefCell::new(stream.next().data);
    // All at first: after a launch, here or in another test, the engine looks before it
    // publishes.
    let posing: Vec<_> = (0..DEATHS_MAX)
        .map(|number| {
            let session = format!("0a0b0c0d-0000-4000-8000-{number:012x}");
            let posing = world.pose_as_claude();
            world.write_claude_transcript(".claude", &session);
            world.write_claude_record(posing.pid(), &posing.start(), &session);
            stream.until(|event| {
                replay(&mut state.borrow_mut(), &event.data);
                is_about(event, &session) && event.kind == "added"
            });
            (session, posing)
        })
        .collect();
    for (session, mut posing) in posing {
        wait_for("the engine to rest", || {
            let wakeups = server.metric("whosup_wakeups_total");
            std::thread::sleep(Duration::from_millis(200));
            (server.metric("whosup_wakeups_total") == wakeups).then_some(())
        });
        posing.kill();
        stream.until(|event| {
            replay(&mut state.borrow_mut(), &event.data);
            is_about(event, &session) && event.data["changes"]["liveness"]["new"] == "exited"
        });
        if server.metric("whosup_exits_at_once_total") > 0 {
            let cold = world.run(["list", "--json", "--cwd", "."]).json();
            let of_it = |snapshot: &serde_json::Value| {
                let mut sessions = snapshot["sessions"].as_array().unwrap().clone();
                sessions.retain(|one| one["session_id"] == session.as_str());
                known(&json!({ "sessions": sessions }))
            };
            assert_eq!(of_it(&state.borrow()), of_it(&cold));
            return;
        }
    }
    panic!("no death was published before a look");
}

#[test]
fn who_comes_back_gets_what_was_missed_or_a_snapshot() {
    let world = World::new();
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path(&world), &[]);
    let before = stream.next().id;
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let added = stream.until(|event| is_about(event, &world.s1));
    drop(stream);

    let mut again = Stream::open(&server, &path(&world), &[("Last-Event-ID", &before)]);
    let replayed = again.until(|event| is_about(event, &world.s1));
    assert_eq!((replayed.kind.as_str(), &replayed.id), ("added", &added.id));
    let after = format!("{}&after={before}", path(&world));
    let mut by_address = Stream::open(&server, &after, &[]);
    assert_eq!(
        by_address.until(|event| is_about(event, &world.s1)).id,
        added.id
    );

    let of_another_run = "1-1";
    let (epoch, _) = added.id.split_once('-').unwrap();
    let of_the_future = format!("{epoch}-99999999");
    for junk in [of_another_run, "junk", "", of_the_future.as_str()] {
        let mut anew = Stream::open(&server, &path(&world), &[("Last-Event-ID", junk)]);
        assert_eq!(anew.next().kind, "snapshot", "{junk}");
    }
}

#[test]
fn what_an_agent_wrote_stays_in_its_line() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let text = std::fs::read_to_string(&transcript).unwrap();
    let hostile = "a\\rb\\n\\nevent: removed\\ndata: {}\u{2028}c\\u0000d";
    std::fs::write(
        &transcript,
        text.replace("Fix the flaky login test", hostile),
    )
    .unwrap();
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path(&world), &[]);
    let snapshot = stream.next();
    assert_eq!(snapshot.kind, "snapshot");
    let title = snapshot.data["sessions"][0]["title"].as_str().unwrap();
    assert!(title.contains("event: removed"), "{title:?}");
    drop(posing);
    let next = stream.until(|event| is_about(event, &world.s1));
    assert_eq!(next.kind, "changed");
}

#[test]
fn a_filter_shows_what_fits_and_what_no_longer_does() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start(&world);
    let path = format!("{}&liveness=live&agent=claude-code", path(&world));
    let mut stream = Stream::open(&server, &path, &[]);
    assert_eq!(stream.next().data["sessions"].as_array().unwrap().len(), 1);
    posing.kill();
    posing.reap();
    let removed = stream.until(|event| is_about(event, &world.s1) && event.kind == "removed");
    assert_eq!(removed.data["why"], "filtered");
    assert_eq!(removed.data["session"]["liveness"], "exited");
}

#[test]
fn a_stream_ends_when_its_token_is_replaced() {
    let world = World::new();
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path(&world), &[]);
    assert_eq!(stream.next().kind, "snapshot");
    // One that is never silent, because resources come every two seconds.
    let busy = format!("{}&resources=1", path(&world));
    let mut busy = Stream::open(&server, &busy, &[]);
    assert_eq!(busy.next().kind, "snapshot");
    let replaced = world.run(["serve", "--new-token"]);
    assert_eq!(replaced.status, 0);
    // It is asked at the next comment.
    assert!(stream.ends());
    wait_for("the other stream to end", || {
        busy.next_if_any().is_none().then_some(())
    });
}
