//! Looks at processes for claims, on recorded tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_process::{
    Backend as _, PidNamespace, ProcessTable, Recorded, RecordedProcess, StartStamp,
};

use super::*;
use crate::adapter::claim::{
    ClaimedScope, Evidence, EvidenceKind, Exclusivity, Leaving, Placement, SessionKey, Subject,
    TakenUp, Trust,
};
use crate::judging::verdict::{Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause};
use crate::machine::Environment;
use crate::machine::command::NoCommands;
use crate::machine::mounts::Mounts;

const BEGAN: i64 = 1_795_812_800_000;
const CLAIMED: i64 = BEGAN + 5_000;
const NOW: i64 = BEGAN + 3_600_000;
const NAMESPACE: u64 = 4_026_532_001;
const QWEN: &[&str] = &["node", "/usr/bin/qwen"];

fn claim(session: &str, pid: i32) -> Claim {
    Claim {
        key: SessionKey {
            agent: "qwen-code".parse().unwrap(),
            session: session.parse().unwrap(),
            home: PathBuf::from("/home/dev/.qwen").into(),
        },
        subject: Subject::Process(Pid::new(i64::from(pid)).unwrap()),
        scope: ClaimedScope::default(),
        stamp: None,
        dated_at_ms: Some(CLAIMED),
        modified_at_ms: None,
        taken_up: TakenUp::AsDated,
        ended_by: None,
        is_inferred: false,
        executable: None,
        work_dir: Some(PathBuf::from("/w/app")),
        exclusivity: Exclusivity::Exclusive,
        serving: Serving::One,
        trust: Trust::Trusted,
        placement: Placement::Local,
        evidence: Evidence::new(EvidenceKind::Sidecar, None, format!("pid {pid}")),
    }
}

fn process(pid: i32, exe: &str, argv: &[&str]) -> RecordedProcess {
    RecordedProcess::new(pid, 1_000, BEGAN)
        .comm("MainThread")
        .exe(exe)
        .argv(argv)
        .cwd("/w/app")
}

/// A qwen that is PID 1 of a container.
fn contained(pid: i32) -> RecordedProcess {
    process(pid, "/usr/bin/node", QWEN)
        .inner_pids(&[1])
        .pid_namespace(NAMESPACE)
}

fn machine(processes: Vec<RecordedProcess>) -> Machine {
    let processes = processes.into_iter();
    Machine::new(
        Environment::new(None, None, []),
        NOW,
        ProcessTable::look(Arc::new(
            processes.fold(Recorded::initial(), Recorded::with),
        )),
        Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
        Arc::new(NoCommands),
    )
}

fn judged(machine: &Machine, claims: &[Claim]) -> Vec<JudgedClaim> {
    let mut observer = Observer::new(machine, claims);
    claims.iter().map(|claim| observer.judge(claim)).collect()
}

fn verdicts(machine: &Machine, claims: &[Claim]) -> Vec<Verdict> {
    let judged = judged(machine, claims).into_iter();
    judged.map(|one| one.verdict).collect()
}

#[track_caller]
fn check_recognition(
    agent: &str,
    executable: Option<&str>,
    its: &RecordedProcess,
    right: Recognition,
) {
    let mut claim = claim("s1", 7);
    claim.key.agent = agent.parse().unwrap();
    claim.executable = executable.map(PathBuf::from);
    let judged = judged(&machine(vec![its.clone()]), &[claim]).remove(0);
    assert_eq!(
        judged.recognition,
        Some(right),
        "{agent} {executable:?} {its:?}"
    );
}

