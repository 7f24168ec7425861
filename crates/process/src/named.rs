//! A process named by a file, and whether it is still running.

use std::sync::Arc;

use crate::{
    Absent, Backend, BootId, Field, Pid, PidNamespace, PidScope, Platform, ProcessTable,
    StartStamp, View,
};

/// How much younger than its date something may look by another clock, in milliseconds.
const CLOCK_SLACK_MS: i64 = 2_000;

/// A process as a file names it, with the fields that the file contains.
///
/// For callers that must know that a process is *gone* before they take something over
/// from it. Anything short of proof is [`Presence::Unclear`].
///
/// ```
/// use whosup_process::{NamedProcess, Pid, Presence, system_backend};
///
/// let backend = system_backend();
/// if let Ok(Some(own)) = backend.probe(Pid::own()) {
///     let scope = backend.scope();
///     let named = NamedProcess {
///         stamp: Some(&own.stamp),
///         ..NamedProcess::here(own.pid, &scope)
///     };
///     assert_eq!(named.presence(&backend), Presence::Running);
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct NamedProcess<'a> {
    /// The host.
    pub host: Option<&'a str>,
    /// The run of the kernel.
    pub boot: Option<&'a BootId>,
    /// The PID namespace.
    pub pid_namespace: Option<PidNamespace>,
    /// The PID.
    pub pid: Pid,
    /// When it began, raw.
    pub stamp: Option<&'a StartStamp>,
    /// The platform of the kind of stamp that is named, also without a stamp.
    pub platform: Option<Platform>,
    /// When the file claims to have been written, in milliseconds since 1970.
    pub dated_at_ms: Option<i64>,
    /// The file lies on a file system that machines share: then an equal host
    /// name is no proof that it means this host.
    pub is_file_shared: bool,
}

/// Whether a process that a file names is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It runs: PID, scope and start stamp are equal.
    Running,
    /// It is provably gone.
    Exited,
    /// Neither is proven: another host or namespace, no stamp, a failed look.
    Unclear,
}

impl<'a> NamedProcess<'a> {
    /// A process that is named by its PID in a scope, without a stamp.
    #[must_use]
    pub fn here(pid: Pid, scope: &'a PidScope) -> Self {
        Self {
            host: scope.host.as_ref().ok().map(|host| host.0.as_str()),
            boot: scope.boot.as_ref().ok(),
            pid_namespace: scope.pid_namespace.as_ref().ok().copied(),
            pid,
            stamp: None,
            platform: None,
            dated_at_ms: None,
            is_file_shared: false,
        }
    }

    /// Looks whether the process is still there.
    #[must_use]
    pub fn presence(&self, backend: &Arc<dyn Backend>) -> Presence {
        let scope = backend.scope();
        let view = backend.view();
        if view.is_proc_ours != Ok(true) || self.is_of_another_platform() {
            return Presence::Unclear;
        }
        match self.boot_presence(&scope, &view) {
            Some(presence) => presence,
            None if !self.is_number_of_here(&scope, &view, backend) => Presence::Unclear,
            None => self.at_pid(&view, backend),
        }
    }

    /// Another platform's stamp is another host's, whatever the host's name is.
    fn is_of_another_platform(&self) -> bool {
        let of_stamp = self.stamp.map(|stamp| stamp.kind().platform());
        match (of_stamp.or(self.platform), Platform::current()) {
            (Some(named), Some(here)) => named != here,
            (None, _) | (_, None) => false,
        }
    }

    /// What host and boot decide; `None`: this host, and perhaps this boot.
    fn boot_presence(&self, scope: &PidScope, view: &View) -> Option<Presence> {
        let is_same_host = match (self.host, &scope.host) {
            (Some(named), Ok(ours)) if ours.is_same_host(named) => Some(true),
            (Some(_), Ok(_)) => Some(false),
            (None, _) | (_, Err(_)) => None,
        };
        if let (Some(named), Ok(ours)) = (self.boot, &scope.boot) {
            if named == ours {
                // Boot ids are random: an equal one is this host, renamed or not.
                return None;
            }
            let is_before_this_boot = match (self.dated_at_ms, &view.booted_at_ms) {
                (Some(dated), Ok(booted)) => dated < booted.saturating_sub(CLOCK_SLACK_MS),
                _ => false,
            };
            let is_rebooted =
                is_same_host == Some(true) && is_before_this_boot && !self.is_file_shared;
            return Some(if is_rebooted {
                Presence::Exited
            } else {
                Presence::Unclear
            });
        }
        let is_here = is_same_host == Some(true) && !self.is_file_shared;
        (!is_here).then_some(Presence::Unclear)
    }

    /// The PID is a number of our own PID namespace.
    fn is_number_of_here(&self, scope: &PidScope, view: &View, backend: &Arc<dyn Backend>) -> bool {
        match (self.pid_namespace, &scope.pid_namespace) {
            (Some(named), Ok(ours)) => named == *ours,
            (Some(_), Err(_)) => false,
            (None, _) => {
                is_initial(&view.is_initial_pid_namespace)
                    && !ProcessTable::look(Arc::clone(backend)).has_nested_namespaces()
            }
        }
    }

    fn at_pid(&self, view: &View, backend: &Arc<dyn Backend>) -> Presence {
        let process = match backend.probe(self.pid) {
            Err(_) => return Presence::Unclear,
            Ok(None) => return Presence::Exited,
            Ok(Some(process)) => process,
        };
        if process.is_exited || process.is_kernel_thread {
            return Presence::Exited;
        }
        match self
            .stamp
            .and_then(|stamp| stamp.is_same_as(&process.stamp))
        {
            Some(true) => Presence::Running,
            Some(false) if is_initial(&view.is_initial_time_namespace) => Presence::Exited,
            Some(false) | None => Presence::Unclear,
        }
    }
}

