//! Every rule of the verdict table, and what must hold for every combination.

use std::path::PathBuf;

use whosup_process::Backend as _;
use whosup_process::{
    Absent, BootId, Pid, PidNamespace, PidScope, Platform, Process, Recorded, RecordedProcess,
    StartStamp, View,
};
use whosup_sidecar::{AgentId, SessionId};

use super::{
    Confidence, Context, Elsewhere, ExitedBecause, LiveBecause, Liveness, LookFailure, Observed,
    Recognition, Seen, UnknownBecause, Verdict, judge,
};
use crate::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Placement, Serving, SessionKey,
    Subject, Trust,
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
        is_in_claimed_directory: false,
        has_newer_claim_to_other: false,
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
                home: PathBuf::from("/home/dev/.claude"),
            },
            subject: Subject::Process(Pid::new(4711).unwrap()),
            scope: ClaimedScope::default(),
            stamp: Some(StartStamp::LinuxTicks(TICKS)),
            dated_at_ms: Some(CLAIMED),
            modified_at_ms: Some(CLAIMED),
            executable: None,
            work_dir: Some(PathBuf::from("/home/dev/app")),
            exclusivity: Exclusivity::Exclusive,
            serving: Serving::One,
            trust: Trust::Trusted,
            placement: Placement::Local,
            evidence: Evidence {
                kind: EvidenceKind::Registry,
                path: None,
                says: "pid 4711".to_owned(),
            },
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
            platform: Some(Platform::Linux),
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
fn a_pid_that_was_found_by_elimination_or_arguments_is_inferred() {
    let inferred = Verdict::Live(LiveBecause::StartedBeforeClaim, Confidence::Inferred);
    for kind in [EvidenceKind::Pairing, EvidenceKind::Arguments] {
        check(inferred, &dated(), |world| world.claim.evidence.kind = kind);
    }
    check(BY_DATE, &dated(), |world| {
        world.claim.evidence.kind = EvidenceKind::Log;
    });
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
fn a_released_claim_is_exited_whoever_has_the_pid() {
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

#[test]
fn a_stamp_of_another_platform_is_of_another_host() {
    for stamp in [
        StartStamp::DarwinDate("Fri Nov 27 20:57:12 2026".to_owned()),
        StartStamp::Filetime(TICKS),
        StartStamp::DarwinTv {
            seconds: TICKS,
            microseconds: 0,
        },
    ] {
        check(unknown(UnknownBecause::OtherHost), &world(), |world| {
            world.claim.stamp = Some(stamp);
        });
    }
}

#[test]
fn another_boot_is_a_reboot_of_this_host_or_another_host() {
    let mut base = world();
    base.claim.scope.boot = boot(OTHER_BOOT);
    let rebooted = exited(ExitedBecause::Rebooted);
    let other_host = unknown(UnknownBecause::OtherHost);
    check(other_host, &base, |_| {});
    check(rebooted, &base, |world| {
        world.claim.dated_at_ms = Some(BOOTED - 60_000)
    });
    check(rebooted, &base, |world| world.claim.dated_at_ms = None);
    check(other_host, &base, |world| {
        world.claim.dated_at_ms = Some(BOOTED - 60_000);
        world.claim.placement = Placement::SharedByMachines;
    });
    check(other_host, &base, |world| world.booted_at_ms = None);
}

#[test]
fn a_missing_boot_id_never_counts_as_another_one() {
    check(PROVEN, &world(), |world| {
        world.scope.boot = Err(Absent::PermissionDenied);
        world.claim.scope.boot = boot(OTHER_BOOT);
    });
}

#[test]
fn another_host_name_is_another_host_unless_all_else_shows_a_rename() {
    let mut base = world();
    base.claim.scope.host = Some("laptop".to_owned());
    let other_host = unknown(UnknownBecause::OtherHost);
    check(other_host, &base, |_| {});
    // Equal boot, PID namespace and stamp: the host was renamed.
    let renamed = |world: &mut World| {
        world.claim.scope.boot = boot(OUR_BOOT);
        world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL);
    };
    check(PROVEN, &base, renamed);
    check(other_host, &base, |world| {
        renamed(world);
        world.claim.stamp = Some(StartStamp::LinuxTicks(TICKS + 1));
    });
    check(other_host, &base, |world| {
        renamed(world);
        world.claim.scope.pid_namespace = None;
    });
}

#[test]
fn a_rename_without_boot_ids_needs_agent_age_and_directory() {
    let mut base = dated();
    base.claim.scope.host = Some("laptop".to_owned());
    base.seen().is_in_claimed_directory = true;
    let other_host = unknown(UnknownBecause::OtherHost);
    check(BY_DATE, &base, |_| {});
    check(other_host, &base, |world| {
        world.seen().is_in_claimed_directory = false
    });
    check(other_host, &base, |world| {
        world.seen().recognition = Recognition::FittingRuntime
    });
    check(other_host, &base, |world| {
        world.claim.dated_at_ms = Some(BEGAN - 60_000)
    });
    check(other_host, &base, |world| {
        world.claim.placement = Placement::SharedByMachines;
    });
    check(other_host, &base, |world| world.observed.at_pid = Ok(None));
}

#[test]
fn host_names_are_compared_by_first_label_without_case() {
    for name in ["devbox", "DEVBOX", "devbox.local", "DevBox.example.org"] {
        check(PROVEN, &world(), |world| {
            world.claim.scope.host = Some(name.to_owned())
        });
    }
}

#[test]
fn a_nameless_claim_on_shared_files_needs_an_equal_stamp_here() {
    let shared = |world: &mut World| world.claim.placement = Placement::SharedByMachines;
    check(PROVEN, &world(), shared);
    check(unknown(UnknownBecause::OtherHost), &dated(), shared);
    check(unknown(UnknownBecause::OtherHost), &world(), |world| {
        shared(world);
        world.observed.at_pid = Ok(None);
    });
}

#[test]
fn a_named_namespace_is_judged_by_the_process_in_it() {
    let mut base = world();
    base.claim.scope.pid_namespace = Some(OTHER_NAMESPACE);
    base.observed.at_pid = Ok(Some(Seen {
        process: process(4711, 1, BOOTED),
        ..seen(Recognition::AnotherProgram)
    }));
    check(PROVEN, &base, |world| {
        world.observed.named_namespace = Elsewhere {
            is_populated: true,
            at_pid: Some(seen(Recognition::ClaimingAgent)),
        };
    });
    check(exited(ExitedBecause::NamespaceGone), &base, |_| {});
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        world.observed.named_namespace.is_populated = true;
    });
    for is_populated in [true, false] {
        check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
            world.view.is_root = false;
            world.observed.named_namespace.is_populated = is_populated;
        });
        check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
            world.view.is_everything_shown = Ok(false);
            world.observed.named_namespace.is_populated = is_populated;
        });
    }
}

