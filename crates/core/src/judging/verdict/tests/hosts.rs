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
    // The kind alone shows it too.
    check(unknown(UnknownBecause::OtherHost), &world(), |world| {
        world.claim.stamp = None;
        world.claim.scope.platform = Some(Platform::Darwin);
    });
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
fn another_host_name_is_another_host_unless_the_boot_is_ours() {
    let mut base = world();
    base.claim.scope.host = Some("laptop".to_owned());
    let other_host = unknown(UnknownBecause::OtherHost);
    check(other_host, &base, |_| {});
    check(other_host, &base, |world| {
        world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL);
    });
    check(other_host, &base, |world| {
        world.claim.scope.boot = boot(OUR_BOOT);
        world.scope.boot = Err(Absent::PermissionDenied);
    });
    check(unknown(UnknownBecause::ProbeFailed), &base, |world| {
        world.claim.scope.boot = boot(OUR_BOOT);
        world.observed.at_pid = Err(LookFailure::Failed);
    });
}

/// Equal boot, PID namespace and stamp: this host has another name since (tailscale#4003).
#[test]
fn a_host_that_was_renamed_is_this_one() {
    let mut base = world();
    base.claim.scope.host = Some("laptop".to_owned());
    base.claim.scope.boot = boot(OUR_BOOT);
    base.claim.scope.pid_namespace = Some(PidNamespace::INITIAL);
    check(PROVEN, &base, |_| {});
    check(exited(ExitedBecause::PidReused), &base, |world| {
        world.claim.stamp = Some(StartStamp::LinuxTicks(TICKS + 1));
    });
    check(exited(ExitedBecause::NoSuchProcess), &base, |world| {
        world.observed.at_pid = Ok(None);
    });
}

/// A container names another host and this boot: its PID namespace decides.
#[test]
fn a_container_of_this_boot_is_judged_by_its_namespace() {
    let mut base = world();
    base.claim.scope.host = Some("0a1b2c3d4e5f".to_owned());
    base.claim.scope.boot = boot(OUR_BOOT);
    base.claim.scope.pid_namespace = Some(OTHER_NAMESPACE);
    check(exited(ExitedBecause::NamespaceGone), &base, |_| {});
    check(PROVEN, &base, |world| {
        world.observed.named_namespace = Elsewhere {
            is_populated: true,
            at_pid: Some(seen(Recognition::ClaimingAgent)),
        };
    });
    check(unknown(UnknownBecause::OtherPidNamespace), &base, |world| {
        world.view.is_root = false;
    });
    base.claim.scope.pid_namespace = None;
    check(PROVEN, &base, |_| {});
    check(BY_STAMP, &base, |world| {
        world.observed.has_nested_namespaces = true;
        world.observed.at_pid = Ok(None);
        world.observed.elsewhere = vec![seen(Recognition::ClaimingAgent)];
    });
}

/// Two containers that share a home have the same small PIDs, programs and directories.
#[test]
fn the_same_pid_agent_and_directory_show_no_rename() {
    let mut base = dated();
    base.claim.scope.host = Some("laptop".to_owned());
    base.seen().is_in_claimed_directory = true;
    let other_host = unknown(UnknownBecause::OtherHost);
    check(other_host, &base, |_| {});
    for placement in [Placement::Local, Placement::ThisContainer] {
        check(other_host, &base.clone().in_container(placement), |_| {});
    }
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
