//! Claims of other platforms, boots and hosts.

use super::*;

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
