//! Clients that misbehave, and a server that is killed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Server, Stream, read_head};
use crate::world::{WHOSUP, World, now_ms, wait_for};

/// How long an answer may take on a loaded machine while others misbehave.
const PROMPT: Duration = Duration::from_secs(20);

/// More sessions than fit into the buffers of a connection.
const SESSIONS: u32 = 5_000;

#[track_caller]
fn check_answers(server: &Server) {
    let began = Instant::now();
    assert_eq!(server.get("/api/v1/state").status, 200);
    assert!(began.elapsed() < PROMPT, "it took {:?}", began.elapsed());
}

#[test]
fn a_thousand_connections_keep_nobody_out() {
    let world = World::new();
    let server = Server::start(&world);
    let held: Vec<_> = (0..1_000)
        .map_while(|_| std::net::TcpStream::connect(&server.address).ok())
        .collect();
    if held.len() < 1_000 {
        eprintln!(
            "only {} connections: this test may have no more files",
            held.len()
        );
    }
    check_answers(&server);
    // Those that ask for nothing are let go.
    let mut first = &held[0];
    first
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut rest = Vec::new();
    assert!(
        first.read_to_end(&mut rest).is_ok(),
        "an idle connection stayed"
    );
    check_answers(&server);
}

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let world = World::new();
    let server = Server::start(&world);
    let mut slow = server.connect();
    slow.write_all(b"GET /api/v1/state HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        .unwrap();
    check_answers(&server);
    let began = Instant::now();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).ok();
    assert!(
        began.elapsed() < Duration::from_secs(50),
        "it was waited for"
    );
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
}

#[test]
fn headers_that_are_too_many_or_too_long_are_refused() {
    let world = World::new();
    let server = Server::start(&world);
    let long = "a".repeat(64 << 10);
    assert_eq!(
        server
            .get_with("/api/v1/state", &[("X-Long", &long)])
            .status,
        431
    );
    let many: Vec<(String, String)> = (0..200)
        .map(|number| (format!("X-{number}"), "a".to_owned()))
        .collect();
    let many: Vec<(&str, &str)> = many
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(server.get_with("/api/v1/state", &many).status, 431);
    check_answers(&server);
}

#[test]
fn what_is_no_http_is_refused() {
    let world = World::new();
    let server = Server::start(&world);
    for junk in [
        &b"\0\x01\x02\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(junk).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    }
    check_answers(&server);
}

#[test]
fn who_does_not_read_holds_up_nobody() {
    let world = World::new();
    let server = Server::start(&world);
    let path = format!("/api/v1/events?cwd={}", world.work_dir().display());
    // They ask, and read nothing.
    let silent: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = server.connect();
            stream
                .write_all(server.request("GET", &path, &[], "").as_bytes())
                .unwrap();
            stream
        })
        .collect();
    world.write_claude_transcript(".claude", &world.s1);
    let mut stream = Stream::open(&server, &path, &[]);
    assert_eq!(stream.next().kind, "snapshot");
    for _ in 0..5 {
        let mut posing = world.pose_as_claude();
        world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
        stream.until(|event| {
            event.data["session"]["liveness"] == "live"
                || event.data["changes"]["liveness"]["new"] == "live"
        });
        posing.kill();
        posing.reap();
        stream.until(|event| {
            event.data["changes"]["liveness"]["new"] == "exited" || event.kind == "removed"
        });
    }
    check_answers(&server);
    drop(silent);
}

#[test]
fn who_asks_for_everything_and_does_not_read_holds_up_no_other_route() {
    let world = World::new();
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let text = std::fs::read_to_string(&transcript).unwrap();
    for number in 0..SESSIONS {
        let id = format!("{number:08}-0000-4000-8000-000000000000");
        let other = transcript.with_file_name(format!("{id}.jsonl"));
        std::fs::write(other, text.replace(&world.s1, &id)).unwrap();
    }
    let server = Server::start(&world);
    let request = server.request("GET", "/api/v1/state?all=1", &[], "");
    let silent: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = server.connect();
            rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4_096).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            // The answer has begun.
            stream.read_exact(&mut [0]).unwrap();
            stream
        })
        .collect();
    let path = format!("/api/v1/sessions/claude-code/{}", world.s1);
    let began = Instant::now();
    assert_eq!(server.get(&path).status, 200);
    assert!(began.elapsed() < PROMPT, "it took {:?}", began.elapsed());
    drop(silent);
}

