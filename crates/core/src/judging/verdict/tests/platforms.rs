//! Claims and processes of macOS and Windows, where starts are dates.

use super::*;

/// There are neither PID nor time namespaces.
fn elsewhere(platform: Platform, stamp: StartStamp) -> World {
    let mut world = world();
    world.platform = platform;
    world.view.is_initial_pid_namespace = Err(Absent::Unsupported);
    world.view.is_initial_time_namespace = Err(Absent::Unsupported);
    world.scope.pid_namespace = Err(Absent::Unsupported);
    world.scope.boot = Err(Absent::Unsupported);
    world.seen().process.stamp = stamp.clone();
    world.claim.stamp = Some(stamp);
    world
}

const fn darwin(microseconds: u32) -> StartStamp {
    StartStamp::DarwinTv {
        seconds: 1_700_000_000,
        microseconds,
    }
}

#[track_caller]
fn check_live(base: &World, change: impl FnOnce(&mut World)) {
    let mut world = base.clone();
    change(&mut world);
    assert_eq!(world.judge().liveness(), Liveness::Live, "{world:#?}");
}

/// The time of the boot drifts by microseconds within one boot of macOS, and was
/// compared (kin#653). A process's own start stays, and a boot is named by its UUID.
#[test]
fn on_macos_a_start_names_a_process_whatever_is_known_of_the_boot() {
    let base = elsewhere(Platform::Darwin, darwin(123_456));
    check_live(&base, |_| {});
    check_live(&base, |world| world.booted_at_ms = Some(BOOTED + 1));
    check_live(&base, |world| world.booted_at_ms = None);
    check_live(&base, |world| {
        world.claim.scope.boot = boot(OUR_BOOT);
        world.scope.boot = Ok(BootId::parse(OUR_BOOT).unwrap());
    });
    check(exited(ExitedBecause::PidReused), &base, |world| {
        world.seen().process.stamp = darwin(123_999);
    });
}

/// On Windows an exit code that means "still active", and a handle that keeps an
/// exited process, made it live; and a PID was taken for its process after reuse
/// (openjdk/jdk#19586, orch#7, jcodemunch-mcp#450, psutil#2359).
#[test]
fn on_windows_a_creation_time_names_a_process_and_a_refusal_is_no_proof() {
    let base = elsewhere(Platform::Windows, StartStamp::Filetime(TICKS));
    check_live(&base, |_| {});
    check(exited(ExitedBecause::PidReused), &base, |world| {
        world.seen().process.stamp = StartStamp::Filetime(TICKS + 1);
    });
    check(exited(ExitedBecause::Zombie), &base, |world| {
        world.seen().process.is_exited = true;
    });
    check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
        world.observed.at_pid = Err(LookFailure::Failed);
    });
}