#[test]
fn a_process_is_the_claims_program_another_or_unrecognized() {
    let node = |argv: &[&str]| process(7, "/usr/bin/node", argv);
    let loader = |argv: &[&str]| process(7, "/usr/lib/ld.so", argv);
    let qwen = "/opt/@qwen-code/qwen-code/cli.js";
    for (its, right) in [
        (node(QWEN), Recognition::ClaimingAgent),
        (
            loader(&["ld.so", "/usr/bin/node", qwen]),
            Recognition::ClaimingAgent,
        ),
        // Another agent's, and another script.
        (
            node(&["node", "/opt/gemini-cli/bundle/gemini.js"]),
            Recognition::AnotherProgram,
        ),
        (
            process(7, "/usr/bin/claude", &["claude"]),
            Recognition::AnotherProgram,
        ),
        (node(&["node", "server.js"]), Recognition::AnotherProgram),
        (
            process(7, "/usr/bin/vim", &["vim"]).comm("vim"),
            Recognition::AnotherProgram,
        ),
        // A Node of its own, packed into one file.
        (process(7, "/opt/x", &["x"]), Recognition::Unrecognized),
        // It may be a qwen that is installed in a way of its own.
        (
            node(&["node", "/opt/my-qwen/main.js"]),
            Recognition::Unrecognized,
        ),
        (node(&[""]), Recognition::Unrecognized),
        (loader(&["ld.so"]), Recognition::Unrecognized),
        (
            process(7, "/usr/bin/qemu-x86_64", &["qemu-x86_64"]),
            Recognition::Unrecognized,
        ),
    ] {
        check_recognition("qwen-code", None, &its, right);
    }
    // That both are Node proves nothing.
    let server = node(&["node", "server.js"]);
    check_recognition(
        "qwen-code",
        Some("/usr/bin/node"),
        &server,
        Recognition::AnotherProgram,
    );
    let own = process(7, "/opt/qwen-of-mine", &["x"]);
    check_recognition(
        "qwen-code",
        Some("/opt/qwen-of-mine"),
        &own,
        Recognition::NamedExecutable,
    );
    let started = process(7, "/opt/real", &["real"]);
    check_recognition(
        "qwen-code",
        Some("/usr/bin/bash"),
        &started,
        Recognition::Unrecognized,
    );
}

#[test]
fn the_program_of_an_agent_without_an_adapter_is_what_the_claim_says_of_it() {
    let node = process(7, "/usr/bin/node", &["node", "server.js"]);
    let other = process(7, "/usr/bin/vim", &["vim"]);
    let loaded = process(7, "/usr/lib/ld.so", &["ld.so", "/opt/a/agent"]);
    let qwen = process(7, "/usr/bin/node", QWEN);
    for (executable, its, right) in [
        (Some("/usr/bin/node"), &node, Recognition::NamedExecutable),
        (Some("/opt/a/agent"), &loaded, Recognition::NamedExecutable),
        (Some("/opt/a/agent"), &other, Recognition::AnotherProgram),
        (Some("/usr/bin/bash"), &other, Recognition::Unrecognized),
        (Some("/usr/bin/python3"), &other, Recognition::Unrecognized),
        (None, &node, Recognition::FittingRuntime),
        (None, &other, Recognition::Unrecognized),
        (None, &qwen, Recognition::AnotherProgram),
    ] {
        check_recognition("some-agent", executable, its, right);
    }
    let elsewhere = node.cwd("/w/other");
    check_recognition("some-agent", None, &elsewhere, Recognition::Unrecognized);
}

