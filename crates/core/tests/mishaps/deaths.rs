//! A process exits, and nothing else happens: what is published before the look that
//! follows is what that look shows.

use std::collections::BTreeSet;

use whosup_core::sessions::scan::{Scope, scan};
use whosup_core::sessions::session::Session;
use whosup_core::sources::recognize::Users;
use whosup_process::Pid;

use super::*;

#[test]
fn what_an_exit_changes_is_what_a_look_shows_afterwards() {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut decided: BTreeMap<String, u32> = BTreeMap::new();
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let world = World::of_fixture(&case);
        let owners: BTreeSet<i64> = rows_of(&case)
            .values()
            .filter_map(|row| row.owner)
            .collect();
        for pid in owners {
            let Some(exited) = exited_with(&world, pid) else {
                continue;
            };
            let seen = World::of_changed_fixture(&case, |world| take_process(world, pid));
            let seen = rows(&seen.look(DepthName::All));
            for session in exited {
                *decided.entry(session.key.agent.to_string()).or_default() += 1;
                let before = (session.liveness().name(), session.verdict.reason());
                let its = seen.iter().find(|(key, _)| {
                    let mut words = key.split(' ');
                    words.next() == Some(session.key.agent.as_str())
                        && words.next() == Some(session.key.session.as_str())
                });
                // Only the process may have led to its home.
                let Some((_, row)) = its else { continue };
                let after = (row.liveness.as_str(), row.reason.as_str());
                if after != before {
                    let key = &session.key.session;
                    let _ = writeln!(
                        report,
                        "{name}, PID {pid}: {key} is {before:?} before the look, and {after:?} in it"
                    );
                }
            }
        }
    }
    assert!(report.is_empty(), "{report}");
    for agent in ["claude-code", "kimi-cli"] {
        let is_wanted = wanted.is_empty() || wanted.starts_with(agent);
        assert!(
            !is_wanted || decided.contains_key(agent),
            "nothing was decided before a look: {decided:?}"
        );
    }
}

/// The sessions that are known to have exited with a process, if a look is not needed.
fn exited_with(world: &World, pid: i64) -> Option<Vec<Session>> {
    let machine = world.machine();
    let scope = Scope {
        users: Users::All,
        is_judged_again: true,
        ..Scope::default()
    };
    let mut judged = scan(&machine, &scope).judged?;
    let pid = Pid::new(pid).unwrap();
    let stamp = machine.table().seen(pid)?.stamp.clone();
    judged.without(&world.machine_without(pid.get()), pid, &stamp)
}

/// Takes one process out of a world.
fn take_process(world: &mut Value, pid: i64) {
    let processes = world.get_mut("processes").and_then(Value::as_array_mut);
    if let Some(processes) = processes {
        processes.retain(|process| process["pid"] != pid);
    }
}
