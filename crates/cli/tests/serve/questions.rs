//! What is answered, compared with what the commands say.

use serde_json::{Value, json};

use crate::client::{Server, Stream};
use crate::wire_schema::{bundled, strict};
use crate::world::{World, wait_for};

/// What of a session two looks must agree on.
fn essence(sessions: &[Value]) -> Vec<Value> {
    let fields = [
        "agent",
        "session_id",
        "liveness",
        "reason",
        "phase",
        "work_dir",
        "title",
    ];
    let essence = |session: &Value| {
        let mut essence = json!({ "pid": session["owner"]["pid"] });
        for field in fields {
            essence[field] = session[field].clone();
        }
        essence
    };
    let mut essences: Vec<Value> = sessions.iter().map(essence).collect();
    essences.sort_by_key(Value::to_string);
    essences
}

#[track_caller]
fn check_same_as_list(server: &Server, world: &World) {
    let here = world.work_dir();
    let listed = world
        .run(["list", "--json", "--cwd", here.to_str().unwrap()])
        .sessions();
    assert_eq!(essence(&server.sessions(world)), essence(&listed));
}

#[test]
fn the_state_is_what_list_shows_at_each_step() {
    let world = World::new();
    let server = Server::start(&world);
    check_same_as_list(&server, &world);
    let mut posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    check_same_as_list(&server, &world);
    assert_eq!(server.sessions(&world)[0]["liveness"], "live");
    posing.kill();
    posing.reap();
    check_same_as_list(&server, &world);
    assert_eq!(server.sessions(&world)[0]["liveness"], "exited");
}

#[test]
fn a_state_that_is_known_is_not_sent_again() {
    let world = World::new();
    let server = Server::start(&world);
    let path = format!("/api/v1/state?cwd={}", world.work_dir().display());
    let tag = server.get(&path).headers["etag"].clone();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    wait_for("another state", || {
        let reply = server.get_with(&path, &[("If-None-Match", &tag)]);
        (reply.status == 200 && reply.headers["etag"] != tag).then_some(())
    });
    // Others may change something between the two requests.
    wait_for("the state to be known", || {
        let tag = server.get(&path).headers["etag"].clone();
        let reply = server.get_with(&path, &[("If-None-Match", &tag)]);
        (reply.status == 304 && reply.body.is_empty()).then_some(())
    });
}

#[test]
fn a_state_is_another_once_a_link_leads_elsewhere() {
    let world = World::new();
    let server = Server::start(&world);
    let link = world.root().join("link");
    std::os::unix::fs::symlink(world.work_dir(), &link).unwrap();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    // Only the link leads to the directory that is asked for.
    let text = std::fs::read_to_string(&record).unwrap();
    let (real, linked) = (world.work_dir(), link.to_str().unwrap().to_owned());
    std::fs::write(&record, text.replace(real.to_str().unwrap(), &linked)).unwrap();
    let asked = |directory: &str| format!("/api/v1/state?fresh=1&cwd={directory}");
    let moves = |path: String, elsewhere: &str| {
        let before = server.get(&path);
        let known = [("If-None-Match", before.headers["etag"].as_str())];
        std::fs::create_dir_all(world.root().join(elsewhere)).unwrap();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(elsewhere, &link).unwrap();
        let after = server.get_with(&path, &known);
        assert_eq!(after.status, 200, "{path}");
        (
            before.json()["sessions"].clone(),
            after.json()["sessions"].clone(),
        )
    };
    let (before, after) = moves(asked(real.to_str().unwrap()), "other");
    assert_eq!(before[0]["session_id"], world.s1.as_str());
    assert_eq!(after, json!([]));
    moves(asked(&linked), "third");
}

#[test]
fn sessions_that_have_exited_are_found_as_list_finds_them_and_have_no_stream() {
    let world = World::new();
    let server = Server::start(&world);
    world.write_claude_transcript(".claude", &world.s1);
    let here = world.work_dir();
    let filter = format!("liveness=exited&cwd={}", here.display());
    let found = server.json(&format!("/api/v1/state?{filter}"));
    let found = found["sessions"].as_array().unwrap();
    assert_eq!(found[0]["session_id"], world.s1.as_str());
    let here = here.to_str().unwrap();
    let listed = world.run(["list", "--json", "--liveness", "exited", "--cwd", here]);
    assert_eq!(essence(found), essence(&listed.sessions()));
    for filter in ["liveness=exited", "phase=ended"] {
        let refused = server.get(&format!("/api/v1/events?{filter}"));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (400, "bad_argument")
        );
    }
}