#[test]
fn a_client_that_is_gone_is_noticed() {
    let world = World::new();
    let server = Server::start(&world);
    let streams = || {
        let metrics = server.get("/metrics").body;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("whosup_streams "));
        line.unwrap().parse::<u32>().unwrap()
    };
    let stream = Stream::open(&server, "/api/v1/events", &[]);
    assert_eq!(streams(), 1);
    drop(stream);
    wait_for("the stream to be ended", || (streams() == 0).then_some(()));
}

#[test]
fn who_reads_a_server_that_is_killed_catches_up_with_the_next_one() {
    let world = World::new();
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let path = format!("/api/v1/events?cwd={}", world.work_dir().display());
    let server = Server::start(&world);
    let mut stream = Stream::open(&server, &path, &[]);
    let last = stream.next().id;
    let address = server.address.clone();
    server.kill();
    assert!(stream.ends());
    posing.kill();
    posing.reap();
    let again = Server::start_with(&world, &["--listen", &address]);
    let mut stream = Stream::open(&again, &path, &[("Last-Event-ID", &last)]);
    let snapshot = stream.next();
    assert_eq!(snapshot.kind, "snapshot");
    assert_eq!(snapshot.data["sessions"][0]["liveness"], "exited");
}

#[test]
fn several_requests_go_over_one_connection() {
    let world = World::new();
    let server = Server::start(&world);
    let stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        let request = server
            .request("GET", "/healthz", &[], "")
            .replace("Connection: close\r\n", "");
        (&stream).write_all(request.as_bytes()).unwrap();
        let (status, headers) = read_head(&mut reader).unwrap();
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        assert_eq!((status, body.as_slice()), (200, &b"ok\n"[..]));
    }
}

/// Whether a script can be run by `unshare`; says so if not.
fn can_be_apart(options: &[&str], script: &str) -> bool {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        eprintln!(
            "skipped: `unshare {}` can't be used here",
            options.join(" ")
        );
    }
    can
}

/// A full disk keeps nobody from asking; what can't be written is said.
#[test]
fn a_full_disk_keeps_nobody_from_asking() {
    let mount = "mount -t tmpfs -o size=128k none \"$HOME/.local/state\"";
    let options = ["-U", "-r", "-m"];
    if !can_be_apart(&options, "mount -t tmpfs -o size=128k none /mnt") {
        return;
    }
    let world = World::new();
    std::fs::create_dir_all(world.home().join(".local/state")).unwrap();
    let mut posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    // The disk is full once somebody writes a line.
    let script = format!(
        "{mount} && {{ (read line; cat /dev/zero > \"$HOME/.local/state/full\" 2>/dev/null; echo full > \"$HOME/full\") <&3 & \
         exec \"$0\" \"$@\"; }}"
    );
    let mut command = Command::new("unshare");
    command
        .args(options)
        .args(["bash", "-c", &format!("exec 3<&0; {script}"), WHOSUP]);
    let (server, mut stdin) = Server::start_by(
        &world,
        command,
        &["--listen", "127.0.0.1:0", "--allow-actions"],
    );
    let path = format!("/api/v1/events?cwd={}", world.work_dir().display());
    let mut stream = Stream::open(&server, &path, &[]);
    assert_eq!(stream.next().kind, "snapshot");
    writeln!(stdin, "fill it").unwrap();
    wait_for("the disk to be full", || {
        world.home().join("full").exists().then_some(())
    });

    set_status(&record, "busy");
    stream.until(|event| event.data["changes"]["phase"]["new"] == "working");
    posing.kill();
    posing.reap();
    stream.until(|event| event.data["changes"]["liveness"]["new"] == "exited");
    let path = format!("/api/v1/sessions/claude-code/{}/dismiss", world.s1);
    let refused = server.post(&path, "{}");
    assert!([409, 500].contains(&refused.status), "{}", refused.body);
    assert!(refused.body.contains("No space left"), "{}", refused.body);
    check_answers(&server);
    assert_eq!(server.sessions(&world).len(), 1);
}

