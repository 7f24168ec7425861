//! What clients may do.

use std::process::{Command, Output};

use crate::client::Server;
use crate::world::{World, wait_for};

const ALLOWED: [&str; 3] = ["--listen", "127.0.0.1:0", "--allow-actions"];

/// An agent in a pane of a tmux of this test. It ends with it.
struct Tmux {
    socket: std::path::PathBuf,
}

impl Tmux {
    /// Starts it; says why there is none.
    fn start(world: &World) -> Option<Self> {
        drop(world.pose_as_claude());
        let program = world
            .root()
            .join("opt/@anthropic-ai/claude-code/bin/claude");
        let tmux = Self {
            socket: world.root().join("tmux.sock"),
        };
        let command = format!(
            "cd '{}' && HOME='{}' exec -a claude '{}'",
            world.work_dir().display(),
            world.home().display(),
            program.display()
        );
        let command = ["bash", "-c", &command];
        let new = ["-f", "/dev/null", "new-session", "-d", "-s", "main"];
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: there is no tmux here");
            return None;
        }
        let made = tmux.run(&[&new[..], &command].concat());
        assert!(made.status.success(), "{made:?}");
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments);
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let text = String::from_utf8(self.run(arguments).stdout).unwrap();
        text.trim().to_owned()
    }

    /// Writes what Claude Code would, once it runs; returns the PID.
    fn write_session(&self, world: &World) -> u32 {
        let (pid, start) = wait_for("the agent to run", || {
            let pid = self.text(&["list-panes", "-a", "-F", "#{pane_pid}"]);
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let fields = stat.rsplit_once(')')?.1;
            let start = fields.split_whitespace().nth(19)?.to_owned();
            (comm.trim() == "claude").then(|| (pid.parse().unwrap(), start))
        });
        world.write_claude_record(pid, &start, &world.s1);
        world.write_claude_transcript(".claude", &world.s1);
        pid
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn path(world: &World, action: &str) -> String {
    format!("/api/v1/sessions/claude-code/{}/{action}", world.s1)
}

#[test]
fn a_text_is_typed_the_pane_is_named_and_the_process_is_stopped() {
    let world = World::new();
    let Some(tmux) = Tmux::start(&world) else {
        return;
    };
    let pid = tmux.write_session(&world);
    let server = Server::start_with(&world, &ALLOWED);
    let sent = server.post(&path(&world, "send"), r#"{"text":"-","enter":true}"#);
    assert_eq!(sent.status, 200, "{}", sent.body);
    assert!(sent.body.contains("typed into"), "{}", sent.body);
    // `cat` shows the line again; a text `-` is no standard input.
    wait_for("the text", || {
        (tmux.text(&["capture-pane", "-p"]) == "-\n-").then_some(())
    });
    for (body, expected) in [
        ("{}", 400),
        (r#"{"text":1}"#, 400),
        (r#"{"text":"a","dry_run":true}"#, 400),
        (r#"{"text":"a","force":"yes"}"#, 400),
    ] {
        assert_eq!(
            server.post(&path(&world, "send"), body).status,
            expected,
            "{body}"
        );
    }

    // No terminal of a person's is here.
    let attached = server.post(&path(&world, "attach"), "{}");
    assert_eq!(attached.status, 200, "{}", attached.body);
    let command = attached.json()["command"].as_str().unwrap().to_owned();
    assert!(
        command.contains("tmux") && command.contains("attach"),
        "{command}"
    );

    let stopped = server.post(&path(&world, "stop"), "{}");
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    assert!(stopped.body.contains("SIGTERM"), "{}", stopped.body);
    wait_for("the process to be gone", || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    });
    for (action, body) in [("stop", ""), ("attach", ""), ("send", r#"{"text":"a"}"#)] {
        let refused = server.post(&path(&world, action), body);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (409, "conflict"),
            "{action}"
        );
    }
}

#[test]
fn what_the_commands_refuse_is_refused() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start_with(&world, &ALLOWED);
    // It is in no pane.
    for (action, body) in [("send", r#"{"text":"a","force":true}"#), ("attach", "")] {
        let reply = server.post(&path(&world, action), body);
        assert_eq!(reply.status, 409, "{action}: {}", reply.body);
    }
    posing.kill();
    posing.reap();
    let reply = server.post(&path(&world, "stop"), "{}");
    assert_eq!(reply.status, 409, "{}", reply.body);
    assert!(reply.body.contains("is exited"), "{}", reply.body);
}

#[test]
fn nothing_is_done_unless_it_is_allowed() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start(&world);
    for action in ["dismiss", "end", "send", "attach", "stop"] {
        let reply = server.post(&path(&world, action), r#"{"text":"a"}"#);
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (403, "actions_not_allowed"),
            "{action}"
        );
    }
}

#[test]
fn a_dead_session_is_dismissed_and_brought_back_and_a_live_one_stays() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start_with(&world, &ALLOWED);
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
    let server = Server::start_with(&world, &ALLOWED);
    let path = |id: &str| format!("/api/v1/sessions/claude-code/{id}/dismiss");
    assert_eq!(server.post(&path("ffffffff-no-such"), "{}").status, 404);
    for body in ["[]", "{", "1", "{\"undo\":1}", "{\"dry_run\":true}"] {
        assert_eq!(server.post(&path(&world.s1), body).status, 400, "{body}");
    }
    let long = format!("{{\"text\":\"{}\"}}", "a".repeat(100_000));
    let reply = server.post(&path(&world.s1), &long);
    assert_eq!((reply.status, reply.code().as_str()), (413, "too_large"));
    let headers = [("Transfer-Encoding", "chunked")];
    let request = server.request("POST", &path(&world.s1), &headers, "");
    let broken = request.replace("Content-Length: 0\r\n", "") + "zz\r\n";
    let reply = server.send(&broken);
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_argument"));
}
