//! What agents' hooks do that one would not expect. Seen in the agents that are
//! named; each must leave a true record.

use serde_json::json;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::sources::record::EndCause;

use super::scene::Scene;

const P1: i32 = 101;
const P2: i32 = 102;

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.start(P1, 1_000);
    scene
}

#[track_caller]
fn check(scene: &Scene, session: &str, phase: Phase, owner: i32) {
    let record = scene.record(session).unwrap();
    let found = record.owner.map(|owner| owner.pid.get());
    assert_eq!((record.phase, found), (phase, Some(owner)), "{session}");
}

/// Claude Code, `--continue`.
#[test]
fn a_start_that_comes_twice_leaves_the_throw_away_session_to_no_process() {
    let mut scene = scene();
    scene.report(P1, "thrown", "SessionStart", json!({"source": "startup"}));
    scene.report(P1, "s1", "SessionStart", json!({"source": "resume"}));
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    check(&scene, "s1", Phase::Working, P1);
    scene.publish(P1, 1_000, "s1");
    let thrown = scene.listed("thrown");
    assert!(thrown.is_none_or(|session| session.liveness() != Liveness::Live));
    assert_eq!(scene.listed("s1").unwrap().liveness(), Liveness::Live);
}

/// Claude Code, `--fork-session`: the new process reports the old session first.
#[test]
fn a_fork_that_reports_the_old_id_takes_it_from_no_process() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.publish(P1, 1_000, "s1");
    let fork = scene.claude(P2, 2_000, 1);
    scene.add(fork.argv(&["claude", "--resume", "s1", "--fork-session"]));
    scene.publish(P2, 2_000, "forked");
    scene.report(P2, "s1", "SessionStart", json!({"source": "resume"}));
    check(&scene, "s1", Phase::Working, P1);
    check(&scene, "forked", Phase::Idle, P2);
    for (id, pid) in [("s1", P1), ("forked", P2)] {
        let listed = scene.listed(id).unwrap();
        assert_eq!(listed.owner.map(|owner| owner.pid.get()), Some(pid));
        assert!(listed.other_live.is_empty());
    }
    scene.report(P2, "forked", "UserPromptSubmit", json!({"prompt": "q"}));
    check(&scene, "forked", Phase::Working, P2);
    // The first process continues, and reports it.
    scene.report(P1, "s1", "Stop", json!({}));
    check(&scene, "s1", Phase::Idle, P1);
    // Once it has reported, the hook of a `/resume` to the origin is right.
    scene.report(P2, "forked", "SessionEnd", json!({"reason": "resume"}));
    scene.report(P2, "s1", "SessionStart", json!({"source": "resume"}));
    check(&scene, "s1", Phase::Idle, P2);
    scene.report(P2, "s1", "SessionEnd", json!({"reason": "resume"}));
    scene.report(P2, "forked", "SessionStart", json!({"source": "resume"}));
    scene.kill(P2);
    let report = scene.sweep();
    let ended: Vec<_> = report
        .ended
        .iter()
        .map(|swept| swept.session.as_str())
        .collect();
    assert_eq!(ended, ["forked"]);
}

/// Claude Code 2.1.332, `/resume` within a session: the hook names the new session while
/// the registry still names the one that was left.
#[test]
fn a_session_resumed_within_another_is_not_the_one_that_was_left() {
    let mut scene = scene();
    scene.report(P1, "earlier", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "earlier", "SessionEnd", json!({"reason": "clear"}));
    scene.report(P1, "left", "SessionStart", json!({"source": "clear"}));
    scene.report(P1, "left", "UserPromptSubmit", json!({"prompt": "q"}));
    scene.publish(P1, 1_000, "left");
    scene.report(P1, "left", "SessionEnd", json!({"reason": "resume"}));
    scene.report(P1, "earlier", "SessionStart", json!({"source": "resume"}));
    scene.publish(P1, 1_000, "earlier");
    check(&scene, "earlier", Phase::Idle, P1);
    assert_eq!(scene.record("left").unwrap().phase, Phase::Ended);
    let left = scene.listed("left");
    assert!(left.is_none_or(|left| left.liveness() == Liveness::Exited));
}

#[test]
fn events_that_come_late_doubled_or_out_of_order_change_what_they_may() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    for name in [
        "PreToolUse",
        "PreToolUse",
        "Stop",
        "PostToolUse",
        "PostToolUse",
        "Stop",
    ] {
        scene.report(P1, "s1", name, json!({}));
    }
    // A tool that ends after its turn begins no other one.
    check(&scene, "s1", Phase::Idle, P1);
    scene.report(P1, "s1", "SessionStart", json!({"source": "startup"}));
    check(&scene, "s1", Phase::Idle, P1);
    assert_eq!(scene.record("s1").unwrap().heard.turns, 1);
}