fn set_status(record: &std::path::Path, status: &str) {
    let text = std::fs::read_to_string(record).unwrap();
    let mut fields: Value = serde_json::from_str(&text).unwrap();
    fields["status"] = json!(status);
    fields["statusUpdatedAt"] = json!(now_ms());
    let other = record.with_extension("new");
    std::fs::write(&other, fields.to_string()).unwrap();
    std::fs::rename(&other, record).unwrap();
}

#[test]
fn without_watches_the_stream_says_so_and_goes_on() {
    // The limit of a user namespace; that of the machine stays.
    let limit = "echo 2 > /proc/sys/user/max_inotify_watches";
    let options = ["-U", "-r"];
    if !can_be_apart(&options, limit) {
        return;
    }
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let mut command = Command::new("unshare");
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    command.args(options).args(["sh", "-c", &script, WHOSUP]);
    let (server, _stdin) = Server::start_by(&world, command, &["--listen", "127.0.0.1:0"]);
    let path = format!("/api/v1/events?cwd={}", world.work_dir().display());
    let mut stream = Stream::open(&server, &path, &[]);
    let says_so = |data: &Value| {
        let mut problems = data["problems"].as_array().into_iter().flatten();
        problems.any(|problem| {
            problem["message"]
                .as_str()
                .unwrap()
                .contains("no watches are left")
        })
    };
    stream.until(|event| says_so(&event.data));
    set_status(&record, "busy");
    stream.until(|event| event.data["changes"]["phase"]["new"] == "working");
}

/// A server and a client of the stream in a network of their own, which then goes away.
struct Apart(Child);

impl Drop for Apart {
    fn drop(&mut self) {
        // What runs in it ends when its input does.
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_behind_a_network_that_is_gone_is_let_go() {
    let options = ["-U", "-r", "-n"];
    if !can_be_apart(&options, "ip link set lo up && ip link set lo down") {
        return;
    }
    let world = World::new();
    let out = world.root().join("out");
    let script = "ip link set lo up
        \"$0\" serve --listen 127.0.0.1:7697 > \"$1\" 2>/dev/null &
        server=$!
        trap 'kill $server' EXIT
        until grep -q token \"$1\"; do sleep 0.05; done
        exec 3<>/dev/tcp/127.0.0.1/7697
        printf 'GET /api/v1/events HTTP/1.1\\r\\nHost: 127.0.0.1:7697\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n' \"$(sed 's/.*token=//' \"$1\")\" >&3
        read -r line <&3
        echo \"$server $line\"
        ip link set lo down
        read -r line";
    let mut child = Command::new("unshare")
        .args(options)
        .args(["bash", "-c", script, WHOSUP])
        .arg(&out)
        .env("HOME", world.home())
        .current_dir(world.work_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    let apart = Apart(child);
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let (server, status) = line.split_once(' ').unwrap();
    assert!(status.contains("200 OK"), "{line}");
    // Connections of the server's own end: their local port, and that they are established.
    let connections = || {
        let table = std::fs::read_to_string(format!("/proc/{server}/net/tcp")).unwrap();
        let lines = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines
            .filter(|fields| fields[1].ends_with(":1E11") && fields[3] == "01")
            .count()
    };
    assert_eq!(connections(), 1);
    wait_for("the connection to be given up", || {
        (connections() == 0).then_some(())
    });
    drop(apart);
}