/// `whosup run` starts a script or a link that becomes an agent.
#[test]
fn a_claim_to_a_start_that_names_no_program_is_about_what_the_process_becomes() {
    let qwen = process(7, "/usr/bin/node", QWEN);
    let vim = process(7, "/usr/bin/vim", &["vim"]).comm("vim");
    let live = Verdict::Live(LiveBecause::StartStamp, Confidence::Proven);
    let changed = Verdict::Unknown(UnknownBecause::ProgramChanged);
    for (agent, executable, kind, its, right) in [
        ("qwen", None, EvidenceKind::Sidecar, &qwen, live),
        ("codex", None, EvidenceKind::Sidecar, &qwen, live),
        ("codex", None, EvidenceKind::Record, &vim, live),
        (
            "qwen",
            Some("/bin/bash"),
            EvidenceKind::Sidecar,
            &qwen,
            live,
        ),
        (
            "qwen",
            Some("/opt/a"),
            EvidenceKind::Sidecar,
            &qwen,
            changed,
        ),
        ("claude-code", None, EvidenceKind::Registry, &vim, changed),
    ] {
        let mut claim = claim("s1", 7);
        claim.key.agent = agent.parse().unwrap();
        claim.executable = executable.map(PathBuf::from);
        claim.evidence.kind = kind;
        claim.scope.boot = Recorded::initial().scope().boot.ok();
        claim.stamp = Some(its.process.stamp.clone());
        let found = verdicts(&machine(vec![its.clone()]), &[claim]);
        assert_eq!(found, [right], "{agent} {executable:?} {kind:?}");
    }
}

/// A claim that can't be about the process takes nothing from it.
#[test]
fn a_younger_process_has_another_session_only_by_a_claim_that_may_be_about_it() {
    let machine = machine(vec![process(7, "/usr/bin/node", QWEN)]);
    let mut old = claim("old", 7);
    old.dated_at_ms = Some(BEGAN - 60_000);
    let of_old = |other: Claim| verdicts(&machine, &[old.clone(), other])[0];
    let reused = Verdict::Exited(ExitedBecause::PidReused);
    assert_eq!(of_old(claim("new", 7)), reused);
    let younger = Verdict::Unknown(UnknownBecause::YoungerThanClaim);
    let with = |change: &dyn Fn(&mut Claim)| {
        let mut other = claim("new", 7);
        change(&mut other);
        of_old(other)
    };
    assert_eq!(
        with(&|other| other.scope.host = Some("laptop".to_owned())),
        younger
    );
    let elsewhere = |other: &mut Claim| other.scope.pid_namespace = Some(PidNamespace(NAMESPACE));
    assert_eq!(with(&elsewhere), younger);
    let another = |other: &mut Claim| other.stamp = Some(StartStamp::LinuxTicks(999));
    assert_eq!(with(&another), younger);
    assert_eq!(with(&|other| other.dated_at_ms = Some(BEGAN)), younger);
    assert_eq!(with(&|other| other.dated_at_ms = None), younger);
    for serving in [Serving::Many, Serving::NotRecorded] {
        assert_eq!(with(&|other| other.serving = serving), younger);
    }
    assert_eq!(
        with(&|other| other.key.session = old.key.session.clone()),
        younger
    );
}

fn liveness(machine: &Machine, claims: &[Claim]) -> Vec<Liveness> {
    let verdicts = verdicts(machine, claims).into_iter();
    verdicts.map(|verdict| verdict.liveness()).collect()
}

