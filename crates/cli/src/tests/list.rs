//! `whosup list`

use serde_json::{Value, json};
use whosup_core::process::RecordedProcess;

use super::world::{MINUTE_MS, S1, S2, S3, S4, S5, S6, Said, World, now_ms, ticks};

/// A session in every condition that Claude Code has, and a process of Codex without a known
/// session.
fn busy_world() -> World {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({ "status": "busy" }));
    world.write_claude_transcript(S1, "src/shop", "Fix the flaky login test", 3);
    world.write_claude_sub_agent(S1, "src/shop", "a4a0da5550e2d1dd1");
    world.add_claude(
        4712,
        S2,
        "src/shop",
        12,
        &json!({ "status": "waiting", "waitingFor": "permission prompt" }),
    );
    world.write_claude_transcript(S2, "src/shop", "会话恢复测试: 修复登录", 12);
    world.add_claude(
        4713,
        S3,
        "src/blog engine",
        40,
        &json!({ "status": "waiting", "waitingFor": "input needed" }),
    );
    world.add_claude(4714, S4, "src/api", 20, &json!({ "name": "API 🦀 v2" }));
    // Died an hour ago, and left its record behind.
    world.write_claude_record(4715, S5, "src/api", 90, &json!({ "status": "busy" }));
    world.write_claude_transcript(S5, "src/api", "Write the changelog", 90);
    // Of another machine.
    let other = json!({ "procStart": "Fri Nov 27 20:52:50 2026" });
    world.write_claude_record(4716, S6, "src/api", 30, &other);
    world.write_claude_transcript(S6, "src/api", "Measure the start-up", 30);
    let codex = RecordedProcess::new(4720, ticks(4720), now_ms() - 5 * MINUTE_MS)
        .comm("codex")
        .argv(&["codex"])
        .exe("/opt/codex/bin/codex")
        .cwd(world.work_dir("src/ops"))
        .tty(136, 20);
    world.add_process(codex);
    world
}

#[track_caller]
fn ids(said: &Said) -> Vec<String> {
    let sessions = said.json()["sessions"].as_array().unwrap().clone();
    let id = |session: &serde_json::Value| session["session_id"].as_str().unwrap().to_owned();
    sessions.iter().map(id).collect()
}

#[test]
fn the_default_view_shows_what_is_live_unknown_or_died_today() {
    insta::assert_snapshot!(busy_world().run("list").text());
}

#[test]
fn plain_whosup_lists() {
    let world = busy_world();
    assert_eq!(world.run("").out, world.run("list").out);
}

#[test]
fn the_table_fits_the_terminal() {
    let world = busy_world();
    for width in [40, 60, 80, 100, 160] {
        let said = world.run_on_terminal("list", width, false);
        for line in said.out.lines() {
            assert!(crate::text::width(line) <= width, "{width}: {line}");
        }
        insta::assert_snapshot!(format!("table_{width}"), said.out);
    }
}

#[test]
fn states_have_colours_on_a_terminal() {
    let said = busy_world().run_on_terminal("list --columns id,state", 80, true);
    insta::assert_snapshot!(said.out.replace('\u{1b}', "^"));
}

#[test]
fn sub_agents_stand_below_their_parent() {
    let world = busy_world();
    let said = world.run("list --sub-agents --columns id,title,state");
    insta::assert_snapshot!(said.out);
    assert!(!world.run("list").out.contains("Look for the test"));
}

#[test]
fn json_has_the_sub_agents_of_what_is_shown() {
    let said = busy_world().run("list --json --phase working");
    assert_eq!(ids(&said).len(), 2, "{}", said.text());
    assert_eq!(said.json()["sessions"][1]["parent_session_id"], S1);
}

#[test]
fn filters_select_the_same_in_the_table_and_in_json() {
    let world = busy_world();
    for (filter, expected) in [
        ("--phase waiting", vec![S3, S2]),
        ("--phase waiting,idle", vec![S3, S2, S4]),
        ("--liveness unknown", vec![S6]),
        ("--liveness exited", vec![S5]),
        ("--cwd @HOME@/src/api --liveness live,unknown", vec![S4, S6]),
        ("--cwd @HOME@/src --liveness unknown", vec![S6]),
        ("--since 15m --liveness live --phase waiting", vec![S2]),
        (
            "--since 2026-11-27T20:58:00Z --phase working --agent claude-code",
            vec![],
        ),
        ("--agent codex", vec![]),
    ] {
        let said = world.run(&format!("list --json {filter}"));
        assert_eq!(ids(&said), expected, "{filter}");
        let table = world.run(&format!("list --columns full-id {filter}"));
        let rows: Vec<&str> = table
            .out
            .lines()
            .skip(1)
            .filter(|row| *row != "-")
            .collect();
        assert_eq!(rows, expected, "{filter}: {}", table.text());
    }
}

