//! Claims out of other PID namespaces.

use super::*;

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
    check(unknown(UnknownBecause::Ambiguous), &stamped, |world| {
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
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
    // The process with this very PID gives the reason.
    check(exited(ExitedBecause::PidReused), &stamped, |world| {
        replace_agent(world, Recognition::AnotherProgram, 1, BOOTED);
    });
    check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
        world.observed.at_pid = Err(LookFailure::Failed);
    });
}

/// What a number of several namespaces fits: each condition alone keeps it from being live.
#[test]
fn a_fit_among_namespaces_is_of_the_user_directory_and_session_of_the_claim() {
    let mut base = dated();
    base.observed.has_nested_namespaces = true;
    base.observed.at_pid = Ok(None);
    base.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    let gone = exited(ExitedBecause::NoSuchProcess);
    check(BY_DATE, &base, |_| {});
    check(gone, &base, |world| {
        world.observed.elsewhere[0].is_of_another_user = true;
    });
    check(gone, &base, |world| {
        world.observed.elsewhere[0].rival = Rival::Better;
    });
    check(unknown(UnknownBecause::Ambiguous), &base, |world| {
        world.observed.elsewhere[0].rival = Rival::Equal;
    });
    check(gone, &base, |world| {
        world.observed.elsewhere[0].recognition = Recognition::AnotherProgram;
    });
    check(gone, &base, |world| {
        world.observed.elsewhere[0].process.is_exited = true;
    });
    check(gone, &base, |world| {
        world.observed.elsewhere[0].process.is_kernel_thread = true;
    });
    // The executable that the claim names is as good as an agent's looks.
    check(BY_DATE, &base, |world| {
        world.observed.elsewhere[0].recognition = Recognition::NamedExecutable;
    });
    // A directory may have been renamed, and a clock set: that proves no death.
    check(
        unknown(UnknownBecause::UnrecognizedProgram),
        &base,
        |world| {
            world.observed.elsewhere[0].is_in_claimed_directory = false;
        },
    );
    check(unknown(UnknownBecause::YoungerThanClaim), &base, |world| {
        world.claim.dated_at_ms = Some(BEGAN - 60_000);
    });
    check(BY_DATE, &base, |world| {
        world.claim.work_dir = None;
        world.observed.elsewhere[0].is_in_claimed_directory = false;
    });
}

/// Files change their owner, and a process of another user may be the one that wrote them.
#[test]
fn the_process_here_that_has_another_owner_than_the_file_is_no_proof_of_death() {
    let mut base = dated();
    base.observed.has_nested_namespaces = true;
    let of_another_user = |world: &mut World, recognition| {
        world.observed.at_pid = Ok(Some(Seen {
            is_of_another_user: true,
            ..seen(recognition)
        }));
    };
    check(
        unknown(UnknownBecause::UnrecognizedProgram),
        &base,
        |world| {
            of_another_user(world, Recognition::ClaimingAgent);
        },
    );
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        of_another_user(world, Recognition::AnotherProgram);
    });
}

/// PID 1 of the host is older than every claim of a container's PID 1, and is no agent.
#[test]
fn another_program_with_that_number_does_not_keep_a_dead_claim_open() {
    let mut base = dated();
    base.observed.has_nested_namespaces = true;
    replace_agent(&mut base, Recognition::AnotherProgram, 1, BOOTED);
    check(exited(ExitedBecause::NoSuchProcess), &base, |_| {});
    check(BY_DATE, &base, |world| {
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
    check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
        world.view.is_everything_shown = Ok(false);
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