/// Two agents were PID 1 of a container each; one of them is left.
#[test]
fn of_two_claims_to_one_number_the_better_one_has_the_process() {
    use Liveness::{Exited, Live, Unknown};
    let machine = machine(vec![contained(31_000)]);
    let own = claim("own", 1);
    let mut later = claim("later", 1);
    later.dated_at_ms = Some(BEGAN + 600_000);
    let both = |change: &dyn Fn(&mut Claim, &mut Claim)| {
        let (mut own, mut later) = (own.clone(), later.clone());
        change(&mut own, &mut later);
        liveness(&machine, &[own, later])
    };
    // One was written when the process began.
    assert_eq!(both(&|_, _| {}), [Live, Exited]);
    // Neither was, or both were.
    let late = |own: &mut Claim, _: &mut Claim| own.dated_at_ms = Some(BEGAN + 300_000);
    assert_eq!(both(&late), [Unknown, Unknown]);
    let early = |_: &mut Claim, later: &mut Claim| later.dated_at_ms = Some(BEGAN + 9_000);
    assert_eq!(both(&early), [Unknown, Unknown]);
    // An agent does not remove a line of a log when it moves to another session.
    let log = |own: &mut Claim, _: &mut Claim| own.evidence.kind = EvidenceKind::Log;
    assert_eq!(both(&log), [Live, Live]);
    // One is about the directory that it works in.
    let elsewhere = |own: &mut Claim, later: &mut Claim| {
        later.dated_at_ms = Some(BEGAN + 9_000);
        own.work_dir = Some(PathBuf::from("/w/other"));
    };
    assert_eq!(both(&elsewhere), [Exited, Live]);
    // One names the namespace, or the start.
    let named = |_: &mut Claim, later: &mut Claim| {
        later.scope.pid_namespace = Some(PidNamespace(NAMESPACE));
    };
    assert_eq!(both(&named), [Exited, Live]);
    // The process may serve both.
    let beside = |own: &mut Claim, later: &mut Claim| {
        later.scope.pid_namespace = Some(PidNamespace(NAMESPACE));
        own.serving = Serving::NotRecorded;
    };
    assert_eq!(both(&beside), [Unknown, Live]);
    let stamped = |_: &mut Claim, later: &mut Claim| {
        later.stamp = Some(StartStamp::LinuxTicks(1_000));
    };
    assert_eq!(both(&stamped), [Exited, Live]);
    let another = |_: &mut Claim, later: &mut Claim| {
        later.stamp = Some(StartStamp::LinuxTicks(999));
    };
    assert_eq!(both(&another), [Live, Exited]);
}

/// The registry names another process for the session: the sidecar of the same run,
/// which has fewer details, is not about the remaining process.
#[test]
fn a_claim_of_the_same_session_and_run_says_which_process_is_meant() {
    let machine = machine(vec![contained(31_000)]);
    let sidecar = claim("s1", 1);
    let mut registry = claim("s1", 1);
    registry.stamp = Some(StartStamp::LinuxTicks(2_000));
    registry.scope.pid_namespace = Some(PidNamespace(4_026_532_999));
    registry.evidence.kind = EvidenceKind::Registry;
    let of_sidecar = |dated_at_ms: i64| {
        let mut registry = registry.clone();
        registry.dated_at_ms = Some(dated_at_ms);
        verdicts(&machine, &[sidecar.clone(), registry])[0].liveness()
    };
    assert_eq!(of_sidecar(CLAIMED + 1_000), Liveness::Exited);
    // Of an earlier run: the session may have been taken up again.
    assert_eq!(of_sidecar(CLAIMED - 3_600_000), Liveness::Live);
}

/// The PID namespace of the registry's process is gone, so that no nested one is about.
#[test]
fn a_number_out_of_a_namespace_that_is_gone_is_no_process_here() {
    let machine = machine(vec![process(7, "/usr/bin/node", QWEN)]);
    let sidecar = claim("s1", 7);
    let mut registry = claim("s1", 7);
    registry.stamp = Some(StartStamp::LinuxTicks(2_000));
    registry.scope.pid_namespace = Some(PidNamespace(NAMESPACE));
    registry.evidence.kind = EvidenceKind::Registry;
    let elsewhere = Verdict::Unknown(UnknownBecause::OtherPidNamespace);
    let of_sidecar = |claims: &[Claim]| verdicts(&machine, claims)[0];
    assert_eq!(of_sidecar(&[sidecar.clone(), registry.clone()]), elsewhere);
    // Hooks reported this process for the session, which it has not left.
    let mut record = claim("s1", 7);
    record.stamp = Some(StartStamp::LinuxTicks(1_000));
    record.evidence.kind = EvidenceKind::Record;
    let live = of_sidecar(&[sidecar.clone(), registry.clone(), record.clone()]);
    assert_eq!(live.liveness(), Liveness::Live);
    record.taken_up = TakenUp::Left(Leaving {
        at_ms: CLAIMED,
        ended_at_ms: None,
    });
    assert_eq!(of_sidecar(&[sidecar, registry, record]), elsewhere);
}