#[test]
fn a_limit_keeps_the_first_of_the_order() {
    let world = busy_world();
    for (order, expected) in [
        ("state", [S3, S2]),
        ("activity", [S1, S2]),
        ("agent", [S1, S2]),
        ("pid", [S1, S2]),
        ("directory", [S4, S5]),
    ] {
        let said = world.run(&format!("list --columns full-id --limit 2 --sort {order}"));
        let rows: Vec<&str> = said.out.lines().skip(1).filter(|row| *row != "-").collect();
        assert_eq!(rows, expected, "{order}");
    }
}

#[test]
fn an_orphan_leaves_the_default_view_after_a_day() {
    let world = World::new();
    let day = 24 * 60;
    world.write_claude_record(4711, S1, "src/shop", day - 1, &json!({}));
    world.write_claude_transcript(S1, "src/shop", "Yesterday evening", day - 1);
    world.write_claude_record(4712, S2, "src/shop", day + 1, &json!({}));
    world.write_claude_transcript(S2, "src/shop", "Before that", day + 1);
    let started = json!({ "startedAt": now_ms() - 2 * i64::from(day as i32) * MINUTE_MS });
    world.write_claude_record(4712, S2, "src/shop", day + 1, &started);
    assert_eq!(ids(&world.run("list --json")), [S1]);
    assert_eq!(ids(&world.run("list --json --all")), [S1, S2]);
}

#[test]
fn ndjson_lines_name_their_kind() {
    let world = busy_world();
    world.write(".claude/sessions/9.json", "");
    let kinds: Vec<String> = lines(&world.run("list --ndjson"))
        .iter()
        .map(|line| line["kind"].as_str().unwrap().to_owned())
        .collect();
    let sessions = kinds.iter().filter(|kind| *kind == "session").count();
    assert_eq!(kinds[0], "snapshot");
    assert_eq!(sessions, 7, "{kinds:?}");
    assert_eq!(kinds[8..], ["unattributed", "problem"]);
    let nothing = lines(&World::new().run("list --ndjson"));
    assert_eq!(nothing.len(), 1, "{nothing:?}");
    assert_eq!(nothing[0]["kind"], "snapshot");
}

#[track_caller]
fn lines(said: &Said) -> Vec<Value> {
    let lines = said.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn ndjson_has_the_document_line_by_line() {
    let world = busy_world();
    world.write(".claude/sessions/9.json", "");
    for (arguments, is_sorted) in [
        ("", false),
        ("--all --sort pid", true),
        ("--sort activity", true),
        ("--limit 2", false),
    ] {
        let lines = lines(&world.run(&format!("list --ndjson {arguments}")));
        let mut document = world.run(&format!("list --json {arguments}")).json();
        let of_kind = |kind: &str| -> Vec<Value> {
            let mut found = lines.clone();
            found.retain_mut(|line| line.as_object_mut().unwrap().remove("kind").unwrap() == kind);
            found
        };
        let mut sessions = of_kind("session");
        if !is_sorted {
            let rows = document["sessions"].as_array_mut().unwrap();
            for rows in [&mut sessions, rows] {
                rows.sort_by_key(ToString::to_string);
            }
        }
        let mut whole = of_kind("snapshot").remove(0);
        whole["sessions"] = sessions.into();
        whole["unattributed"] = of_kind("unattributed").into();
        whole["problems"] = of_kind("problem").into();
        assert_eq!(whole, document, "{arguments}");
    }
}

#[test]
fn nothing_live_says_what_was_looked_at() {
    let world = World::new();
    world.write(".claude/settings.json", "{}");
    insta::assert_snapshot!(world.run("list").text());
    insta::assert_snapshot!(world.run("list --all").text());
    insta::assert_snapshot!(world.run("list --phase waiting --agent codex").text());
    assert_eq!(world.run("list --json").err, "");
}

#[test]
fn problems_are_summed_up_in_one_line_and_shown_when_asked_for() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    world.write(".claude/sessions/9.json", "");
    world.write(".claude/sessions/10.json", "[[[[");
    world.write(
        ".local/state/agent-sessions/a/no\u{1b}[31mte.runtime.json",
        "",
    );
    let said = world.run("list");
    assert_eq!(
        said.err,
        "warning: 3 things could not be read; `whosup list --problems` shows them\n"
    );
    insta::assert_snapshot!(world.run("list --problems").text());
}