#[test]
fn an_earlier_run_of_this_container_is_gone() {
    let mut base = world().in_container(Placement::ThisContainer);
    base.claim.scope.pid_namespace = Some(PidNamespace(4_026_531_999));
    base.claim.scope.host = Some("devbox".to_owned());
    base.claim.dated_at_ms = Some(BEGAN);
    base.init_began_at_ms = Some(BEGAN + 60_000);
    check(exited(ExitedBecause::NamespaceGone), &base, |_| {});
    let other = unknown(UnknownBecause::OtherPidNamespace);
    check(other, &base, |world| world.init_began_at_ms = Some(BEGAN));
    check(other, &base, |world| world.claim.scope.host = None);
    check(other, &base, |world| {
        world.claim.placement = Placement::Local
    });
    check(other, &base, |world| world.init_began_at_ms = None);
}

#[test]
fn a_number_of_several_namespaces_is_judged_against_all_who_have_it() {
    let mut base = dated();
    base.observed.has_nested_namespaces = true;
    let gone = exited(ExitedBecause::NoSuchProcess);
    // The agent itself has the very PID and the stamp: no other one matters.
    let mut stamped = world();
    stamped.observed.has_nested_namespaces = true;
    check(PROVEN, &stamped, |_| {});
    check(BY_DATE, &base, |_| {});
    check(BY_DATE, &base, |world| {
        world.observed.at_pid = Ok(None);
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
    check(unknown(UnknownBecause::Ambiguous), &base, |world| {
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
    check(gone, &base, |world| world.observed.at_pid = Ok(None));
    check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
        world.observed.at_pid = Ok(None);
        world.view.is_everything_shown = Ok(false);
    });
    check(BY_STAMP, &stamped, |world| {
        replace_agent(world, Recognition::AnotherProgram, 1, BOOTED);
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
    check(gone, &stamped, |world| {
        replace_agent(world, Recognition::AnotherProgram, 1, BOOTED);
    });
    check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
        world.observed.at_pid = Err(LookFailure::Failed);
    });
}

#[test]
fn a_process_that_cannot_be_ruled_out_is_no_proof_of_death_among_namespaces() {
    let mut base = dated();
    base.observed.has_nested_namespaces = true;
    for recognition in [Recognition::Unrecognized, Recognition::FittingRuntime] {
        check(
            unknown(UnknownBecause::UnrecognizedProgram),
            &base,
            |world| {
                world.seen().recognition = recognition;
            },
        );
        check(
            unknown(UnknownBecause::UnrecognizedProgram),
            &base,
            |world| {
                world.observed.at_pid = Ok(None);
                world.observed.elsewhere = vec![seen(recognition)];
            },
        );
    }
}

#[test]
fn a_claim_from_outside_a_container_is_not_judged_by_its_small_numbers() {
    let base = world().in_container(Placement::Local);
    check(PROVEN, &base, |_| {});
    check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
        world.observed.at_pid = Ok(None);
    });
    check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
        replace_agent(world, Recognition::AnotherProgram, 1, BOOTED);
    });
    let own = world().in_container(Placement::ThisContainer);
    check(exited(ExitedBecause::NoSuchProcess), &own, |world| {
        world.observed.at_pid = Ok(None);
    });
}

