//! `notify`: when it notifies, and how.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::notifications::Desktop;
use super::shell_agent::ShellAgent;
use super::watching::{Watching, is};
use super::world::{WHOSUP, World, said, wait_for};

/// `whosup notify`, which ends with the test.
struct Notifying(Child);

impl Notifying {
    /// Starts it for sessions in the world's directory, and waits until it watches.
    #[track_caller]
    fn start(world: &World, address: &str, options: &[&str]) -> Self {
        let mut child = Command::new(WHOSUP)
            .args(["notify", "--cwd", "."])
            .args(options)
            .env_clear()
            .env("HOME", world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("DBUS_SESSION_BUS_ADDRESS", address)
            .current_dir(world.work_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let notifying = Self(child);
        let mut first = String::new();
        words.read_line(&mut first).unwrap();
        assert!(first.starts_with("watching "), "{first}");
        // Warnings go to the test's output, since they must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::stderr()));
        notifying
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A command that appends its input to a file, and a function that reads the file.
fn keep(world: &World) -> (String, impl Fn() -> Vec<Value>) {
    let file = world.root().join("kept");
    let command = format!("cat >> '{}'", file.display());
    let kept = move || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let documents = serde_json::Deserializer::from_str(&text).into_iter();
        documents.map_while(Result::ok).collect()
    };
    (command, kept)
}

#[test]
fn a_command_gets_transitions_and_no_initial_states() {
    let world = World::new();
    let mut early = ShellAgent::start(&world);
    early.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    early.report(
        &world.s1,
        "PermissionRequest",
        json!({ "tool_name": "Bash" }),
    );
    let mut seen = Watching::start(&world);
    seen.until("the wait", |state| is(state, &world.s1, "phase", "waiting"));
    let (command, kept) = keep(&world);
    let _notifying = Notifying::start(&world, "", &["--exec", &command]);
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s2, "SessionStart", json!({ "source": "startup" }));
    // Each step is seen before the next, so that none is summarized with another.
    let mut report = |name: &str, more: Value, phase: &str| {
        agent.report(&world.s2, name, more);
        seen.until(phase, |state| is(state, &world.s2, "phase", phase));
    };
    report(
        "UserPromptSubmit",
        json!({ "prompt": "Fix <b>" }),
        "working",
    );
    let count = |number: usize| {
        wait_for("the notification", || {
            let kept = kept();
            (kept.len() >= number).then_some(kept)
        })
    };
    report(
        "PermissionRequest",
        json!({ "tool_name": "Bash" }),
        "waiting",
    );
    count(1);
    // `notify` scans by itself: it may miss a turn that is over at once.
    wait_for("the end of a turn", || {
        report("UserPromptSubmit", json!({ "prompt": "On" }), "working");
        report("Stop", json!({}), "idle");
        (kept().len() >= 2).then_some(())
    });
    agent.kill();
    let kept = count(3);
    let mut kinds: Vec<&Value> = kept.iter().map(|one| &one["kind"]).collect();
    kinds.dedup();
    assert_eq!(kinds, ["waiting", "turn-ended", "died"], "{kept:#?}");
    for one in &kept {
        let sessions = one["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{one}");
        assert_eq!(sessions[0]["session_id"], world.s2.as_str(), "{one}");
        assert_eq!(one["schema_version"], 1, "{one}");
    }
    let last = kept.last().unwrap();
    assert_eq!(last["sessions"][0]["liveness"], "exited");
}

#[test]
fn only_what_is_asked_for_is_notified() {
    let world = World::new();
    let (command, kept) = keep(&world);
    let _notifying = Notifying::start(&world, "", &["--on", "ended", "--exec", &command]);
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    agent.prompt(&world.s1);
    let mut seen = Watching::start(&world);
    seen.until("the turn", |state| is(state, &world.s1, "phase", "working"));
    agent.report(&world.s1, "Stop", json!({}));
    seen.until("its end", |state| is(state, &world.s1, "phase", "idle"));
    agent.report(
        &world.s1,
        "SessionEnd",
        json!({ "reason": "prompt_input_exit" }),
    );
    agent.kill();
    let kept = wait_for("the notification", || {
        let kept = kept();
        (!kept.is_empty()).then_some(kept)
    });
    let kinds: Vec<&Value> = kept.iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["ended"], "{kept:#?}");
}

#[test]
fn a_desktop_shows_what_models_write_as_text() {
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let world = World::new();
    let mut tested = world.whosup();
    tested.env("DBUS_SESSION_BUS_ADDRESS", &desktop.address);
    let test = said(tested.args(["notify", "--test"]));
    assert_eq!((test.status, test.err.as_str()), (0, ""));
    let expected = "`test desktop 7` shows it as notification 1\n";
    assert_eq!(test.out, expected);
    assert_eq!(desktop.next()["summary"], "whosup can notify you");

    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    let text = std::fs::read_to_string(&transcript).unwrap();
    let text = text.replace("Fix the flaky", "Fix <b>the</b> &amp; flaky");
    std::fs::write(&transcript, text).unwrap();
    agent.prompt(&world.s1);
    let mut seen = Watching::start(&world);
    seen.until("the turn", |state| is(state, &world.s1, "phase", "working"));
    let _notifying = Notifying::start(&world, &desktop.address, &[]);
    let asked = json!({ "tool_name": "Bash" });
    agent.report(&world.s1, "PermissionRequest", asked);
    let shown = desktop.next();
    assert_eq!(shown["summary"], "claude-code asks for permission");
    assert_eq!(shown["app"], "whosup");
    let body = shown["body"].as_str().unwrap();
    assert!(
        body.contains("Fix &lt;b&gt;the&lt;/b&gt; &amp;amp; flaky"),
        "{body}"
    );
    assert!(!body.contains(['<', '>']), "{body}");
}

#[test]
fn without_a_desktop_the_next_step_is_named() {
    let world = World::new();
    let nowhere = format!("unix:path={}/no-bus", world.root().display());
    for options in [&["notify"][..], &["notify", "--test"]] {
        let mut command = world.whosup();
        let said = said(
            command
                .env("DBUS_SESSION_BUS_ADDRESS", &nowhere)
                .args(options),
        );
        assert_eq!(said.status, 2, "{}", said.err);
        assert!(said.err.contains("D-Bus"), "{}", said.err);
        assert!(said.err.contains("`--exec COMMAND`"), "{}", said.err);
    }
}

#[test]
fn a_test_runs_the_command_that_is_configured_and_says_if_it_fails() {
    let world = World::new();
    let file = world.root().join("kept");
    let exec = format!("[notify]\nexec = [\"tee\", \"{}\"]\n", file.display());
    let config = world.write(".config/whosup/config.toml", exec);
    let test = world.run(["notify", "--test"]);
    assert_eq!((test.status, test.err.as_str()), (0, ""));
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["kind"], "test");
    let failed = world.run(["notify", "--test", "--exec", "exit 3"]);
    assert_eq!(failed.status, 2);
    assert!(failed.err.contains("exit 3"), "{}", failed.err);
    std::fs::write(config, "[notify]\nquiet = \"late\"\n").unwrap();
    let wrong = world.run(["notify", "--test"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.err.contains("line 2"), "{}", wrong.err);
}

#[test]
fn a_day_that_costs_more_than_the_budget_is_announced_once() {
    let world = World::new();
    let transcript = format!(".claude/projects/-p/{}.jsonl", world.s1);
    let reply = |tokens: u64| {
        json!({
            "type": "assistant", "timestamp": jiff::Timestamp::now().to_string(),
            "cwd": world.work_dir(), "version": "2.1.197",
            "message": { "id": format!("m{tokens}"), "role": "assistant",
                "model": "claude-opus-4-8", "content": [], "stop_reason": "end_turn",
                "usage": { "input_tokens": tokens, "output_tokens": 1 } },
        })
    };
    world.write(&transcript, format!("{}\n", reply(10)));
    let mut agent = ShellAgent::start(&world);
    agent.report(&world.s1, "SessionStart", json!({ "source": "startup" }));
    let (command, kept) = keep(&world);
    let options = ["--on", "budget", "--budget", "1.50", "--exec", &command];
    let _notifying = Notifying::start(&world, "", &options);
    // Its first count is kept in the cache.
    let cache = world.home().join(".cache/whosup/usage");
    wait_for("the first count", || cache.exists().then_some(()));
    world.write(
        &transcript,
        format!("{}\n{}\n", reply(10), reply(1_000_000)),
    );
    agent.report(&world.s1, "UserPromptSubmit", json!({ "prompt": "Go" }));
    let kept = wait_for("the budget to be passed", || {
        Some(kept()).filter(|kept| !kept.is_empty())
    });
    assert_eq!(kept.len(), 1, "{kept:#?}");
    assert_eq!(kept[0]["kind"], "budget");
    assert_eq!(kept[0]["budget_usd"], 1.5);
    assert!(kept[0]["cost_usd"].as_f64().unwrap() > 1.5, "{kept:#?}");
    assert_eq!(kept[0]["sessions"], json!([]));
}

#[test]
fn a_budget_without_an_amount_is_refused() {
    let world = World::new();
    let refused = world.run(["notify", "--on", "budget", "--exec", "true"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("--budget 20"), "{}", refused.err);
    for amount in ["-1", "0", "nan", "much"] {
        let refused = world.run(["notify", "--budget", amount, "--exec", "true"]);
        assert_eq!(refused.status, 2, "{amount}");
        let wanted = format!("invalid value '{amount}' for '--budget <USD>'");
        assert!(refused.err.contains(&wanted), "{}", refused.err);
    }
}