#[test]
fn what_agents_wrote_cannot_steer_the_terminal() {
    let mut world = World::new();
    let name = "a\u{1b}]0;x\u{7}b\u{202e}c\nd\u{9b}2Je";
    world.add_claude(4711, S1, "src/\u{1b}[2Jshop", 3, &json!({ "name": name }));
    let transcript = "src/\u{1b}[2Jshop";
    world.write_claude_transcript(S1, transcript, "x\u{1b}[2J", 3);
    for line in [
        "list",
        "list --format {title}{work_dir}{directory}{files.transcript}",
        &format!("show {S1} --tail 5"),
        &format!("why {S1}"),
    ] {
        let said = world.run_on_terminal(line, 200, false);
        let text = said.text();
        let is_steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.chars().any(is_steering), "{line}: {text:?}");
    }
}

#[test]
fn an_inferred_life_is_marked() {
    let mut world = World::new();
    // A version without a registry: its arguments alone name the session.
    world.add_claude_process(4711, "src/shop", &["--resume", S1]);
    world.write_claude_transcript(S1, "src/shop", "Fix the flaky login test", 3);
    insta::assert_snapshot!(world.run("list").text());
}

#[test]
fn prompts_are_kept_out_of_titles() {
    let world = busy_world();
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    for line in ["list --all", "list --all --json", &format!("show {S1}")] {
        let said = world.run(line);
        assert!(
            !said.out.contains("Fix the flaky login test"),
            "{}",
            said.text()
        );
    }
    let said = world.run("list");
    assert!(said.out.contains("API 🦀 v2"), "{}", said.text());
}

#[test]
fn a_prompt_that_an_agent_made_a_name_of_is_kept_out_of_titles_too() {
    let world = World::new();
    let thread = "01a21ec8-c5bb-78f0-959a-e72776985ddc";
    let cwd = world.work_dir("src/ops");
    let line = |kind: &str, payload: serde_json::Value| json!({ "timestamp": "2026-11-27T20:57:12.128Z", "type": kind, "payload": payload });
    let meta = json!({
        "id": thread,
        "timestamp": "2026-11-27T20:56:28.527Z",
        "cwd": cwd,
        "originator": "codex-tui",
        "cli_version": "0.171.0",
        "source": "cli",
    });
    let prompt = json!({
        "type": "message",
        "role": "user",
        "content": [{ "type": "input_text", "text": "Rotate the keys" }],
    });
    let lines = [line("session_meta", meta), line("response_item", prompt)];
    let name = format!("rollout-2026-11-27T20-56-28-{thread}.jsonl");
    world.write(
        &format!(".codex/sessions/2026/11/27/{name}"),
        lines.map(|line| format!("{line}\n")).concat(),
    );
    let named = json!({ "id": thread, "thread_name": "Rotate the keys" });
    world.write(".codex/session_index.jsonl", format!("{named}\n"));
    let said = world.run("list --all");
    assert!(said.out.contains("Rotate the keys"), "{}", said.text());
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    for line in ["list --all", "list --all --json", &format!("show {thread}")] {
        let said = world.run(line);
        assert!(said.out.contains("01a21ec8"), "{}", said.text());
        assert!(!said.out.contains("Rotate"), "{}", said.text());
    }
}

#[test]
fn a_home_of_the_configuration_is_looked_at() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    std::fs::rename(world.path(".claude"), world.path("work-claude")).unwrap();
    assert_eq!(ids(&world.run("list --json")).len(), 0);
    let config = "[homes]\nclaude-code = [\"~/work-claude\"]\n";
    world.write(".config/whosup/config.toml", config);
    let said = world.run("list --json");
    assert_eq!(ids(&said), [S1], "{}", said.text());
    assert_eq!(said.json()["sessions"][0]["home"], "@HOME@/work-claude");
}

/// The lines of an output.
fn rows(world: &World, line: &str) -> Vec<String> {
    let said = world.run(line);
    assert_eq!(said.status, 0, "{line}: {}", said.text());
    said.out.lines().map(str::to_owned).collect()
}