/// The hook of a start may fail, or run late.
#[test]
fn a_turn_ends_in_a_session_whose_start_was_not_heard() {
    let mut scene = scene();
    scene.report(P1, "s1", "SessionStart", json!({"source": "startup"}));
    scene.report(P1, "s2", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s2", "Stop", json!({}));
    check(&scene, "s2", Phase::Idle, P1);
    scene.report(P1, "s2", "SessionStart", json!({"source": "clear"}));
    check(&scene, "s2", Phase::Idle, P1);
    // It was left, and what comes late says nothing about a phase.
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s3", "SessionStart", json!({"source": "clear"}));
    let before = scene.record("s2").unwrap();
    scene.report(P1, "s2", "Stop", json!({}));
    let after = scene.record("s2").unwrap();
    assert_eq!(after.heard.phase_at_ms, before.heard.phase_at_ms);
}

/// Kimi Code, `/new`.
#[test]
fn the_start_of_the_next_session_may_come_before_the_end_of_the_last() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s2", "SessionStart", json!({"source": "startup"}));
    scene.report(P1, "s1", "SessionEnd", json!({"reason": "exit"}));
    check(&scene, "s1", Phase::Ended, P1);
    check(&scene, "s2", Phase::Starting, P1);
}

#[test]
fn a_session_that_works_on_after_its_end_has_not_ended() {
    let mut scene = scene();
    scene.report(P1, "s1", "SessionStart", json!({"source": "startup"}));
    assert!(scene.report(P1, "s1", "SessionEnd", json!({"reason": "other"})));
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    check(&scene, "s1", Phase::Working, P1);
    assert_eq!(scene.end("s1"), None);
    assert_eq!(scene.listed("s1").unwrap().liveness(), Liveness::Live);
}

/// A late event of the first life, and an end by another process in the second.
#[test]
fn what_a_process_did_before_an_end_is_not_what_it_does_after_it() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s1", "SessionEnd", json!({"reason": "other"}));
    scene.report(P1, "s1", "Stop", json!({}));
    scene.report(P1, "s1", "SessionStart", json!({"source": "resume"}));
    scene.start(P2, 2_000);
    scene.report(P2, "s1", "SessionEnd", json!({"reason": "other"}));
    check(&scene, "s1", Phase::Idle, P1);
}

/// Gemini CLI: twice on `/quit`, up to three times on SIGTERM.
#[test]
fn of_an_end_that_is_reported_three_times_the_first_counts() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    let is_first = scene.report(P1, "s1", "SessionEnd", json!({"reason": "exit"}));
    let end = scene.end("s1");
    let again = scene.report(P1, "s1", "SessionEnd", json!({"reason": "other"}));
    scene.kill(P1);
    let report = scene.sweep();
    assert!(is_first && !again && report.ended.is_empty() && report.to_pass_on.is_empty());
    assert_eq!((scene.end("s1"), end.unwrap().0), (end, EndCause::ExitHook));
}

#[test]
fn an_idle_reminder_asks_for_nothing() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s1", "Stop", json!({}));
    scene.report(
        P1,
        "s1",
        "Notification",
        json!({"notification_type": "idle_prompt"}),
    );
    check(&scene, "s1", Phase::Idle, P1);
    scene.report(
        P1,
        "s1",
        "Notification",
        json!({"notification_type": "permission_prompt"}),
    );
    check(&scene, "s1", Phase::Waiting, P1);
}

#[test]
fn clear_ends_one_session_and_starts_another_in_the_same_process() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s1", "SessionEnd", json!({"reason": "clear"}));
    scene.report(P1, "s2", "SessionStart", json!({"source": "clear"}));
    check(&scene, "s2", Phase::Starting, P1);
    let record = scene.record("s1").unwrap();
    assert_eq!(record.heard.end_reason.as_deref(), Some("clear"));
    // Both had a share of what the process used.
    assert_eq!(record.heard.cpu.at_least_ms, Some(0));
    let live = |session| scene.listed(session).map(|one| one.liveness());
    assert_eq!(live("s2"), Some(Liveness::Live));
    assert_ne!(live("s1"), Some(Liveness::Live));
}

#[test]
fn a_nested_headless_agent_has_its_own_session_and_takes_no_other() {
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    let nested = scene.claude(P2, 2_000, P1).argv(&["claude", "-p", "x"]);
    scene.add(nested);
    scene.report(P2, "s2", "UserPromptSubmit", json!({"prompt": "x"}));
    check(&scene, "s2", Phase::Working, P2);
    check(&scene, "s1", Phase::Working, P1);
    scene.kill(P2);
    scene.sweep();
    assert_eq!(scene.end("s2").unwrap().0, EndCause::ProcessGone);
    check(&scene, "s1", Phase::Working, P1);
}

