//! What must hold for every combination.

use super::*;

/// Every combination of what decides, for properties that hold for all of them.
fn every_world() -> Vec<World> {
    let mut worlds = vec![world()];
    let mut vary = |variants: &dyn Fn(&World) -> Vec<World>| {
        worlds = worlds.iter().flat_map(variants).collect();
    };
    fn with(world: &World, changes: &[&dyn Fn(&mut World)]) -> Vec<World> {
        let vary = |change: &&dyn Fn(&mut World)| {
            let mut world = world.clone();
            change(&mut world);
            world
        };
        changes.iter().map(vary).collect()
    }
    vary(&|world| {
        with(
            world,
            &[&|_| {}, &|world| world.claim.stamp = None, &|world| {
                world.claim.stamp = Some(StartStamp::LinuxTicks(TICKS + 1))
            }],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.dated_at_ms = None,
                &|world| world.claim.dated_at_ms = Some(BEGAN - 60_000),
                &|world| world.claim.dated_at_ms = Some(NOW + 60_000),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.boot = boot(OUR_BOOT),
                &|world| world.claim.scope.boot = boot(OTHER_BOOT),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.host = Some("devbox".to_owned()),
                &|world| world.claim.scope.host = Some("laptop".to_owned()),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.scope.pid_namespace = Some(PidNamespace::INITIAL),
                &|world| world.claim.scope.pid_namespace = Some(OTHER_NAMESPACE),
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.claim.placement = Placement::SharedByMachines,
                &|world| world.claim.placement = Placement::ThisContainer,
            ],
        )
    });
    vary(&|world| {
        with(
            world,
            &[
                &|_| {},
                &|world| world.view.is_everything_shown = Ok(false),
                &|world| world.view.is_initial_pid_namespace = Ok(false),
                &|world| world.observed.has_nested_namespaces = true,
            ],
        )
    });
    let mut all = Vec::new();
    for world in worlds {
        for at_pid in [Ok(None), Err(LookFailure::Failed), Err(LookFailure::Hidden)] {
            let mut world = world.clone();
            world.observed.at_pid = at_pid;
            all.push(world);
        }
        for recognition in Recognition::ALL {
            let mut world = world.clone();
            world.seen().recognition = recognition;
            all.push(world);
        }
    }
    all
}

#[test]
fn every_combination_keeps_the_promises() {
    let worlds = every_world();
    assert!(worlds.len() > 20_000, "{} combinations", worlds.len());
    for world in worlds {
        let verdict = world.judge();
        let claim = &world.claim;
        let liveness = verdict.liveness();
        let has_date = claim.dated_at_ms.is_some_and(|at| at <= NOW + 2_000);
        let failed_to_look = world.observed.at_pid.is_err();
        // Where the claim is about this machine, only the table can answer.
        if failed_to_look {
            assert_ne!(liveness, Liveness::Live, "live unseen: {world:#?}");
            let is_answer_of_the_file_alone = matches!(
                verdict,
                Verdict::Exited(ExitedBecause::Rebooted | ExitedBecause::NamespaceGone)
            );
            assert!(
                liveness == Liveness::Unknown || is_answer_of_the_file_alone,
                "exited unseen: {world:#?}"
            );
        }
        if claim.stamp.is_none() && !has_date {
            assert_ne!(liveness, Liveness::Live, "a bare pid is live: {world:#?}");
        }
        if verdict.confidence() == Some(Confidence::Proven) {
            assert_eq!(
                claim.stamp,
                Some(StartStamp::LinuxTicks(TICKS)),
                "{world:#?}"
            );
        }
        if claim.stamp == Some(StartStamp::LinuxTicks(TICKS + 1)) {
            assert_ne!(
                liveness,
                Liveness::Live,
                "another stamp is live: {world:#?}"
            );
        }
        let is_boot_other = claim.scope.boot == boot(OTHER_BOOT);
        if is_boot_other {
            assert_ne!(liveness, Liveness::Live, "another boot is live: {world:#?}");
        }
        let is_everything_shown = world.view.is_everything_shown == Ok(true);
        if !is_everything_shown && verdict == Verdict::Exited(ExitedBecause::NoSuchProcess) {
            panic!("absence proven in a partial view: {world:#?}");
        }
        if matches!(&world.observed.at_pid, Ok(Some(seen)) if seen.recognition == Recognition::AnotherProgram)
        {
            assert_ne!(
                liveness,
                Liveness::Live,
                "another program is live: {world:#?}"
            );
        }
    }
}

#[test]
fn judging_twice_gives_the_same_answer() {
    for world in every_world().into_iter().step_by(97) {
        assert_eq!(world.judge(), world.judge());
    }
}
