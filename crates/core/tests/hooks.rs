//! What real hooks said, and what it means.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads its samples, and fails where that fails"
)]

use std::path::Path;

use whosup_core::adapter::{Adapter, SettingsPlace};

use whosup_core::adapter::hook_event::{EventKind, HookError, HookEvent};
use whosup_core::sources::agents::AGENTS;

fn parse(agent: &str, event: Option<&str>, payload: &str) -> Result<HookEvent, HookError> {
    let adapter = AGENTS.iter().find(|one| one.profile().id == agent).unwrap();
    adapter
        .profile()
        .hooks
        .unwrap()
        .parse(payload.as_bytes(), event)
}

/// The samples of one agent: each line is what the event means, a tab, and what
/// the hook read. Where the command line names the event, that comes first.
#[track_caller]
fn check_samples(agent: &str) -> Vec<HookEvent> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hooks/{agent}.tsv"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut events = Vec::new();
    for line in text.lines() {
        let (meaning, payload) = line.split_once('\t').unwrap();
        let (named, meaning) = match meaning.split_once(' ') {
            Some((named, meaning)) => (Some(named), meaning),
            None => (None, meaning),
        };
        let event =
            parse(agent, named, payload).unwrap_or_else(|error| panic!("{payload}: {error}"));
        assert_eq!(event.kind.name(), meaning, "{payload}");
        events.push(event);
    }
    assert!(events.len() > 3, "only {} samples of {agent}", events.len());
    events
}

#[test]
fn claude_codes_hooks_mean_what_the_samples_say() {
    let events = check_samples("claude-code");
    let prompts: Vec<_> = events
        .iter()
        .filter_map(|event| event.prompt.as_deref())
        .collect();
    assert_eq!(prompts, ["hello one"]);
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| event.reason.as_deref())
        .collect();
    assert_eq!(ends, ["clear", "prompt_input_exit"]);
    let sub_agents: Vec<_> = events
        .iter()
        .filter_map(|event| event.sub_agent.as_deref())
        .collect();
    assert_eq!(sub_agents, ["a4a0da5550e2d1dd1", "a4a0da5550e2d1dd1"]);
    assert!(events.iter().all(|event| event.transcript.is_some()));
}

#[test]
fn codexs_hooks_mean_what_the_samples_say() {
    let events = check_samples("codex");
    assert!(events.iter().all(|event| event.work_dir.is_some()));
}

#[test]
fn qwen_codes_hooks_mean_what_the_samples_say() {
    let events = check_samples("qwen-code");
    let prompts: Vec<_> = events
        .iter()
        .filter(|event| event.kind == EventKind::TurnStarted)
        .map(|event| event.prompt.as_deref())
        .collect();
    // The second one follows a tool's result and has no prompt of a person's.
    assert_eq!(prompts, [Some("hello"), None]);
}

#[test]
fn kimi_clis_hooks_mean_what_the_samples_say() {
    let events = check_samples("kimi-cli");
    assert!(events.iter().all(|event| event.transcript.is_none()));
}

#[test]
fn kimi_codes_hooks_mean_what_the_samples_say() {
    let events = check_samples("kimi-code");
    let prompts = events.iter().filter_map(|event| event.prompt.as_deref());
    assert_eq!(prompts.collect::<Vec<_>>(), ["run it", "hello two"]);
}

#[test]
fn gemini_clis_hooks_mean_what_the_samples_say() {
    let events = check_samples("gemini");
    let ends = events.iter().filter_map(|event| event.reason.as_deref());
    assert_eq!(ends.collect::<Vec<_>>(), ["clear", "exit"]);
}

#[test]
fn copilot_clis_hooks_mean_what_the_samples_say() {
    let events = check_samples("copilot");
    // What a sub-agent's tool tells is its session's.
    let sessions: std::collections::BTreeSet<_> =
        events.iter().map(|event| event.session.as_str()).collect();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    let sub_agents = events.iter().filter_map(|event| event.sub_agent.as_deref());
    let sub_agents: Vec<_> = sub_agents.collect();
    assert_eq!(sub_agents, ["3df5e86b-f05d-4a1c-8381-159ecf1594e6"; 2]);
}