#[test]
fn every_error_has_one_form() {
    let world = World::new();
    let server = Server::start(&world);
    for path in ["/api/v1/sessions/pi/%ff", "/api/v1/sessions/%ff/x/why"] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.code().as_str()), (400, "bad_argument"));
        assert!(reply.json()["error"]["message"].is_string());
    }
}

#[test]
fn a_session_is_shown_explained_and_read() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let server = Server::start(&world);
    let path = format!("/api/v1/sessions/claude-code/{}", world.s1);
    let shown = server.json(&path);
    assert_eq!(shown["sessions"][0]["session_id"], world.s1.as_str());
    assert_eq!(shown["sessions"][0]["liveness"], "live");
    let why = server.json(&format!("{path}/why"));
    let printed = world.run(["why", &world.s1, "--json"]).json();
    assert_eq!(why["explanation"], printed["explanation"]);
    let messages = server.json(&format!("{path}/messages?tail=5"));
    let printed = world
        .run(["show", &world.s1, "--tail", "5", "--json"])
        .json();
    assert_eq!(messages["messages"], printed["messages"]);
    assert_eq!(messages["messages"][0]["text"], "Fix the flaky login test");
}

#[test]
fn everything_on_disk_is_one_document() {
    let world = World::new();
    for session in [&world.s1, &world.s2] {
        world.write_claude_transcript(".claude", session);
    }
    let server = Server::start(&world);
    let path = format!("/api/v1/state?all=1&cwd={}", world.work_dir().display());
    let all = server.json(&path);
    let listed = world.run([
        "list",
        "--all",
        "--json",
        "--cwd",
        world.work_dir().to_str().unwrap(),
    ]);
    let sessions = all["sessions"].as_array().unwrap();
    assert_eq!(essence(sessions), essence(&listed.sessions()));
    assert_eq!(sessions.len(), 2);
    for field in [
        "schema_version",
        "taken_at",
        "host",
        "unattributed",
        "problems",
    ] {
        assert!(!all[field].is_null(), "{field}");
    }
    let empty = world.home().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = server.json(&format!("/api/v1/state?all=1&cwd={}", empty.display()));
    assert!(none["sessions"].as_array().unwrap().is_empty(), "{none}");
}

#[track_caller]
fn check_error(server: &Server, path: &str, status: u16, code: &str) {
    let reply = server.get(path);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (status, code),
        "{path}: {}",
        reply.body
    );
    let error = &reply.json()["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty())
    );
    assert!(error["candidates"].is_array());
}

#[test]
fn what_can_not_be_answered_says_why() {
    let world = World::new();
    for session in [&world.s1, &world.s2] {
        world.write_claude_transcript(".claude", session);
    }
    // Both homes have it.
    world.write_claude_transcript(".claude-2", &world.s1);
    world.write(
        ".config/whosup/config.toml",
        "[homes]\nclaude-code = [\"~/.claude-2\"]\n",
    );
    let server = Server::start(&world);
    let ambiguous = format!("/api/v1/sessions/claude-code/{}", world.s1);
    check_error(&server, &ambiguous, 409, "ambiguous");
    let candidates = server.get(&ambiguous).json()["error"]["candidates"].clone();
    assert_eq!(candidates.as_array().unwrap().len(), 2);
    let home = candidates[0]["home"].as_str().unwrap();
    assert_eq!(server.get(&format!("{ambiguous}?home={home}")).status, 200);

    for (path, status, code) in [
        (
            "/api/v1/sessions/claude-code/ffffffff-no-such",
            404,
            "no_such_session",
        ),
        ("/api/v1/sessions/no-agent/0a", 404, "no_such_agent"),
        (
            "/api/v1/sessions/claude-code/..%2F..%2Fetc",
            400,
            "bad_argument",
        ),
        ("/api/v1/sessions/claude-code/%00", 400, "bad_argument"),
        ("/api/v1/state?phase=bored", 400, "bad_argument"),
        ("/api/v1/state?liveness=dead", 400, "bad_argument"),
        ("/api/v1/state?cwd=relative", 400, "bad_argument"),
        (
            "/api/v1/state?all=1&cwd=/nowhere/at/all",
            400,
            "bad_argument",
        ),
        ("/api/v1/state?cwd=/a&cwd=/b", 400, "bad_argument"),
        ("/api/v1/state?aggent=codex", 400, "bad_argument"),
        ("/api/v1/events?all=1", 400, "bad_argument"),
        ("/api/v1/timeline?since=yesterday", 400, "bad_argument"),
        ("/api/v1/nothing", 404, "not_found"),
    ] {
        check_error(&server, path, status, code);
    }
    let messages = format!("/api/v1/sessions/claude-code/{}/messages", world.s2);
    for tail in ["0", "1001", "-1", "many"] {
        check_error(
            &server,
            &format!("{messages}?tail={tail}"),
            400,
            "bad_argument",
        );
    }
}

