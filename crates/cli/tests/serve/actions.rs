//! What clients may do.

use crate::client::Server;
use crate::world::World;

#[test]
fn nothing_is_done_unless_it_is_allowed() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start(&world);
    let path = format!("/api/v1/sessions/claude-code/{}/dismiss", world.s1);
    let reply = server.post(&path, "{}");
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (403, "actions_not_allowed")
    );
}

#[test]
fn a_dead_session_is_dismissed_and_brought_back_and_a_live_one_stays() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start_with(&world, &["--listen", "127.0.0.1:0", "--allow-actions"]);
    let path = |action: &str| format!("/api/v1/sessions/claude-code/{}/{action}", world.s1);
    for action in ["dismiss", "end"] {
        let reply = server.post(&path(action), "");
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (409, "conflict"),
            "{}",
            reply.body
        );
        assert!(reply.body.contains("live"), "{}", reply.body);
    }
    assert_eq!(server.sessions(&world).len(), 1);

    posing.kill();
    posing.reap();
    let done = server.post(&path("dismiss"), "{}");
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(server.sessions(&world).is_empty());
    let back = server.post(&path("dismiss"), "{\"undo\":true}");
    assert_eq!(back.status, 200, "{}", back.body);
    assert_eq!(server.sessions(&world).len(), 1);
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let world = World::new();
    let server = Server::start_with(&world, &["--listen", "127.0.0.1:0", "--allow-actions"]);
    let path = |id: &str| format!("/api/v1/sessions/claude-code/{id}/dismiss");
    assert_eq!(server.post(&path("ffffffff-no-such"), "{}").status, 404);
    for body in ["[]", "{", "1", "{\"undo\":1}"] {
        assert_eq!(server.post(&path(&world.s1), body).status, 400, "{body}");
    }
    let long = format!("{{\"text\":\"{}\"}}", "a".repeat(100_000));
    assert_eq!(server.post(&path(&world.s1), &long).status, 413);
}
