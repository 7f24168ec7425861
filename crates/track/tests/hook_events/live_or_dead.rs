//! Who is ended and who is not, by public reports of what went wrong.

use serde_json::json;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::process::{Absent, BootId, HostName, PidNamespace, PidScope, RunState, View};
use whosup_core::process::{HidePid, RecordedProcess};
use whosup_core::sources::record::EndCause;

use super::scene::Scene;

const P1: i32 = 101;
const P2: i32 = 102;
const HOUR_MS: i64 = 3_600_000;

fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.start(P1, 1_000);
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene
}

fn scope() -> PidScope {
    PidScope {
        host: Ok(HostName("devbox".to_owned())),
        boot: BootId::parse("19c1d8ff-a55f-47c0-82a1-b0f1bc43623b").ok_or(Absent::Unsupported),
        pid_namespace: Ok(PidNamespace::INITIAL),
    }
}

fn view(now_ms: i64) -> View {
    View {
        is_proc_ours: Ok(true),
        hide_pid: Ok(HidePid::Off),
        is_everything_shown: Ok(true),
        is_initial_pid_namespace: Ok(true),
        is_initial_time_namespace: Ok(true),
        is_root: true,
        uid: Ok(0),
        booted_at_ms: Ok(now_ms),
    }
}

/// claude-code#79702, #90032: no end is reported on a kill.
#[test]
fn a_killed_agents_session_ends_once_at_its_last_sign_of_life() {
    let mut scene = scene();
    let last_ms = scene.now_ms;
    scene.kill(P1);
    scene.now_ms += 3 * HOUR_MS;
    assert_eq!(scene.sweep().ended.len(), 1);
    assert_eq!(scene.end("s1"), Some((EndCause::ProcessGone, last_ms)));
    let record = scene.record("s1");
    let second = scene.sweep();
    assert!(second.ended.is_empty() && second.to_pass_on.is_empty());
    assert_eq!(scene.record("s1"), record);
}