/// A kernel that has no such namespaces has but the initial one.
fn is_initial(field: &Field<bool>) -> bool {
    matches!(field, Ok(true) | Err(Absent::Unsupported))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use super::{NamedProcess, Presence};
    use crate::{
        Absent, Backend, BootId, Pid, PidNamespace, Platform, ProbeError, Recorded,
        RecordedProcess, StartStamp,
    };

    const BOOTED: i64 = 1_790_000_000_000;
    const OURS: &str = "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a";
    const OTHER: &str = "29c1d8ff-a55f-47c0-82a1-b0f1bc43623b";

    fn world() -> Recorded {
        let recorded = Recorded::initial();
        let mut scope = recorded.scope();
        scope.boot = Ok(BootId::parse(OURS).unwrap());
        recorded
            .with_scope(scope)
            .with(RecordedProcess::new(4711, 81, BOOTED + 5_000))
    }

    #[track_caller]
    fn check(world: Recorded, right: Presence, change: impl Fn(&mut NamedProcess<'_>)) {
        let backend: Arc<dyn Backend> = Arc::new(world);
        let scope = backend.scope();
        let stamp = StartStamp::LinuxTicks(81);
        let mut named = NamedProcess {
            stamp: Some(&stamp),
            dated_at_ms: Some(BOOTED + 6_000),
            ..NamedProcess::here(Pid::new(4711).unwrap(), &scope)
        };
        change(&mut named);
        assert_eq!(named.presence(&backend), right, "{named:?}");
    }

    #[test]
    fn only_an_equal_stamp_in_an_equal_scope_is_running() {
        check(world(), Presence::Running, |_| {});
        check(world(), Presence::Running, |named| {
            named.host = Some("renamed")
        });
        check(world(), Presence::Unclear, |named| named.stamp = None);
        check(world(), Presence::Exited, |named| {
            named.stamp = Some(&StartStamp::LinuxTicks(82));
        });
    }

    #[test]
    fn a_free_pid_is_exited() {
        check(world(), Presence::Exited, |named| {
            named.pid = Pid::nearest(9)
        });
        check(world(), Presence::Exited, |named| {
            named.pid = Pid::nearest(9);
            named.stamp = None;
            named.pid_namespace = None;
        });
    }

    #[test]
    fn a_zombie_and_a_kernel_thread_are_exited() {
        let zombie = RecordedProcess::new(4711, 81, BOOTED).zombie();
        check(world().with(zombie), Presence::Exited, |_| {});
        let kernel = RecordedProcess::new(4711, 81, BOOTED).kernel_thread();
        check(world().with(kernel), Presence::Exited, |_| {});
    }

    #[test]
    fn a_failed_look_is_unclear() {
        let failed = ProbeError::File {
            path: "/proc".into(),
            reason: Absent::PermissionDenied,
        };
        check(
            world().with_probe_error(4711, failed),
            Presence::Unclear,
            |_| {},
        );
        check(world().hidden(4711), Presence::Unclear, |_| {});
        let mut view = world().view();
        view.is_proc_ours = Ok(false);
        check(world().with_view(view), Presence::Unclear, |_| {});
    }

    #[test]
    fn another_host_or_namespace_is_unclear() {
        check(world(), Presence::Unclear, |named| {
            named.host = Some("elsewhere");
            named.boot = None;
        });
        check(world(), Presence::Unclear, |named| {
            named.host = None;
            named.boot = None;
        });
        check(world(), Presence::Unclear, |named| {
            named.pid_namespace = Some(PidNamespace(5));
        });
        check(world(), Presence::Unclear, |named| {
            named.stamp = Some(&StartStamp::Filetime(3));
            named.pid = Pid::nearest(9);
        });
        check(world(), Presence::Unclear, |named| {
            named.stamp = None;
            named.platform = Some(Platform::Windows);
            named.pid = Pid::nearest(9);
        });
        for dated in [None, Some(BOOTED + 1), Some(BOOTED - 1_000)] {
            check(world(), Presence::Unclear, |named| {
                named.boot = Some(other_boot());
                named.dated_at_ms = dated;
            });
        }
    }

    /// A boot id that lives as long as the tests.
    fn other_boot() -> &'static BootId {
        static OTHER_BOOT: OnceLock<BootId> = OnceLock::new();
        OTHER_BOOT.get_or_init(|| BootId::parse(OTHER).unwrap())
    }

    #[test]
    fn an_earlier_boot_of_this_host_is_exited_unless_machines_share_the_file() {
        let earlier = |named: &mut NamedProcess<'_>| {
            named.boot = Some(other_boot());
            named.dated_at_ms = Some(BOOTED - 10_000);
        };
        check(world(), Presence::Exited, earlier);
        check(world(), Presence::Unclear, |named| {
            earlier(named);
            named.is_file_shared = true;
        });
        check(world(), Presence::Unclear, |named| {
            earlier(named);
            named.host = None;
        });
    }

    #[test]
    fn a_number_without_a_namespace_means_nothing_while_there_are_several() {
        let nested = RecordedProcess::new(50, 9, BOOTED).inner_pids(&[4711]);
        check(world().with(nested), Presence::Unclear, |named| {
            named.pid_namespace = None;
            named.pid = Pid::nearest(9);
        });
    }

    #[test]
    fn stamps_of_another_time_namespace_prove_no_death() {
        let mut view = world().view();
        view.is_initial_time_namespace = Ok(false);
        check(world().with_view(view), Presence::Unclear, |named| {
            named.stamp = Some(&StartStamp::LinuxTicks(82));
        });
    }
}
