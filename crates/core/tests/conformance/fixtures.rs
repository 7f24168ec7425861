//! What every agent has fixtures of, and what holds in all of them.

use super::scans::scan;
use super::*;

/// The fixtures of an agent, by folder.
fn fixtures(adapter: &dyn Adapter) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let Ok(entries) = std::fs::read_dir(root.join(adapter.profile().id)) else {
        return Vec::new();
    };
    let cases = entries.map(|entry| entry.unwrap().path());
    cases
        .filter(|case| case.join("world.json").exists())
        .collect()
}

#[test]
fn every_agent_has_fixtures_of_live_exited_unknown_and_broken_sessions() {
    check_all(|adapter| {
        let cases = fixtures(adapter);
        let mut seen = BTreeSet::new();
        let mut has_problem = false;
        let mut has_clean_life = false;
        for case in &cases {
            let Ok(text) = std::fs::read_to_string(case.join("expected.json")) else {
                return vec![format!("{} has no answer", case.display())];
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            let is_troubled = answer["problems"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            has_problem |= is_troubled;
            let its = |one: &&Value| one["agent"] == adapter.profile().id;
            let sessions = answer["sessions"].as_array().into_iter().flatten();
            for session in sessions.filter(its) {
                let liveness = session["liveness"].as_str().unwrap().to_owned();
                has_clean_life |= liveness == "live" && !is_troubled;
                seen.insert(liveness);
            }
        }
        lacks([
            (cases.len() >= FIXTURES_MIN, "it has too few fixtures"),
            (
                has_clean_life,
                "no fixture shows a live session and no problem",
            ),
            (
                seen.contains("exited"),
                "no fixture shows an exited session",
            ),
            (seen.contains("unknown"), "no fixture shows an unknown one"),
            (has_problem, "no fixture shows a problem"),
        ])
    });
}

#[test]
fn names_of_fixtures_are_sentences_and_say_what_they_prove() {
    check_all(|adapter| {
        let mut lack = Vec::new();
        for case in fixtures(adapter) {
            let name = case.file_name().unwrap().to_str().unwrap().to_owned();
            let is_plain = name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            let text = std::fs::read_to_string(case.join("world.json")).unwrap();
            let world: Value = serde_json::from_str(&text).unwrap();
            let about = world["about"].as_str().unwrap_or_default();
            if !is_plain || !name.contains('-') {
                lack.push(format!("`{name}` is no sentence with hyphens"));
            }
            if about.split_whitespace().count() < 4 {
                lack.push(format!("`{name}` does not say what it proves"));
            }
        }
        lack
    });
}

/// What holds for every sketch and claim, whatever the world.
fn lacks_of_scan(scan: &AgentScan, adapter: &dyn Adapter, root: &Path) -> Vec<String> {
    let agent = id_of(adapter);
    let keys = scan.claims.iter().map(|claim| &claim.key);
    let keys = keys.chain(scan.sketches.iter().map(|sketch| &sketch.key));
    let is_its_own = keys
        .clone()
        .all(|key| key.agent == agent && key.home == root.into());
    let named: BTreeSet<_> = scan.sketches.iter().map(|sketch| &sketch.key).collect();
    let has_parent = scan
        .sketches
        .iter()
        .all(|sketch| sketch.parent.as_ref() != Some(&sketch.key.session));
    let evidence = scan
        .claims
        .iter()
        .all(|claim| !claim.evidence.says.trim().is_empty());
    let children = scan
        .sketches
        .iter()
        .filter(|sketch| sketch.parent.is_some());
    let are_children_left_alone = children
        .into_iter()
        .all(|sketch| sketch.unclaimed == Unclaimed::NoProcess);
    lacks([
        (is_its_own, "a key names another agent or home"),
        (
            named.len() == scan.sketches.len(),
            "two sketches have one key",
        ),
        (has_parent, "a session is its own sub-agent"),
        (evidence, "a claim says nothing"),
        (
            are_children_left_alone,
            "a sub-agent may be served without a claim",
        ),
    ])
}

#[test]
fn scans_of_every_fixture_keep_to_their_agent_and_home() {
    check_all(|adapter| {
        let mut lack = Vec::new();
        for case in fixtures(adapter) {
            let world = world::World::of_fixture(&case);
            let machine = world.machine();
            for depth in [Depth::Live, Depth::All] {
                for root in adapter.homes(machine.environment()) {
                    let found = scan(adapter, &machine, &root, depth.clone()).found;
                    let name = case.file_name().unwrap().to_string_lossy().into_owned();
                    let its = lacks_of_scan(&found, adapter, &root);
                    lack.extend(its.into_iter().map(|one| format!("{name}: {one}")));
                }
            }
        }
        lack
    });
}
