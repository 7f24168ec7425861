//! `whosup why --pid`

use serde_json::json;
use whosup_core::process::{Absent, Pid, ProbeError, RecordedProcess};

use super::world::{MINUTE_MS, S1, S2, World, now_ms, project_folder, ticks};

fn process(pid: i32) -> RecordedProcess {
    RecordedProcess::new(pid, ticks(pid), now_ms() - 30 * MINUTE_MS)
}

#[track_caller]
fn check(world: &World, pid: i32, status: u8, sentences: &[&str]) {
    let said = world.run(&format!("why --pid {pid}"));
    assert_eq!(said.status, status, "{}", said.text());
    for sentence in sentences {
        assert!(said.out.contains(sentence), "{sentence}: {}", said.text());
    }
}

#[test]
fn an_agents_process_is_explained_by_its_session() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    check(
        &world,
        4711,
        0,
        &[
            "Process 4711 is a process of claude-code and serves 1 session.",
            S1,
            "(proven)",
        ],
    );
    let answer = world.run("why --pid 4711 --json").json();
    assert_eq!(answer["pid"], 4711);
    assert_eq!(answer["sessions"][0]["session_id"], S1);
}

#[test]
fn an_agents_process_without_a_session_is_unknown() {
    let mut world = World::new();
    let codex = process(4720)
        .comm("codex")
        .argv(&["codex"])
        .exe("/opt/codex/bin/codex")
        .cwd(world.work_dir("src/ops"))
        .tty(136, 20);
    world.add_process(codex);
    check(
        &world,
        4720,
        3,
        &["Process 4720 is codex, but its session is unknown"],
    );
    let answer = world.run("why --pid 4720 --json").json();
    assert_eq!(answer["unattributed"][0]["pid"], 4720);
}

#[test]
fn a_launcher_is_explained_by_the_process_that_does_the_work() {
    let mut world = World::new();
    let launcher = process(4700)
        .comm("node")
        .argv(&["node", "/opt/lib/node_modules/.bin/codex"])
        .exe("/usr/bin/node")
        .cwd(world.work_dir("src/ops"))
        .tty(136, 20);
    world.add_process(launcher);
    check(
        &world,
        4700,
        4,
        &["Process 4700 is a launcher of codex", "is gone"],
    );
    let codex = process(4720)
        .ppid(4700)
        .comm("codex")
        .argv(&["codex"])
        .exe("/opt/codex/bin/codex")
        .cwd(world.work_dir("src/ops"))
        .tty(136, 20);
    world.add_process(codex);
    check(
        &world,
        4700,
        3,
        &["Process 4700 is a launcher of codex; process 4720 runs the agent."],
    );
}

#[test]
fn a_process_that_is_no_agent_is_explained_by_its_command_and_parent() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    world.add_process(process(4800).ppid(4711).comm("bash").exe("/bin/bash"));
    check(
        &world,
        4800,
        4,
        &[
            "Process 4800 runs /bin/bash, which is not a known agent.",
            "It runs below process 4711, a process of claude-code.",
            &format!("That process serves session {S1}."),
        ],
    );
}

#[test]
fn an_unused_pid_is_explained_by_the_claims_that_name_it() {
    let world = World::new();
    world.write_claude_record(4715, S2, "src/api", 90, &json!({}));
    world.write_claude_transcript(S2, "src/api", "Write the changelog", 90);
    check(
        &world,
        4715,
        4,
        &["No process has the PID 4715.", S2, "has exited"],
    );
    check(&world, 4716, 4, &["No process has the PID 4716."]);
}

#[test]
fn what_could_not_be_looked_at_is_unknown() {
    let mut world = World::new();
    let pid = Pid::new(4900).unwrap();
    let error = ProbeError::Process {
        pid,
        reason: Absent::PermissionDenied,
    };
    world.change_table(|table| table.with_probe_error(4900, error));
    check(&world, 4900, 3, &["Process 4900 could not be inspected"]);
    let mut stranger = process(4901).comm("node");
    stranger.details.exe = Err(Absent::PermissionDenied);
    world.add_process(stranger);
    check(
        &world,
        4901,
        3,
        &["Process 4901 may or may not be an agent"],
    );
}

#[test]
fn a_process_that_waits_to_be_reaped_has_exited() {
    let mut world = World::new();
    world.add_process(process(4902).comm("claude").zombie());
    world.add_process(process(4903).comm("kworker").kernel_thread());
    check(&world, 4902, 4, &["Process 4902 has exited"]);
    check(&world, 4903, 4, &["Process 4903 is a kernel thread."]);
}

