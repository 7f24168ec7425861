//! Properties of this computer that keep whosup from seeing sessions.

use std::path::Path;

use whosup_core::machine::Machine;

use super::finding::{Check, Finding};

/// The limits of inotify on Linux.
const LIMITS: &str = "/proc/sys/fs/inotify";
/// Fewer watches than this are too few: an agent's home may have thousands of sessions.
const WATCHES_MIN: u64 = 8_192;
/// Fewer instances than this are too few: each editor and agent takes some.
const INSTANCES_MIN: u64 = 128;
/// No current clock shows less, in milliseconds since 1970: the year 2020.
const CLOCK_MIN_MS: i64 = 1_577_836_800_000;

/// What hides processes, makes them indistinguishable, or keeps files from being watched.
pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let processes = of_process_table(machine).into_iter();
    let limits = [
        ("max_user_watches", WATCHES_MIN),
        ("max_user_instances", INSTANCES_MIN),
    ];
    let limits = limits.into_iter().filter_map(|(name, minimum)| {
        let text = std::fs::read_to_string(Path::new(LIMITS).join(name));
        of_limit(name, &text.unwrap_or_default(), minimum)
    });
    vec![
        Check::new(
            "processes",
            "every process is visible; host, boot and PID namespace are known",
            processes.chain(of_identity(machine)),
        ),
        Check::new("clock", "the clock is plausible", of_clock(machine)),
        Check::new("watches", "enough files can be watched", limits),
    ]
}

fn of_clock(machine: &Machine) -> Option<Finding> {
    (machine.now_ms() < CLOCK_MIN_MS).then(|| {
        Finding::new(
            "the clock is years behind: claims can't be dated",
            "timedatectl set-ntp true",
        )
    })
}

fn of_process_table(machine: &Machine) -> Vec<Finding> {
    let table = machine.table();
    let unusable = table.processes().err().map(|error| {
        Finding::new(
            format!("no process can be looked at: {error}"),
            "mount /proc for this PID namespace: mount -t proc proc /proc",
        )
    });
    let hidden = matches!(table.view().is_everything_shown, Ok(false)).then(|| {
        Finding::new(
            "processes of other users are hidden, so their sessions stay unknown",
            "mount /proc without `hidepid`, or run this as root",
        )
    });
    unusable.into_iter().chain(hidden).collect()
}

/// Without host, boot and namespace no record can be matched with a process, or ended.
fn of_identity(machine: &Machine) -> Vec<Finding> {
    let scope = machine.table().scope();
    let unknown = [
        ("host name", scope.host.as_ref().err()),
        ("boot", scope.boot.as_ref().err()),
        ("PID namespace", scope.pid_namespace.as_ref().err()),
    ];
    let finding = |(what, error): (&str, Option<&_>)| {
        let error: &whosup_core::process::Absent = error?;
        Some(Finding::new(
            format!("cannot determine the {what}: {error}; no session is ended by a sweep"),
            "run this where /proc can be read: mount -t proc proc /proc",
        ))
    };
    unknown.into_iter().filter_map(finding).collect()
}

fn of_limit(name: &str, text: &str, minimum: u64) -> Option<Finding> {
    let limit: u64 = text.trim().parse().ok()?;
    (limit < minimum).then(|| {
        Finding::new(
            format!("few files can be watched: fs.inotify.{name} is {limit}"),
            format!("sysctl -w fs.inotify.{name}={minimum}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use whosup_core::machine::command::NoCommands;
    use whosup_core::machine::mounts::Mounts;
    use whosup_core::machine::{Environment, Machine};
    use whosup_core::process::{Absent, Backend as _, PidScope, ProcessTable, Recorded, View};

    use super::{checks, of_limit};

    /// What is wrong with a machine of this kind, limits aside.
    fn reported(now_ms: i64, table: Recorded) -> Vec<String> {
        let machine = Machine::new(
            Environment::new(None, None, []),
            now_ms,
            ProcessTable::look(Arc::new(table)),
            Mounts::parse(b""),
            Arc::new(NoCommands),
        );
        let checks = checks(&machine).into_iter();
        let findings = checks.flat_map(|check| check.findings);
        let whats = findings.map(|finding| {
            assert!(!finding.fix.is_empty(), "{}", finding.what);
            finding.what
        });
        whats
            .filter(|what| !what.starts_with("few files"))
            .collect()
    }

    #[test]
    fn hidden_processes_and_wrong_clocks_are_found() {
        let now_ms = super::CLOCK_MIN_MS;
        assert_eq!(reported(now_ms, Recorded::initial()), [""; 0]);
        let clock = ["the clock is years behind: claims can't be dated"];
        assert_eq!(reported(now_ms - 1, Recorded::initial()), clock);

        let hidden = View {
            is_everything_shown: Ok(false),
            ..Recorded::initial().view()
        };
        let hidden = reported(now_ms, Recorded::initial().with_view(hidden));
        assert_eq!(hidden.len(), 1, "{hidden:?}");
        assert!(hidden[0].starts_with("processes of other users are hidden"));

        let unknown = || PidScope {
            host: Err(Absent::PermissionDenied),
            boot: Err(Absent::PermissionDenied),
            pid_namespace: Err(Absent::PermissionDenied),
        };
        let identity = reported(now_ms, Recorded::initial().with_scope(unknown()));
        for (what, reported) in ["host name", "boot", "PID namespace"].iter().zip(&identity) {
            assert!(
                reported.starts_with(&format!("cannot determine the {what}: ")),
                "{reported}"
            );
        }
        assert_eq!(identity.len(), 3, "{identity:?}");
    }

    #[test]
    fn a_low_limit_is_reported_with_the_command_that_raises_it() {
        let finding = of_limit("max_user_watches", "1024\n", 8_192).unwrap();
        assert!(finding.what.ends_with("max_user_watches is 1024"));
        assert_eq!(finding.fix, "sysctl -w fs.inotify.max_user_watches=8192");
        assert!(of_limit("max_user_watches", "8192\n", 8_192).is_none());
        assert!(of_limit("max_user_watches", "", 8_192).is_none());
    }
}
