//! Verdicts by the process that has the PID, or by a free PID.

use super::*;

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
fn a_free_pid_is_an_exit_only_in_a_complete_view() {
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
fn zombies_threads_and_kernel_threads_serve_no_session() {
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

/// The file's time helps to show that an equal stamp is of this boot, unless it is before
/// that or ahead of now.
#[test]
fn the_time_of_a_file_shows_this_boot_only_if_it_lies_in_it() {
    let modified = |at_ms: i64| {
        move |world: &mut World| {
            world.claim.dated_at_ms = None;
            world.claim.modified_at_ms = Some(at_ms);
        }
    };
    check(PROVEN, &world(), modified(BOOTED));
    check(PROVEN, &world(), modified(NOW + 2_000));
    check(BY_STAMP, &world(), modified(BOOTED - 1));
    check(BY_STAMP, &world(), modified(NOW + 2_001));
    check(BY_STAMP, &world(), |world| {
        modified(CLAIMED)(world);
        world.booted_at_ms = None;
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