/// A sidecar without a start, beside what hooks reported of that run in this namespace.
#[test]
fn a_number_that_was_reported_here_with_another_start_is_that_of_a_process_that_is_gone() {
    let machine = machine(vec![process(7, "/usr/bin/node", QWEN)]);
    let sidecar = claim("s1", 7);
    let mut record = claim("s1", 7);
    record.stamp = Some(StartStamp::LinuxTicks(2_000));
    record.scope.pid_namespace = machine.table().scope().pid_namespace.clone().ok();
    assert!(record.scope.pid_namespace.is_some());
    record.evidence.kind = EvidenceKind::Record;
    let of_sidecar = verdicts(&machine, &[sidecar, record])[0];
    assert_eq!(of_sidecar, Verdict::Exited(ExitedBecause::PidReused));
}

/// The agent takes up a session nowhere but in the directory of the session.
#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn a_process_in_another_directory_only_has_the_number_of_the_claim() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["app", "other"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    let facts = whosup_sidecar::file::facts_of_any(&root, whosup_sidecar::file::Links::Follow);
    let Some(born_ms) = facts.unwrap().born_ms else {
        println!(
            "skipped: the file system of {} has no births",
            root.display()
        );
        return;
    };
    let began_ms = born_ms + 60_000;
    let of = |agent: &str, argv: &[&str], work_dir: &str| {
        let its = RecordedProcess::new(7, 1_000, began_ms)
            .comm("MainThread")
            .exe(argv[0])
            .argv(argv)
            .cwd(root.join("app"));
        let machine = Machine::new(
            Environment::new(None, None, []),
            began_ms + 60_000,
            ProcessTable::look(Arc::new(Recorded::initial().with(its))),
            Mounts::of_this_machine(),
            Arc::new(NoCommands),
        );
        let process = &machine.table().processes().unwrap()[0];
        let mut places = Places::default();
        places.find(machine.mounts(), &root.join(work_dir));
        places.find_details(machine.mounts(), process, &machine.table().details(process));
        let mut claim = claim("s1", 7);
        claim.key.agent = agent.parse().unwrap();
        claim.dated_at_ms = Some(began_ms + 5_000);
        claim.work_dir = Some(root.join(work_dir));
        let claims = vec![Box::new(claim)];
        judge_all(&machine, claims, &places, &mut Probes::default())[0].verdict
    };
    let qwen = ["/usr/bin/node", "/usr/bin/qwen"];
    assert_eq!(of("qwen-code", &qwen, "app").liveness(), Liveness::Live);
    let elsewhere = Verdict::Unknown(UnknownBecause::OtherPidNamespace);
    assert_eq!(of("qwen-code", &qwen, "other"), elsewhere);
    // It may be renamed or deleted.
    assert_eq!(of("qwen-code", &qwen, "gone").liveness(), Liveness::Live);
    // Its agent takes up any session in any directory.
    let claude = of("claude-code", &["/usr/bin/claude"], "other");
    assert_eq!(claude.liveness(), Liveness::Live);
}

/// Hooks come late: the process has gone on to the session of a newer sidecar.
#[test]
fn what_hooks_reported_before_takes_no_newer_session_from_a_process() {
    use Liveness::{Exited, Live, Unknown};
    let machine = machine(vec![contained(31_000)]);
    let mut record = claim("before", 1);
    record.stamp = Some(StartStamp::LinuxTicks(1_000));
    record.evidence.kind = EvidenceKind::Record;
    record.taken_up = TakenUp::At(CLAIMED);
    let mut sidecar = claim("now", 1);
    sidecar.dated_at_ms = Some(CLAIMED + 600_000);
    let both = [record.clone(), sidecar.clone()];
    assert_eq!(liveness(&machine, &both), [Live, Unknown]);
    // The registry, which was rewritten, shows that it is that process.
    let mut registry = claim("now", 1);
    registry.stamp = Some(StartStamp::LinuxTicks(1_000));
    let all = [record.clone(), sidecar.clone(), registry];
    assert_eq!(liveness(&machine, &all), [Live, Live, Live]);
    record.taken_up = TakenUp::At(CLAIMED + 700_000);
    assert_eq!(liveness(&machine, &[record, sidecar]), [Live, Exited]);
}