#[test]
fn a_hook_before_there_is_a_transcript_is_recorded_under_the_id_it_reports() {
    let mut scene = scene();
    let path = scene.home().join(".claude/projects/-x/s1.jsonl");
    scene.report(P1, "s1", "SessionStart", json!({"transcript_path": path}));
    assert_eq!(scene.record("s1").unwrap().transcript, Some(path));
    let listed = scene.listed("s1").unwrap();
    assert_eq!(listed.sketch.transcript, None);
    assert_eq!(listed.liveness(), Liveness::Live);
}

/// claude-code#26563.
#[test]
fn the_id_whose_transcript_is_written_wins_over_the_reported_id() {
    let mut scene = scene();
    let path = scene.write_transcript(P1, "s1", scene.now_ms);
    scene.report(
        P1,
        "s9",
        "UserPromptSubmit",
        json!({"transcript_path": path}),
    );
    check(&scene, "s1", Phase::Working, P1);
    assert!(scene.record("s9").is_none());
}

/// context-mode#347: the hook's parent is a shell that is gone a moment later.
#[test]
fn no_agent_above_a_hook_means_no_owner_and_never_a_shell() {
    use whosup_core::process::RecordedProcess;
    let mut scene = scene();
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.add(RecordedProcess::new(300, 3_000, scene.now_ms).comm("bash"));
    scene.report(300, "s1", "Stop", json!({}));
    let record = scene.record("s1").unwrap();
    assert!(record.owners.may_be_another());
    let found = record
        .owners
        .iter()
        .filter_map(|known| known.identity.as_ref());
    assert!(found.map(|owner| owner.pid.get()).eq([P1]));
    // Through a shell, a runner and one more shell it is found.
    for (pid, parent, comm) in [(301, P1, "sh"), (302, 301, "npm exec x"), (303, 302, "sh")] {
        let process = RecordedProcess::new(pid, 3_000, scene.now_ms)
            .comm(comm)
            .ppid(parent);
        scene.add(process);
    }
    scene.report(303, "s1", "Stop", json!({}));
    check(&scene, "s1", Phase::Idle, P1);
}

/// The hook of the start of the other session has not run.
#[test]
fn a_session_that_was_left_for_one_taken_up_again_is_no_orphan() {
    let mut scene = scene();
    scene.report(P1, "s1", "SessionStart", json!({"source": "startup"}));
    scene.report(P1, "s2", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s1", "SessionStart", json!({"source": "resume"}));
    scene.kill(P1);
    scene.sweep();
    let cause = |session| scene.end(session).map(|(cause, _)| cause);
    assert_eq!(cause("s1"), Some(EndCause::ProcessGone));
    assert_eq!(cause("s2"), Some(EndCause::Superseded));
}

/// `docker run IMAGE claude`: the agent is the first process of its PID namespace.
#[test]
fn an_agent_that_is_pid_1_owns_what_its_hooks_report() {
    for named in [None, Some(1)] {
        let mut scene = Scene::new();
        let agent = scene.claude(1, 1_000, 0);
        scene.add(agent);
        scene.named = named;
        scene.report(1, "s1", "SessionStart", json!({"source": "startup"}));
        scene.report(1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
        check(&scene, "s1", Phase::Working, 1);
        assert_eq!(scene.listed("s1").unwrap().liveness(), Liveness::Live);
        // Its last hook has lost its parent, and the kernel gives it to PID 1.
        scene.start(P1, 2_000);
        scene.named = Some(P1);
        scene.report(P1, "s2", "UserPromptSubmit", json!({"prompt": "q"}));
        scene.kill(P1);
        scene.report(1, "s2", "Stop", json!({}));
        check(&scene, "s2", Phase::Idle, P1);
        assert_ne!(scene.listed("s2").unwrap().liveness(), Liveness::Live);
    }
}

#[test]
fn an_unknown_program_that_is_pid_1_is_an_owner_only_if_the_agent_names_it() {
    use whosup_core::process::RecordedProcess;
    let mut scene = scene();
    let init = RecordedProcess::new(1, 1, scene.now_ms).exe("/opt/bin/cc");
    scene.add(init.comm("cc"));
    scene.report(1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    assert!(scene.record("s1").unwrap().owner.is_none());
    scene.publish(1, 1, "s1");
    scene.report(1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    check(&scene, "s1", Phase::Working, 1);
    scene.named = Some(1);
    scene.report(1, "s2", "UserPromptSubmit", json!({"prompt": "p"}));
    check(&scene, "s2", Phase::Working, 1);
}