#[test]
fn failing_to_look_is_unknown() {
    for base in [world(), dated()] {
        check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
            world.observed.at_pid = Err(LookFailure::Failed);
        });
        check(unknown(UnknownBecause::Hidden), &base, |world| {
            world.observed.at_pid = Err(LookFailure::Hidden);
        });
    }
}

#[test]
fn nobody_with_the_pid_is_an_exit_only_where_everybody_is_seen() {
    let mut base = world();
    base.observed.at_pid = Ok(None);
    check(exited(ExitedBecause::NoSuchProcess), &base, |_| {});
    let incomplete = unknown(UnknownBecause::IncompleteView);
    check(incomplete, &base, |world| {
        world.view.is_everything_shown = Ok(false)
    });
    check(incomplete, &base, |world| {
        world.view.is_everything_shown = Err(Absent::PermissionDenied);
    });
    check(incomplete, &base, |world| {
        world.view.is_initial_time_namespace = Ok(false)
    });
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL);
    });
    check(incomplete, &base, |world| {
        world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL);
        world.scope.pid_namespace = Err(Absent::PermissionDenied);
    });
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        world.view.is_initial_time_namespace = Err(Absent::Unsupported);
    });
}

#[test]
fn zombies_threads_and_kernel_threads_serve_nobody() {
    check(exited(ExitedBecause::PidIsAThread), &world(), |world| {
        world.observed.at_pid = Ok(None);
        world.observed.is_thread = true;
    });
    check(exited(ExitedBecause::Zombie), &world(), |world| {
        world.seen().process.is_exited = true;
    });
    check(exited(ExitedBecause::PidReused), &world(), |world| {
        world.seen().process.is_kernel_thread = true;
    });
}

#[test]
fn another_stamp_is_another_process() {
    let other = |world: &mut World| world.claim.stamp = Some(StartStamp::LinuxTicks(TICKS - 1));
    check(exited(ExitedBecause::PidReused), &world(), other);
    check(
        unknown(UnknownBecause::OtherTimeNamespace),
        &world(),
        |world| {
            other(world);
            world.view.is_initial_time_namespace = Ok(false);
        },
    );
}

#[test]
fn an_equal_stamp_is_proof_within_one_boot() {
    check(PROVEN, &world(), |_| {});
    let undated = |world: &mut World| {
        world.claim.dated_at_ms = None;
        world.claim.modified_at_ms = None;
    };
    check(PROVEN, &world(), |world| {
        undated(world);
        world.claim.scope.boot = boot(OUR_BOOT);
    });
    check(PROVEN, &world(), |world| {
        undated(world);
        world.claim.modified_at_ms = Some(CLAIMED);
    });
    check(BY_STAMP, &world(), undated);
    check(BY_STAMP, &world(), |world| {
        undated(world);
        world.seen().recognition = Recognition::NamedExecutable;
    });
    for recognition in [Recognition::FittingRuntime, Recognition::Unrecognized] {
        check(unknown(UnknownBecause::BootNotKnown), &world(), |world| {
            undated(world);
            world.seen().recognition = recognition;
        });
        check(PROVEN, &world(), |world| {
            world.seen().recognition = recognition
        });
    }
    check(unknown(UnknownBecause::ProgramChanged), &world(), |world| {
        world.seen().recognition = Recognition::AnotherProgram;
    });
}