/// Two users' containers, and only one of the two agents is left.
#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "a test makes its own files")]
fn a_process_of_another_user_than_the_claims_file_is_not_meant() {
    use std::os::unix::fs::chown;
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own.runtime.json");
    std::fs::write(&own, "").unwrap();
    let us = rustix::process::geteuid().as_raw();
    let machine = machine(vec![contained(31_000).uid(us)]);
    let of = |path: &Path| {
        let mut claim = claim("s1", 1);
        claim.evidence.path = Some(path.to_owned());
        verdicts(&machine, &[claim])[0].liveness()
    };
    assert_eq!(of(&own), Liveness::Live);
    let missing = directory.path().join("missing");
    assert_eq!(of(&missing), Liveness::Live);
    let others = directory.path().join("others.runtime.json");
    std::fs::write(&others, "").unwrap();
    if chown(&others, Some(us + 12_345), None).is_err() {
        println!("skipped: only root can give a file away");
        return;
    }
    assert_eq!(of(&others), Liveness::Exited);
}

/// The process of the verdict is the one in the container, not what has its number here.
#[test]
fn the_process_of_a_live_claim_is_the_one_that_fits() {
    let init = process(1, "/usr/lib/systemd/systemd", &["/sbin/init"]);
    let machine = machine(vec![init, contained(31_000)]);
    let judged = judged(&machine, &[claim("s1", 1)]).remove(0);
    assert_eq!(judged.verdict.liveness(), Liveness::Live);
    assert_eq!(judged.process.unwrap().pid.get(), 31_000);
}

/// A wrapper outside that looks like the agent, and the agent that is PID 1 inside, may
/// have begun at one clock tick.
#[test]
fn a_stamp_that_two_processes_of_one_number_have_shows_neither() {
    let outside = process(1, "/usr/bin/node", QWEN);
    let mut stamped = claim("s1", 1);
    stamped.stamp = Some(StartStamp::LinuxTicks(1_000));
    let with = |inside: RecordedProcess| {
        let machine = machine(vec![outside.clone(), inside]);
        verdicts(&machine, std::slice::from_ref(&stamped))[0]
    };
    let twin = with(contained(31_000));
    assert_eq!(twin, Verdict::Unknown(UnknownBecause::Ambiguous));
    let later = RecordedProcess::new(31_000, 1_001, BEGAN)
        .exe("/usr/bin/node")
        .argv(QWEN)
        .inner_pids(&[1])
        .pid_namespace(NAMESPACE);
    assert_eq!(with(later).liveness(), Liveness::Live);
    let another = process(31_000, "/usr/bin/vim", &["vim"]).comm("vim");
    let another = another.inner_pids(&[1]).pid_namespace(NAMESPACE);
    assert_eq!(with(another).liveness(), Liveness::Live);
}

/// `unshare` with the number and the start tick of the agent that it began inside.
#[test]
fn a_wrapper_that_is_another_program_is_not_the_process_of_the_claim() {
    let wrapper = process(1, "/usr/bin/unshare", &["unshare"]).comm("unshare");
    let machine = machine(vec![wrapper, contained(31_000)]);
    let mut stamped = claim("s1", 1);
    stamped.stamp = Some(StartStamp::LinuxTicks(1_000));
    let judged = judged(&machine, &[stamped]).remove(0);
    assert_eq!(judged.verdict.liveness(), Liveness::Live);
    assert_eq!(judged.process.unwrap().pid.get(), 31_000);
}