#[test]
fn a_session_that_a_process_has_left_is_not_one_that_it_serves() {
    let mut world = World::new();
    let cwd = world.work_dir("src/shop");
    let qwen = process(4711)
        .comm("MainThread")
        .argv(&["node", "/opt/lib/node_modules/@qwen-code/qwen-code/cli.js"])
        .exe("/usr/local/bin/node")
        .cwd(&cwd)
        .tty(136, 20);
    world.add_process(qwen);
    // Left behind by `/clear` twice in quick succession: qwen-code#3714.
    for (session, minutes_ago) in [(S1, 20), (S2, 10)] {
        let sidecar = json!({
            "schema_version": 1,
            "pid": 4711,
            "session_id": session,
            "work_dir": cwd,
            "hostname": "devbox",
            "started_at": (now_ms() - minutes_ago * MINUTE_MS) / 1_000,
            "qwen_version": "0.24.4",
        });
        let folder = project_folder(&cwd);
        world.write(
            &format!(".qwen/projects/{folder}/chats/{session}.runtime.json"),
            sidecar.to_string(),
        );
    }
    check(
        &world,
        4711,
        0,
        &[
            "Process 4711 is a process of qwen-code and serves 1 session.",
            &format!("qwen-code session {S2} is live"),
        ],
    );
    let said = world.run(&format!("why {S1}"));
    assert!(
        said.out
            .contains(&format!("its process switched to session {S2}.")),
        "{}",
        said.text()
    );
    assert_eq!(world.run(&format!("check {S1}")).status, 1);
}

/// Announces a session of an agent without an adapter.
fn announce(world: &World, pid: i32, session: &str, more: &serde_json::Value) {
    let mut sidecar = json!({
        "schema_version": 1,
        "pid": pid,
        "session_id": session,
        "work_dir": world.work_dir("src/ops"),
        "hostname": "devbox",
        "started_at": now_ms() / 1_000 - 60,
        "process_start": ticks(pid).to_string(),
        "process_start_kind": "linux-ticks",
    });
    for (key, value) in more.as_object().unwrap() {
        sidecar[key] = value.clone();
    }
    // Readers ignore this key: the directory names the agent.
    let agent = more["agent"].as_str().unwrap_or("my-agent");
    let path = format!(".local/state/agent-sessions/{agent}/{session}.runtime.json");
    world.write(&path, sidecar.to_string());
}

#[test]
fn a_process_that_announces_its_sessions_itself_serves_them() {
    let mut world = World::new();
    for pid in [4800, 4801, 4802] {
        world.add_process(process(pid).comm("bot").exe("/opt/bot"));
    }
    announce(&world, 4800, "s-1", &json!({}));
    let sentence = "Process 4800 runs /opt/bot and serves 1 session.";
    check(&world, 4800, 0, &[sentence, "my-agent session s-1 is live"]);
    let answer = world.run("why --pid 4800 --json").json();
    assert_eq!(answer["sessions"][0]["session_id"], "s-1");
    for session in ["m-1", "m-2"] {
        announce(&world, 4801, session, &json!({ "serves": "many" }));
    }
    let sentence = "Process 4801 runs /opt/bot and serves 2 sessions.";
    check(&world, 4801, 0, &[sentence, "m-1", "m-2"]);
    // A launcher may be announced too, by its own agent or another one.
    let launcher = process(4803)
        .comm("node")
        .argv(&["node", "/opt/lib/node_modules/.bin/codex"])
        .exe("/usr/bin/node");
    world.add_process(launcher);
    announce(&world, 4803, "n-1", &json!({}));
    check(&world, 4803, 3, &["a launcher of codex", "n-1"]);
    announce(&world, 4803, "n-2", &json!({ "agent": "codex" }));
    let sentence = "Process 4803 is a launcher of codex and serves 1 session.";
    check(&world, 4803, 0, &[sentence, "codex session n-2 is live"]);
    // The claim may be about this process, or about an earlier one of the same PID.
    announce(
        &world,
        4802,
        "u-1",
        &json!({ "process_start": null, "process_start_kind": null }),
    );
    check(
        &world,
        4802,
        3,
        &[
            "Process 4802 runs /opt/bot, which is not a known agent.",
            "u-1",
        ],
    );
}

#[test]
fn a_claim_about_another_process_of_that_number_is_not_served() {
    let mut world = World::new();
    world.add_process(process(4800).comm("bot").exe("/opt/bot"));
    announce(&world, 4800, "s-1", &json!({ "process_start": "1" }));
    announce(&world, 4800, "s-2", &json!({ "hostname": "another" }));
    check(&world, 4800, 4, &["which is not a known agent"]);
}

#[test]
fn a_client_without_a_terminal_is_the_client_all_the_same() {
    let mut world = World::new();
    for pid in [4800, 4801] {
        world.add_process(process(pid).comm("bot").exe("/opt/bot"));
    }
    announce(&world, 4800, "s-1", &json!({ "client_pid": 4801 }));
    let said = world.run("pid --client s-1");
    assert_eq!(
        (said.status, said.out.as_str()),
        (0, "4801\n"),
        "{}",
        said.err
    );
    let said = world.run("why s-1").out;
    let sentence = "Process 4801 is its client, without a terminal.";
    assert!(said.contains(sentence), "{said}");
    let said = world.run("list --columns id,client,pane --no-header").out;
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>(),
        ["s-1", "4801", "-"]
    );
}
