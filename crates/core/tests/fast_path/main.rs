//! The fast path finds what the full walk finds: the live rows of a look that
//! starts from processes equal those of a look at every session on disk, in
//! worlds made up at random.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "a test makes its world, and fails where it can't"
)]

mod disk;
mod generated;
mod processes;
mod spec;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use whosup_core::adapter::Depth;

use generated::World;
use spec::{Agent, Spec, worlds};

/// How many worlds of each agent are looked at; `PROPTEST_CASES` asks for more.
const WORLDS: u32 = 64;

fn check(spec: &Spec) -> Result<(), TestCaseError> {
    let world = World::new(spec);
    let fast = world.live_rows(Depth::Live);
    let full = world.live_rows(Depth::All);
    prop_assert_eq!(fast, full, "left: the fast path; right: the full walk");
    let [early, at_once] = world.settled_early_and_at_once();
    prop_assert_eq!(
        early,
        at_once,
        "left: settled early; right: with everything beside it"
    );
    check_one_by_one(&world)
}

/// A look at one session finds all that the full walk finds of it.
fn check_one_by_one(world: &World) -> Result<(), TestCaseError> {
    for (key, full) in world.said(Depth::All) {
        let only = Depth::Sessions([key.session.clone()].into());
        let narrow = world.said(only).remove(&key);
        prop_assert_eq!(narrow, Some(full), "left: the look at {}", key.session);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: WORLDS,
        // A world that failed is printed in full; it belongs into a fixture.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_live_session_of_claude_code_is_found_from_its_processes(
        spec in worlds(&[Agent::ClaudeCode])
    ) {
        check(&spec)?;
    }

    #[test]
    fn every_live_session_of_codex_is_found_from_its_processes(
        spec in worlds(&[Agent::Codex])
    ) {
        check(&spec)?;
    }

    #[test]
    fn every_live_session_of_qwen_code_is_found_from_its_processes(
        spec in worlds(&[Agent::QwenCode])
    ) {
        check(&spec)?;
    }

    #[test]
    fn every_live_session_of_kimi_cli_is_found_from_its_processes(
        spec in worlds(&[Agent::KimiCli])
    ) {
        check(&spec)?;
    }

    #[test]
    fn every_live_session_is_found_among_those_of_all_agents(
        spec in worlds(&[Agent::ClaudeCode, Agent::Codex, Agent::QwenCode, Agent::KimiCli])
    ) {
        check(&spec)?;
    }
}

/// Worlds without a live session would prove nothing.
#[test]
fn generated_worlds_have_live_sessions() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let agents: [&'static [Agent]; 4] = [
        &[Agent::ClaudeCode],
        &[Agent::Codex],
        &[Agent::QwenCode],
        &[Agent::KimiCli],
    ];
    for agent in agents {
        let mut live = 0;
        for _ in 0..50 {
            let spec = worlds(agent).new_tree(&mut runner).unwrap().current();
            live += World::new(&spec).live_rows(Depth::All).len();
        }
        assert!(live >= 10, "{agent:?}: {live} live sessions in 50 worlds");
    }
}
