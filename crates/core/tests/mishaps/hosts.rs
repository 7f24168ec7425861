//! What has befallen hosts and their clocks.

use super::*;

/// The name of the host changed under running processes (tailscale#4003, FullPageOS#508).
/// By its name alone a host is the same only where the process fits in all else.
#[test]
fn sessions_outlive_a_new_name_of_their_host() {
    let change = |world: &mut Value| {
        world["host"] = json!("box-2.local");
    };
    let noted = std::cell::Cell::new(0);
    check_all(change, |answers| {
        let is_note = |one: &&Value| {
            let says = one["says"].as_str().unwrap();
            one["verdict"] == "live" && says.ends_with(", written when this host was called devbox")
        };
        let sessions = answers.answer["sessions"].as_array().unwrap().iter();
        let evidence = sessions.flat_map(|one| one["evidence"].as_array().unwrap());
        noted.set(noted.get() + evidence.filter(is_note).count());
        let mut faults = nothing_has_exited(answers);
        for (key, before) in answers.before.iter().filter(|(_, row)| row.is_live()) {
            let after = &answers.after[key];
            // Whoever works in its directory may serve it, if the one that it names is
            // elsewhere.
            let may_be_elsewhere = before.confidence.as_deref() == Some("consistent")
                && matches!(after.reason.as_str(), "other-host" | "may-be-served-by");
            if !after.is_live() && !may_be_elsewhere {
                faults.push(format!("{key}: {before:?} became {after:?}"));
            }
        }
        faults
    });
    assert!(noted.get() > 0, "no answer names the new name");
}

/// After a paused machine resumed, processes looked younger than their records
/// (claude-swap#299). What is inferred rests on dates alone, and may be lost by that.
#[test]
fn sessions_outlive_a_step_of_the_clock() {
    let change = |world: &mut Value| {
        shift(&mut world["now"], 7 * 60);
        each_process(world, |process| shift(&mut process["began"], 7 * 60));
    };
    check_all(change, |answers| {
        let claimed = answers.before.iter().filter(|(_, row)| {
            let is_inferred = row.confidence.as_deref() == Some("inferred");
            row.is_live() && !is_inferred && row.has_transcript && !row.is_sub_agent
        });
        let fault = |(key, before): (&String, &Row)| {
            let after = &answers.after[key];
            let is_right = after.is_live()
                || (before.confidence.as_deref() != Some("proven") && after.liveness == "unknown");
            (!is_right).then(|| format!("{key}: {before:?} became {after:?}"))
        };
        claimed.filter_map(fault).collect()
    });
}