/// Headless runs of some agents report no end.
#[test]
fn a_session_that_its_terminal_ended_is_no_orphan_of_an_earlier_run() {
    let mut scene = scene();
    scene.start(P2, 1_010);
    scene.report(P2, "s1", "SessionStart", json!({"source": "resume"}));
    scene.kill(P2);
    scene.report(P1, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    scene.report(P1, "s1", "SessionEnd", json!({"reason": "other"}));
    scene.kill(P1);
    let session = scene.listed("s1").unwrap();
    assert_eq!(session.verdict.liveness(), Liveness::Exited);
    assert!(!session.is_orphan());
    assert_eq!(scene.sweep().ended.len(), 1);
    assert_eq!(
        scene.end("s1").map(|(cause, _)| cause),
        Some(EndCause::Left)
    );
}

#[test]
fn what_a_killed_run_was_doing_is_not_what_the_terminal_does() {
    let mut scene = scene();
    scene.report(P1, "s1", "Stop", json!({}));
    scene.start(P2, 1_010);
    scene.report(P2, "s1", "SessionStart", json!({"source": "resume"}));
    scene.report(P2, "s1", "UserPromptSubmit", json!({"prompt": "p"}));
    assert_eq!(scene.listed("s1").unwrap().phase(), Some(Phase::Working));
    scene.kill(P2);
    let session = scene.listed("s1").unwrap();
    assert_eq!(session.verdict.liveness(), Liveness::Live);
    assert_eq!(session.phase(), Some(Phase::Idle));
}

#[test]
fn runs_that_are_gone_displace_no_living_owner() {
    let mut scene = scene();
    for run in 0..40 {
        scene.start(200 + run, 2_000);
        scene.report(200 + run, "s1", "SessionStart", json!({"source": "resume"}));
        scene.kill(200 + run);
    }
    let session = scene.listed("s1").unwrap();
    assert_eq!(session.verdict.liveness(), Liveness::Live);
    scene.report(P1, "s1", "SessionEnd", json!({"reason": "other"}));
    scene.kill(P1);
    scene.sweep();
    assert!(scene.end("s1").is_some());
}

/// A transcript that was written after the last event is a later sign of life.
#[test]
fn the_end_is_the_last_date_in_the_agents_own_files_too() {
    let mut scene = scene();
    let later_ms = scene.now_ms + 60_000;
    scene.write_transcript(P1, "s1", later_ms);
    scene.kill(P1);
    scene.now_ms += HOUR_MS;
    scene.sweep();
    assert_eq!(scene.end("s1"), Some((EndCause::ProcessGone, later_ms)));
}

/// tuiboard#22: a long turn in which nothing is written.
#[test]
fn age_alone_never_ends_a_session_whose_process_lives() {
    let mut scene = scene();
    scene.now_ms += 400 * 24 * HOUR_MS;
    assert!(scene.sweep().ended.is_empty());
    let session = scene.listed("s1").unwrap();
    assert_eq!(session.liveness(), Liveness::Live);
    assert_eq!(scene.record("s1").unwrap().phase, Phase::Working);
}

/// claude-devtools#94: a transcript that ends within a tool call.
#[test]
fn a_dead_session_that_was_in_a_tool_call_does_not_work() {
    let mut scene = scene();
    scene.report(P1, "s1", "PreToolUse", json!({}));
    scene.write_transcript(P1, "s1", scene.now_ms);
    scene.kill(P1);
    scene.now_ms += 14 * HOUR_MS;
    let before = scene.listed("s1").unwrap();
    assert_eq!(
        (before.liveness(), before.phase()),
        (Liveness::Exited, None)
    );
    assert!(before.is_orphan());
    scene.sweep();
    assert_eq!(scene.record("s1").unwrap().phase, Phase::Ended);
    // A later look still finds the death.
    let after = scene.listed("s1").unwrap();
    assert_eq!(
        (after.liveness(), after.phase()),
        (Liveness::Exited, Some(Phase::Ended))
    );
    assert!(after.is_orphan());
}

/// herdr#700: a real change of sessions, another agent, and an agent that is stopped.
#[test]
fn a_process_that_goes_over_ends_nothing_and_one_that_is_stopped_lives() {
    let mut scene = scene();
    // The same process goes over to another session.
    scene.report(P1, "s2", "SessionStart", json!({"source": "clear"}));
    scene.publish(P1, 1_000, "s2");
    assert_eq!(scene.listed("s2").unwrap().liveness(), Liveness::Live);
    // Another agent comes in place of a dead one.
    scene.kill(P1);
    scene.start(P2, 2_000);
    scene.report(P2, "s3", "UserPromptSubmit", json!({"prompt": "q"}));
    scene.sweep();
    // It had left the first one before.
    assert_eq!(scene.end("s1").unwrap().0, EndCause::Superseded);
    assert_eq!(scene.end("s2").unwrap().0, EndCause::ProcessGone);
    // Stopped by Ctrl-Z, with something else in front.
    let stopped = scene.claude(P2, 2_000, 1).run_state(RunState::Stopped);
    scene.add(stopped);
    assert!(scene.sweep().ended.is_empty());
    assert_eq!(scene.listed("s3").unwrap().liveness(), Liveness::Live);
}

#[test]
fn a_zombie_and_a_reused_pid_end_the_session() {
    for (put, cause) in [
        (
            RecordedProcess::new(P1, 1_000, 0).zombie(),
            EndCause::ProcessGone,
        ),
        (RecordedProcess::new(P1, 9_000, 0), EndCause::PidReused),
    ] {
        let mut scene = scene();
        scene.add(put);
        scene.sweep();
        assert_eq!(scene.end("s1").unwrap().0, cause);
    }
}

#[test]
fn another_boot_of_this_host_ends_what_ran_before_it() {
    let mut scene = scene();
    let last_ms = scene.now_ms;
    scene.kill(P1);
    scene.now_ms += HOUR_MS;
    let booted = view(scene.now_ms - 60_000);
    scene.look_from(scope(), booted);
    scene.sweep();
    assert_eq!(scene.end("s1"), Some((EndCause::Rebooted, last_ms)));
}

/// meridian#905: what names a machine may be shared by many.
#[test]
fn another_boot_of_who_knows_which_host_ends_nothing() {
    for host in [
        Ok(HostName("elsewhere".to_owned())),
        Err(Absent::PermissionDenied),
    ] {
        let mut scene = scene();
        scene.kill(P1);
        scene.now_ms += HOUR_MS;
        let booted = view(scene.now_ms - 60_000);
        scene.look_from(
            PidScope {
                host: host.clone(),
                ..scope()
            },
            booted,
        );
        assert!(scene.sweep().ended.is_empty(), "{host:?}");
        assert_eq!(scene.end("s1"), None, "{host:?}");
    }
}

/// claude-code#74566: who could not look wiped the records of all that ran.
#[test]
fn who_can_not_look_ends_nothing_dead_or_alive() {
    let blind = |change: fn(&mut View, &mut PidScope)| {
        let mut scene = scene();
        scene.start(P2, 2_000);
        scene.report(P2, "s2", "UserPromptSubmit", json!({"prompt": "q"}));
        scene.kill(P2);
        let mut scope = scope();
        scope.boot =
            BootId::parse("0b0071d0-0000-4000-8000-000000000001").ok_or(Absent::Unsupported);
        let mut view = view(1_790_000_000_000);
        change(&mut view, &mut scope);
        scene.look_from(scope, view);
        let report = scene.sweep();
        (report.ended.len(), scene.end("s1"), scene.end("s2"))
    };
    let nothing = (0, None, None);
    assert_eq!(blind(|view, _| view.is_proc_ours = Ok(false)), nothing);
    assert_eq!(
        blind(|view, _| view.is_proc_ours = Err(Absent::PermissionDenied)),
        nothing
    );
    let hide = |view: &mut View, _: &mut PidScope| {
        view.hide_pid = Ok(HidePid::Invisible);
        view.is_everything_shown = Ok(false);
        view.is_root = false;
    };
    assert_eq!(blind(hide), nothing);
    assert_eq!(
        blind(|_, scope| scope.boot = Err(Absent::PermissionDenied)),
        nothing
    );
    assert_eq!(
        blind(|_, scope| scope.pid_namespace = Err(Absent::PermissionDenied)),
        nothing
    );
    // Who can look ends the dead one alone.
    let (ended, first, second) = blind(|_, _| {});
    assert_eq!((ended, first), (1, None));
    assert_eq!(second.unwrap().0, EndCause::ProcessGone);
}