#[test]
fn the_timeline_comes_from_the_event_logs() {
    let world = World::new();
    let now = jiff_now();
    let line = |id: u32, minutes_ago: i64, event: &str| {
        let at = date(now - minutes_ago * 60_000);
        json!({ "id": id.to_string(), "at": at, "event": event, "home": world.home().join(".claude") })
    };
    let lines = [
        line(1, 50, "session-started:startup"),
        line(2, 40, "turn-started"),
        line(3, 30, "input-requested:permission"),
        line(4, 20, "tool-ended"),
        line(5, 10, "turn-ended"),
    ];
    let log: String = lines.iter().map(|line| format!("\n{line}\n")).collect();
    world.write(
        &format!(
            ".local/state/whosup/sessions/claude-code/{}.jsonl",
            world.s1
        ),
        log,
    );
    let server = Server::start(&world);
    let timeline = server.json("/api/v1/timeline?since=1h");
    let session = &timeline["sessions"][0];
    assert_eq!(session["session_id"], world.s1.as_str());
    let spans: Vec<&str> = session["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| span["phase"].as_str().unwrap())
        .collect();
    assert_eq!(spans, ["starting", "working", "waiting", "working", "idle"]);
    assert!(session["spans"][4]["until"].is_null());
    let late = server.json("/api/v1/timeline?since=15m");
    assert_eq!(late["sessions"][0]["spans"].as_array().unwrap().len(), 2);
}

fn jiff_now() -> i64 {
    i64::try_from(crate::world::now_ms()).unwrap()
}

fn date(ms: i64) -> String {
    let seconds = std::process::Command::new("date")
        .args([
            "-u",
            "-d",
            &format!("@{}", ms / 1000),
            "+%Y-%m-%dT%H:%M:%SZ",
        ])
        .output()
        .unwrap();
    String::from_utf8(seconds.stdout).unwrap().trim().to_owned()
}

#[test]
fn metrics_count_sessions_and_name_who_waits() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let server = Server::start(&world);
    let reply = server.get("/metrics");
    assert!(reply.headers["content-type"].starts_with("text/plain; version=0.0.4"));
    let counted = reply
        .body
        .lines()
        .find(|line| line.starts_with("whosup_sessions{agent=\"claude-code\",liveness=\"live\""));
    assert!(counted.is_some(), "{}", reply.body);
    for line in reply.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap();
        assert!(reply.body.contains(&format!("# TYPE {name} ")), "{name}");
    }
    let memory = reply.body.lines().find_map(|line| {
        let (name, bytes) = line.rsplit_once(' ')?;
        name.starts_with("whosup_session_rss_bytes{")
            .then_some(bytes)
    });
    assert!(memory.unwrap().parse::<f64>().unwrap() > 10_000.0);
    let looks = reply
        .body
        .lines()
        .find_map(|line| line.strip_prefix("whosup_looks_total "));
    assert!(looks.unwrap().parse::<f64>().unwrap() >= 1.0);
}

#[test]
fn the_page_is_there_without_a_token_and_holds_nothing_of_anybody() {
    let world = World::new();
    let server = Server::start(&world);
    let none = [("Authorization", "")];
    let page = server.get_with("/", &none);
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let named = page
        .body
        .split(['"', '\''])
        .filter(|name| name.ends_with(".js") || name.ends_with(".css"));
    let mut count = 0;
    for name in named {
        assert_eq!(
            server.get_with(&format!("/{name}"), &none).status,
            200,
            "{name}"
        );
        count += 1;
    }
    assert!(count >= 2, "{}", page.body);
    assert!(!page.body.contains("<script>") && !page.body.contains("style=\""));
}