#[test]
fn vibes_hooks_mean_what_the_samples_say() {
    let events = check_samples("vibe");
    assert!(events.iter().all(|event| event.transcript.is_none()));
}

#[test]
fn what_our_plugin_of_opencode_says_means_what_the_samples_say() {
    check_samples("opencode");
}

#[test]
fn droids_hooks_mean_what_the_samples_say() {
    check_samples("droid");
}

#[test]
fn an_event_that_is_not_known_only_shows_that_the_agent_is_there() {
    for adapter in AGENTS {
        let Some(hooks) = adapter.profile().hooks else {
            continue;
        };
        let payload = br#"{"hook_event_name":"SomethingNew","session_id":"s1","sessionId":"s1"}"#;
        let event = hooks.parse(payload, Some("somethingNew")).unwrap();
        assert_eq!(event.kind, EventKind::Heartbeat, "{}", adapter.profile().id);
    }
}

#[test]
fn every_event_that_is_asked_for_means_something() {
    for adapter in AGENTS {
        let Some(hooks) = adapter.profile().hooks else {
            continue;
        };
        let is_reminder = |name: &&&str| name.eq_ignore_ascii_case("notification");
        for name in hooks.events.iter().filter(|name| !is_reminder(name)) {
            let payload =
                format!(r#"{{"hook_event_name":"{name}","session_id":"s1","sessionId":"s1"}}"#);
            let event = hooks.parse(payload.as_bytes(), Some(name)).unwrap();
            assert_ne!(
                event.kind,
                EventKind::Heartbeat,
                "{}: {name}",
                adapter.profile().id
            );
        }
    }
}

#[test]
fn what_is_no_event_is_refused_by_name() {
    for (payload, named) in [
        ("", "empty"),
        ("[]", "object"),
        (r#"{"session_id":"s1"}"#, "hook_event_name"),
        (r#"{"hook_event_name":"Stop"}"#, "session_id"),
        (
            r#"{"hook_event_name":"Stop","session_id":"../../x"}"#,
            "session_id",
        ),
        (r#"{"hook_event_name":"Stop","session_id":7}"#, "session_id"),
        (
            r#"{"hook_event_name":"Stop","session_id":"s1","cwd":false}"#,
            "cwd",
        ),
    ] {
        let error = parse("claude-code", None, payload).unwrap_err().to_string();
        assert!(error.contains(named), "{payload}: {error}");
    }
    let error = parse("copilot", None, r#"{"sessionId":"s1"}"#).unwrap_err();
    assert!(error.to_string().contains("event"), "{error}");
}

/// What the document says of one agent: where its hooks are set, and its names of
/// the events that are asked for.
fn row(adapter: &dyn Adapter) -> Option<String> {
    let hooks = adapter.profile().hooks?;
    let home = std::path::PathBuf::from("~").join(adapter.profile().default_home);
    let environment = whosup_core::machine::Environment::new(Some("~".into()), None, []);
    let files = hooks.settings.iter().map(|file| match file.place {
        SettingsPlace::Home(below) => home.join(below),
        SettingsPlace::Environment(_) => file.path(&home, &environment).unwrap(),
    });
    let files: Vec<_> = files.map(|path| format!("`{}`", path.display())).collect();
    Some(format!(
        "| {} | {} | {} |\n",
        adapter.profile().name,
        files.join(", else "),
        hooks.events.join(", ")
    ))
}

#[test]
fn the_document_names_every_agent_with_its_settings_and_events() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- agents: checked by crates/core/tests/hooks.rs -->\n",
        "<!-- end of agents -->\n",
    );
    let (before, rest) = written.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let rows: String = AGENTS.iter().filter_map(|adapter| row(*adapter)).collect();
    let head = "\n| Agent | Settings | Events |\n|---|---|---|\n";
    let right = format!("{before}{begin}{head}{rows}\n{end}{after}");
    if std::env::var_os("WHOSUP_BLESS").is_some() {
        std::fs::write(&path, &right).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written == right,
        "docs/hooks.md differs: write it again with WHOSUP_BLESS=1"
    );
}