#[test]
fn an_equal_stamp_outlives_a_stepped_clock() {
    check(PROVEN, &world(), |world| {
        world.seen().process.began_at_ms = Ok(CLAIMED + 420_000);
    });
}

#[test]
fn a_date_of_the_future_is_no_date() {
    check(unknown(UnknownBecause::BarePid), &dated(), |world| {
        world.claim.dated_at_ms = Some(NOW + 2_001);
    });
    check(BY_DATE, &dated(), |world| {
        world.claim.dated_at_ms = Some(NOW + 2_000)
    });
}

#[test]
fn without_a_stamp_a_younger_process_is_reuse_only_if_it_is_positively_another() {
    let mut base = dated();
    base.claim.dated_at_ms = Some(BEGAN - 2_001);
    check(exited(ExitedBecause::PidReused), &base, |world| {
        world.seen().recognition = Recognition::AnotherProgram;
    });
    check(exited(ExitedBecause::PidReused), &base, |world| {
        world.seen().has_newer_claim_to_other = true;
    });
    for recognition in [
        Recognition::ClaimingAgent,
        Recognition::NamedExecutable,
        Recognition::FittingRuntime,
        Recognition::Unrecognized,
    ] {
        check(unknown(UnknownBecause::YoungerThanClaim), &base, |world| {
            world.seen().recognition = recognition;
        });
    }
}

#[test]
fn without_a_stamp_an_older_process_is_the_owner_if_it_is_recognized() {
    for recognition in [
        Recognition::ClaimingAgent,
        Recognition::NamedExecutable,
        Recognition::FittingRuntime,
    ] {
        check(BY_DATE, &dated(), |world| {
            world.seen().recognition = recognition
        });
    }
    for recognition in [Recognition::AnotherProgram, Recognition::Unrecognized] {
        check(
            unknown(UnknownBecause::UnrecognizedProgram),
            &dated(),
            |world| {
                world.seen().recognition = recognition;
            },
        );
    }
    check(BY_DATE, &dated(), |world| {
        world.claim.dated_at_ms = Some(BEGAN - 2_000)
    });
    check(unknown(UnknownBecause::ProbeFailed), &dated(), |world| {
        world.seen().process.began_at_ms = Err(Absent::Unsupported);
    });
}

#[test]
fn a_bare_pid_is_never_live() {
    let mut base = dated();
    base.claim.dated_at_ms = None;
    for recognition in Recognition::ALL {
        check(unknown(UnknownBecause::BarePid), &base, |world| {
            world.seen().recognition = recognition;
        });
    }
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        world.observed.at_pid = Ok(None);
    });
}

#[test]
fn a_held_lock_is_proof_if_the_agent_holds_it() {
    let mut base = world();
    base.claim.subject = Subject::Holder(Pid::new(4711).unwrap());
    base.claim.stamp = None;
    base.claim.dated_at_ms = None;
    let held = Verdict::Live(LiveBecause::LockHeld, Confidence::Proven);
    check(held, &base, |_| {});
    for recognition in [
        Recognition::NamedExecutable,
        Recognition::FittingRuntime,
        Recognition::AnotherProgram,
        Recognition::Unrecognized,
    ] {
        check(unknown(UnknownBecause::HeldByOther), &base, |world| {
            world.seen().recognition = recognition;
        });
    }
    check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
        world.observed.at_pid = Err(LookFailure::Failed);
    });
    check(exited(ExitedBecause::Zombie), &base, |world| {
        world.seen().process.is_exited = true;
    });
}

#[test]
fn a_free_lock_is_an_exit_only_where_every_holder_would_show() {
    let mut base = world();
    base.claim.subject = Subject::LockFree {
        is_everyone_asked: true,
    };
    check(exited(ExitedBecause::LockNotHeld), &base, |_| {});
    let incomplete = unknown(UnknownBecause::IncompleteView);
    check(incomplete, &base, |world| {
        world.claim.subject = Subject::LockFree {
            is_everyone_asked: false,
        };
    });
    check(incomplete, &base, |world| {
        world.claim.placement = Placement::SharedByMachines
    });
    check(incomplete, &base, |world| {
        world.view.is_everything_shown = Ok(false)
    });
    check(
        incomplete,
        &base.clone().in_container(Placement::Local),
        |_| {},
    );
    check(
        exited(ExitedBecause::LockNotHeld),
        &base.in_container(Placement::ThisContainer),
        |_| {},
    );
}