/// A session of an agent without an adapter, which has exited.
fn write_sidecar(world: &World, agent: &str, session: &str) {
    let sidecar = json!({
        "schema_version": 1, "pid": 4999, "session_id": session, "hostname": "",
        "work_dir": world.work_dir("src/ops"), "started_at": now_ms() / 1_000 - 60,
    });
    let path = format!(".local/state/agent-sessions/{agent}/{session}.runtime.json");
    world.write(&path, sidecar.to_string());
}

#[test]
fn quiet_ids_are_a_line_each_and_mean_one_session() {
    let world = busy_world();
    assert_eq!(rows(&world, "list -q"), [S3, S2, S1, S4, S6, S5]);
    assert_eq!(rows(&world, "list -q --phase waiting"), [S3, S2]);
    write_sidecar(&world, "my-agent", S5);
    write_sidecar(&world, "my-agent", "nightly-42");
    let ids = rows(&world, "list -q --all --liveness exited --sort agent");
    let [claude, mine] = ["claude-code", "my-agent"].map(|agent| format!("{agent}:{S5}"));
    assert_eq!(ids, [&*claude, &*mine, "nightly-42"]);
    for id in ids {
        assert_eq!(world.run(&format!("check {id}")).status, 1, "{id}");
    }
    let nothing = World::new().run("list -q");
    assert_eq!((nothing.out, nothing.err), (String::new(), String::new()));
}

#[test]
fn an_unknown_agent_in_the_configuration_is_named() {
    let world = busy_world();
    world.write(".config/whosup/config.toml", "[list]\nagent = \"nope\"\n");
    let said = world.run("list");
    assert!(
        said.err.contains("`nope` is not a supported agent"),
        "{}",
        said.err
    );
    let given = world.run("list --agent codex");
    assert!(!given.err.contains("nope"), "{}", given.err);
}

#[test]
fn a_template_shows_fields_of_the_json_and_columns() {
    let world = busy_world();
    let template = r"{id}\t{owner.pid}|{pid}|{state}|{headless}|{{{usage.cost.amount}}}";
    let said = rows(&world, &format!("list --sort pid --format {template}"));
    assert_eq!(
        said[3],
        format!("{S4}\t4714|4714|idle|false|{{-}}"),
        "{said:?}"
    );
    assert_eq!(said[5], format!("{S6}\t-|-|unknown|false|{{-}}"));
    let same = rows(&world, "list --format {session_id}");
    assert_eq!(same, rows(&world, "list -q"));
    let command = rows(&world, "list --liveness exited --format {resume.argv}");
    assert_eq!(command, [format!("claude --resume {S5}")]);
}

