//! Locks that are held, and free ones.

use super::*;

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