#[track_caller]
pub(crate) fn check_schema(output: &str, document: &Value) {
    for schema in [bundled(output), strict(output, &[])] {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(document)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{output}: {errors:#?}\n{document:#}");
    }
}

#[test]
fn timeline_messages_and_resources_fit_their_schemas() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let event = json!({
        "hook_event_name": "SessionStart", "source": "startup", "session_id": world.s1,
        "cwd": world.work_dir(), "transcript_path": null,
    });
    let heard = world
        .whosup()
        .args(["hook", "claude-code"])
        .write_stdin(event.to_string())
        .output();
    assert!(heard.unwrap().status.success());
    let server = Server::start(&world);
    let timeline = server.json("/api/v1/timeline?since=1h");
    check_schema("timeline", &timeline);
    assert_eq!(
        timeline["sessions"][0]["spans"][0]["phase"], "starting",
        "{timeline:#}"
    );
    let messages = server.json(&format!(
        "/api/v1/sessions/claude-code/{}/messages",
        world.s1
    ));
    check_schema("messages", &messages);
    assert_eq!(messages["messages"].as_array().unwrap().len(), 1);
    let events = format!(
        "/api/v1/events?resources=1&cwd={}",
        world.work_dir().display()
    );
    let mut stream = Stream::open(&server, &events, &[]);
    let sample = stream.until(|event| event.kind == "resources");
    check_schema("resources", &sample.data);
    assert_eq!(sample.data["sessions"][0]["session_id"], world.s1.as_str());
}

/// What of two answers about usage must agree: all but when they were given.
fn undated(mut usage: Value) -> Value {
    for field in ["taken_at", "since"] {
        usage[field].take();
    }
    usage
}

#[test]
fn usage_is_what_the_command_says() {
    let world = World::new();
    for (session, model) in [(&world.s1, "claude-opus-4-8"), (&world.s2, "nobody-knows")] {
        let line = json!({
            "type": "assistant", "timestamp": "2026-11-27T00:10:00Z", "cwd": world.work_dir(),
            "isSidechain": false, "version": "2.1.197",
            "message": { "id": session, "role": "assistant", "model": model,
                "content": [{ "type": "text", "text": "done" }], "stop_reason": "end_turn",
                "usage": { "input_tokens": 10, "cache_read_input_tokens": 20,
                    "cache_creation_input_tokens": 0, "output_tokens": 5 } },
        });
        world.write(
            &format!(".claude/projects/-p/{session}.jsonl"),
            format!("{line}\n"),
        );
    }
    let server = Server::start(&world);
    let since = "2000-01-01T00:00:00Z";
    for (query, options) in [
        (String::new(), vec![]),
        ("&by=model".to_owned(), vec!["--by", "model"]),
        (
            "&by=session&by=model&agent=claude-code".to_owned(),
            vec!["--by", "session,model", "--agent", "claude-code"],
        ),
        (
            format!("&by=day,model&cwd={}", world.work_dir().display()),
            vec!["--by", "day,model", "--cwd", "."],
        ),
    ] {
        let answer = server.json(&format!("/api/v1/usage?since={since}{query}"));
        let command = ["usage", "--json", "--since", since].into_iter();
        let printed = world.run(command.chain(options)).json();
        assert_eq!(undated(answer), undated(printed), "{query}");
    }
    // A client may be on another machine: it gets an empty answer, and a person an error.
    let nowhere = server.json(&format!("/api/v1/usage?since={since}&cwd=/nowhere"));
    assert_eq!(nowhere["rows"], json!([]));
    let refused = world.run(["usage", "--json", "--cwd", "/nowhere"]);
    assert_eq!(refused.status, 2, "{}", refused.out);
    let models = server.json(&format!("/api/v1/usage?since={since}&by=model"));
    assert_eq!(models["without_price"], json!(["nobody-knows"]));
    assert_eq!(models["total"]["output_tokens"], 10);
    for wrong in [
        "by=mood",
        "by=",
        "since=soon",
        "since=7d&since=8d",
        "cwd=here",
        "agent=../x",
        "utc=1",
    ] {
        let reply = server.get(&format!("/api/v1/usage?{wrong}"));
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (400, "bad_argument"),
            "{wrong}"
        );
    }
}

#[test]
fn one_answer_about_usage_is_counted_at_a_time_and_few_wait() {
    let world = World::new();
    let server = Server::start(&world);
    let asked: Vec<u16> = std::thread::scope(|threads| {
        let ask = || server.get("/api/v1/usage").status;
        let asking: Vec<_> = (0..40).map(|_| threads.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(
        asked.iter().all(|status| [200, 503].contains(status)),
        "{asked:?}"
    );
    assert!(asked.contains(&200));
    assert_eq!(server.get("/api/v1/usage").status, 200);
}