/// Every combination of what decides, for properties that hold for all of them.
fn every_world() -> Vec<World> {
    let mut worlds = vec![world()];
    let mut vary = |variants: &dyn Fn(&World) -> Vec<World>| {
        worlds = worlds.iter().flat_map(variants).collect();
    };
    fn with(world: &World, changes: &[&dyn Fn(&mut World)]) -> Vec<World> {
        let vary = |change: &&dyn Fn(&mut World)| {
            let mut world = world.clone();
            change(&mut world);
            world
        };
        changes.iter().map(vary).collect()
    }
    vary(&|world| {
        with(
            world,
            &[&|_| {}, &|world| world.claim.stamp = None, &|world| {
                world.claim.stamp = Some(StartStamp::LinuxTicks(TICKS + 1))
            }],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.dated_at_ms = None,
                &|world| world.claim.dated_at_ms = Some(BEGAN - 60_000),
                &|world| world.claim.dated_at_ms = Some(NOW + 60_000),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.boot = boot(OUR_BOOT),
                &|world| world.claim.scope.boot = boot(OTHER_BOOT),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.host = Some("devbox".to_owned()),
                &|world| world.claim.scope.host = Some("laptop".to_owned()),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL),
                &|world| world.claim.scope.pid_namespace = Some(OTHER_NAMESPACE),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.placement = Placement::SharedByMachines,
                &|world| world.claim.placement = Placement::ThisContainer,
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.view.is_everything_shown = Ok(false),
                &|world| world.view.is_initial_pid_namespace = Ok(false),
                &|world| world.observed.has_nested_namespaces = true,
            ],
        )
    });
    let mut all = Vec::new();
    for world in worlds {
        for at_pid in [Ok(None), Err(LookFailure::Failed), Err(LookFailure::Hidden)] {
            let mut world = world.clone();
            world.observed.at_pid = at_pid;
            all.push(world);
        }
        for recognition in Recognition::ALL {
            let mut world = world.clone();
            world.seen().recognition = recognition;
            all.push(world);
        }
    }
    all
}

#[test]
fn every_combination_keeps_the_promises() {
    let worlds = every_world();
    assert!(worlds.len() > 20_000, "{} combinations", worlds.len());
    for world in worlds {
        let verdict = world.judge();
        let claim = &world.claim;
        let liveness = verdict.liveness();
        let has_date = claim.dated_at_ms.is_some_and(|at| at <= NOW + 2_000);
        let failed_to_look = world.observed.at_pid.is_err();
        // Where the claim is about this machine, only the table can answer.
        if failed_to_look {
            assert_ne!(liveness, Liveness::Live, "live unseen: {world:#?}");
            let is_answer_of_the_file_alone = matches!(
                verdict,
                Verdict::Exited(ExitedBecause::Rebooted | ExitedBecause::NamespaceGone)
            );
            assert!(
                liveness == Liveness::Unknown || is_answer_of_the_file_alone,
                "exited unseen: {world:#?}"
            );
        }
        if claim.stamp.is_none() && !has_date {
            assert_ne!(liveness, Liveness::Live, "a bare pid is live: {world:#?}");
        }
        if verdict.confidence() == Some(Confidence::Proven) {
            assert_eq!(
                claim.stamp,
                Some(StartStamp::LinuxTicks(TICKS)),
                "{world:#?}"
            );
        }
        if claim.stamp == Some(StartStamp::LinuxTicks(TICKS + 1)) {
            assert_ne!(
                liveness,
                Liveness::Live,
                "another stamp is live: {world:#?}"
            );
        }
        let is_boot_other = claim.scope.boot == boot(OTHER_BOOT);
        if is_boot_other {
            assert_ne!(liveness, Liveness::Live, "another boot is live: {world:#?}");
        }
        let is_everything_shown = world.view.is_everything_shown == Ok(true);
        if !is_everything_shown && verdict == Verdict::Exited(ExitedBecause::NoSuchProcess) {
            panic!("absence proven in a partial view: {world:#?}");
        }
        if matches!(&world.observed.at_pid, Ok(Some(seen)) if seen.recognition == Recognition::AnotherProgram)
        {
            assert_ne!(
                liveness,
                Liveness::Live,
                "another program is live: {world:#?}"
            );
        }
    }
}

#[test]
fn judging_twice_gives_the_same_answer() {
    for world in every_world().into_iter().step_by(97) {
        assert_eq!(world.judge(), world.judge());
    }
}