#[test]
fn the_fields_of_templates_are_listed() {
    let said = World::new().run("list --format help");
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for line in [
        "  owner.pid ",
        "  age ",
        "  resources.tree.rss_bytes ",
        "  state ",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
}

#[test]
fn a_list_is_sorted_by_every_column_and_from_both_ends() {
    let world = busy_world();
    for (sorted_by, forward, reversed) in [
        ("id", [S1, S2, S3, S4, S5, S6], [S6, S5, S4, S3, S2, S1]),
        ("age", [S1, S2, S4, S6, S3, S5], [S5, S3, S6, S4, S2, S1]),
        // Rows without a PID or title come last in both orders.
        ("pid", [S1, S2, S3, S4, S5, S6], [S4, S3, S2, S1, S5, S6]),
        ("title", [S4, S1, S6, S5, S2, S3], [S2, S5, S6, S1, S4, S3]),
        ("state", [S3, S2, S1, S4, S6, S5], [S5, S6, S4, S1, S2, S3]),
    ] {
        let line = format!("list -q --sort {sorted_by}");
        assert_eq!(rows(&world, &line), forward, "{line}");
        assert_eq!(rows(&world, &format!("{line} -r")), reversed, "{line} -r");
    }
    for column in crate::column::Column::ALL {
        let line = format!("list -q --sort {}", column.name());
        let mut ids = rows(&world, &line);
        assert_eq!(ids, rows(&world, &format!("{line} --limit 9")), "{line}");
        let first = rows(&world, &format!("{line} --limit 2"));
        assert_eq!(first, ids[..2], "{line}");
        ids.sort();
        assert_eq!(ids, [S1, S2, S3, S4, S5, S6], "{line}");
    }
}

#[test]
fn rows_without_a_session_stand_between_live_and_dead_ones_from_both_ends() {
    let world = busy_world();
    let of_codex = |line: &str| {
        let rows = rows(&world, line);
        let at = rows.iter().position(|row| row.starts_with("codex"));
        (at.unwrap(), rows.len())
    };
    assert_eq!(of_codex("list --no-header --columns agent,id"), (4, 7));
    assert_eq!(of_codex("list --no-header --columns agent,id -r"), (2, 7));
}

#[test]
fn headings_can_be_left_out() {
    let world = busy_world();
    let with = rows(&world, "list");
    assert_eq!(rows(&world, "list --no-header"), with[1..]);
}

#[test]
fn the_configuration_sets_what_a_table_shows_and_nothing_else() {
    let world = busy_world();
    let programs = [
        "list --json",
        "list -q",
        "list --format {id}",
        "list --ndjson",
    ];
    let before = programs.map(|line| world.run(line).out);
    let filters = "liveness = \"live\"\nagent = [\"claude-code\"]\n";
    let shown = "columns = [\"full-id\"]\nsort = \"pid\"\nreverse = true\n";
    world.write(
        ".config/whosup/config.toml",
        format!("[list]\n{shown}{filters}"),
    );
    assert_eq!(programs.map(|line| world.run(line).out), before);
    assert_eq!(rows(&world, "list"), ["ID", S4, S3, S2, S1]);
    // The command line wins.
    assert_eq!(rows(&world, "list --sort pid"), ["ID", S1, S2, S3, S4]);
    assert_eq!(rows(&world, "list --liveness unknown"), ["ID", S6]);
    assert_eq!(
        rows(&world, "list --columns pid --phase idle"),
        [" PID", "4714"]
    );
    let all = rows(&world, "list --all");
    assert!(all.iter().any(|row| row == S5), "{all:?}");
    let nothing = world.run("list --phase ended");
    assert!(nothing.err.contains("[list]"), "{}", nothing.err);
}

#[test]
fn a_row_without_a_title_shows_its_directory_or_pid_where_no_column_does() {
    let mut world = World::new();
    world.add_claude(4711, S1, "src/shop", 3, &json!({}));
    let lost = RecordedProcess::new(4720, ticks(4720), now_ms() - 5 * MINUTE_MS)
        .comm("codex")
        .argv(&["codex"])
        .exe("/opt/codex/bin/codex")
        .foreign();
    world.add_process(lost);
    let titles = rows(&world, "list --all-users --no-header --columns title");
    assert_eq!(titles, ["~/src/shop", "PID 4720"]);
    let wide = world.run("list --all-users --no-header --columns title,directory");
    assert_eq!(wide.out, "-      ~/src/shop\n-      -\n");
}

#[test]
fn ids_can_be_typed_as_they_are_shown() {
    let world = World::new();
    let whole = [
        "nightly-42",
        "nightly-43",
        "session_0a022b20-8b66-4429-9815-234560ccc5d1",
        "session_0a022b20-8b66-4429-9815-234560ccc5d2",
        "session_19a1c2d3-8b66-4429-9815-234560ccc5d1",
    ];
    for id in whole {
        write_sidecar(&world, "my-agent", id);
    }
    let shown = rows(&world, "list --all --no-header --columns id --sort id");
    assert_eq!(shown[..2], whole[..2]);
    assert_eq!(shown[4], "session_19a1c2d3");
    for (shown, id) in shown.iter().zip(whole) {
        for command in ["show", "why", "check", "pid", "resume --print"] {
            let said = world.run(&format!("{command} {shown}"));
            assert_ne!(said.status, 4, "{command} {shown}: {}", said.text());
            assert!(!said.err.contains("ID that begins"), "{}", said.text());
        }
        let said = world.run(&format!("show --json {shown}"));
        assert_eq!(ids(&said), [id], "{}", said.text());
    }
}

#[test]
fn an_agent_that_has_not_published_yet_has_no_sessions() {
    let world = busy_world();
    for (line, near) in [
        ("list --agent claude", "`claude-code`"),
        ("list -q --agent my-agent", "`my-agent`"),
        ("list --json --agent my-agent", "not published"),
    ] {
        let said = world.run(line);
        assert_eq!(said.status, 0, "{}", said.text());
        assert!(said.err.contains(near), "{}", said.text());
        assert!(!said.out.contains(S1), "{}", said.text());
    }
    for line in ["check my-agent:0a02", "check --quiet my-agent:0a02"] {
        assert_eq!(world.run(line).status, 4, "{line}");
    }
    write_sidecar(&world, "my-agent", "nightly-42");
    let said = world.run("list --all -q --agent my-agent");
    assert_eq!((said.out.as_str(), said.err.as_str()), ("nightly-42\n", ""));
}
