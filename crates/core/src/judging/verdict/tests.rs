//! Every rule of the verdict table, and what must hold for every combination.

mod combinations;
mod hosts;
mod locks;
mod namespaces;
mod platforms;
mod processes;

use std::path::PathBuf;

use whosup_process::Backend as _;
use whosup_process::{
    Absent, BootId, Pid, PidNamespace, PidScope, Platform, Process, Recorded, RecordedProcess,
    StartStamp, View,
};
use whosup_sidecar::{AgentId, SessionId};

use super::{
    Confidence, Context, Elsewhere, ExitedBecause, LiveBecause, Liveness, LookFailure, Observed,
    Recognition, Rival, Seen, UnknownBecause, Verdict, judge,
};
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Placement, Serving, SessionKey,
    Subject, TakenUp, Trust,
};

const BOOTED: i64 = 1_795_800_000_000;
const BEGAN: i64 = BOOTED + 100_000;
const CLAIMED: i64 = BEGAN + 5_000;
const NOW: i64 = CLAIMED + 60_000;
const TICKS: u64 = 10_000;
const OUR_BOOT: &str = "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a";
const OTHER_BOOT: &str = "29c1d8ff-a55f-47c0-82a1-b0f1bc43623b";
const OTHER_NAMESPACE: PidNamespace = PidNamespace(4_026_532_000);

/// A claim and its world; each test changes what it is about.
#[derive(Debug, Clone)]
struct World {
    claim: Claim,
    observed: Observed,
    scope: PidScope,
    view: View,
    platform: Platform,
    booted_at_ms: Option<i64>,
    init_began_at_ms: Option<i64>,
}

fn process(pid: i32, ticks: u64, began_at_ms: i64) -> Process {
    RecordedProcess::new(pid, ticks, began_at_ms).process
}

fn seen(recognition: Recognition) -> Seen {
    Seen {
        process: process(4711, TICKS, BEGAN),
        recognition,
        is_in_claimed_directory: true,
        has_newer_claim_to_other: false,
        is_of_another_user: false,
        rival: Rival::None,
    }
}

/// A stamped claim of this boot about a live agent process in our namespace.
fn world() -> World {
    let recorded = Recorded::initial();
    let mut scope = recorded.scope();
    scope.boot = Ok(BootId::parse(OUR_BOOT).unwrap());
    World {
        claim: Claim {
            key: SessionKey {
                agent: AgentId::parse("claude-code").unwrap(),
                session: SessionId::parse("s1").unwrap(),
                home: PathBuf::from("/home/dev/.claude").into(),
            },
            subject: Subject::Process(Pid::new(4711).unwrap()),
            scope: ClaimedScope::default(),
            stamp: Some(StartStamp::LinuxTicks(TICKS)),
            dated_at_ms: Some(CLAIMED),
            modified_at_ms: Some(CLAIMED),
            taken_up: TakenUp::AsDated,
            ended_by: None,
            is_inferred: false,
            executable: None,
            work_dir: Some(PathBuf::from("/home/dev/app")),
            exclusivity: Exclusivity::Exclusive,
            serving: Serving::One,
            trust: Trust::Trusted,
            placement: Placement::Local,
            evidence: Evidence::new(EvidenceKind::Registry, None, "pid 4711".to_owned()),
        },
        observed: Observed {
            at_pid: Ok(Some(seen(Recognition::ClaimingAgent))),
            is_thread: false,
            has_nested_namespaces: false,
            elsewhere: Vec::new(),
            named_namespace: Elsewhere::default(),
        },
        scope,
        view: recorded.view(),
        platform: Platform::Linux,
        booted_at_ms: Some(BOOTED),
        init_began_at_ms: Some(BOOTED),
    }
}

/// A claim with a date and no stamp.
fn dated() -> World {
    let mut world = world();
    world.claim.stamp = None;
    world
}

impl World {
    fn judge(&self) -> Verdict {
        let context = Context {
            scope: &self.scope,
            view: &self.view,
            platform: Some(self.platform),
            now_ms: NOW,
            booted_at_ms: self.booted_at_ms,
            init_began_at_ms: self.init_began_at_ms,
        };
        judge(&self.claim, &self.observed, &context)
    }

    fn seen(&mut self) -> &mut Seen {
        match &mut self.observed.at_pid {
            Ok(Some(seen)) => seen,
            other => panic!("no process in {other:?}"),
        }
    }

    fn in_container(mut self, placement: Placement) -> Self {
        self.view.is_initial_pid_namespace = Ok(false);
        self.view.is_root = true;
        self.scope.pid_namespace = Ok(OTHER_NAMESPACE);
        self.claim.placement = placement;
        self
    }
}

#[track_caller]
fn check(right: Verdict, base: &World, change: impl FnOnce(&mut World)) {
    let mut world = base.clone();
    change(&mut world);
    assert_eq!(world.judge(), right, "{world:#?}");
}

const PROVEN: Verdict = Verdict::Live(LiveBecause::StartStamp, Confidence::Proven);
const BY_STAMP: Verdict = Verdict::Live(LiveBecause::StartStamp, Confidence::Consistent);
const BY_DATE: Verdict = Verdict::Live(LiveBecause::StartedBeforeClaim, Confidence::Consistent);

const fn unknown(because: UnknownBecause) -> Verdict {
    Verdict::Unknown(because)
}

const fn exited(because: ExitedBecause) -> Verdict {
    Verdict::Exited(because)
}

fn boot(text: &str) -> Option<BootId> {
    Some(BootId::parse(text).unwrap())
}

fn replace_agent(world: &mut World, recognition: Recognition, ticks: u64, began_at_ms: i64) {
    world.observed.at_pid = Ok(Some(Seen {
        process: process(4711, ticks, began_at_ms),
        ..seen(recognition)
    }));
}

#[test]
fn a_pid_that_a_source_concludes_is_inferred() {
    let inferred = Verdict::Live(LiveBecause::StartedBeforeClaim, Confidence::Inferred);
    check(inferred, &dated(), |world| world.claim.is_inferred = true);
    check(BY_DATE, &dated(), |world| world.claim.is_inferred = false);
}

#[test]
fn a_foreign_proc_settles_nothing() {
    for is_proc_ours in [Ok(false), Err(Absent::PermissionDenied)] {
        for subject in [Subject::Released, world().claim.subject] {
            check(unknown(UnknownBecause::ProcNotOurs), &world(), |world| {
                world.view.is_proc_ours = is_proc_ours.clone();
                world.claim.subject = subject;
            });
        }
    }
}

#[test]
fn a_released_claim_is_exited_even_if_the_pid_is_used() {
    check(exited(ExitedBecause::Released), &world(), |world| {
        world.claim.subject = Subject::Released;
    });
}

#[test]
fn a_claim_that_others_may_write_is_unknown() {
    check(unknown(UnknownBecause::UntrustedClaim), &world(), |world| {
        world.claim.trust = Trust::Untrusted {
            because: "everybody may write it".to_owned(),
        };
    });
}
