//! Walks the table of agents and names whatever an adapter lacks.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use whosup_core::agents::{
    AGENTS, Adapter, AgentScan, Depth, Home, Look, PairingRule, Program, Role, Sketch, id_of,
};
use whosup_core::claim::SessionKey;
use whosup_core::command::NoCommands;
use whosup_core::machine::{Environment, Machine};
use whosup_core::mounts::Mounts;
use whosup_core::problem::Found;
use whosup_process::{ProcessTable, Recorded, RecordedProcess};
use whosup_sidecar::{AgentId, SessionId};

/// How long a name may be that the kernel keeps of a process, in bytes.
const COMM_BYTES_MAX: usize = 15;
/// How many fixtures an agent has at least.
const FIXTURES_MIN: usize = 5;

/// Runs a check on every agent and reports what each of them lacks.
#[track_caller]
fn check_all(check: fn(&'static dyn Adapter) -> Vec<String>) {
    let mut report = String::new();
    for adapter in AGENTS {
        for lack in check(*adapter) {
            let _ = writeln!(report, "{}: {lack}", adapter.profile().id);
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// The lacks of those things that are not as they should be.
fn lacks<'a>(things: impl IntoIterator<Item = (bool, &'a str)>) -> Vec<String> {
    let things = things.into_iter();
    things
        .filter(|(is_right, _)| !is_right)
        .map(|(_, lack)| lack.to_owned())
        .collect()
}

#[test]
fn ids_are_valid_and_no_two_agents_share_one() {
    let ids: BTreeSet<_> = AGENTS.iter().map(|adapter| adapter.profile().id).collect();
    assert_eq!(ids.len(), AGENTS.len());
    let homes: BTreeSet<_> = AGENTS
        .iter()
        .map(|one| one.profile().default_home)
        .collect();
    assert_eq!(homes.len(), AGENTS.len());
    check_all(|adapter| {
        let id = adapter.profile().id;
        lacks([
            (AgentId::parse(id).is_ok(), "its id is not valid"),
            (id_of(adapter).as_str() == id, "its id has another text"),
        ])
    });
}

#[test]
fn every_profile_is_filled_in() {
    check_all(|adapter| {
        let profile = adapter.profile();
        let default_home = Path::new(profile.default_home);
        let is_given = |name: &&str| !name.is_empty();
        lacks([
            (!profile.name.trim().is_empty(), "it has no name"),
            (
                default_home.is_relative() && !profile.default_home.is_empty(),
                "its default home is not below the user's",
            ),
            (
                !profile.detection.trim().is_empty(),
                "it does not say how sessions are found",
            ),
            (
                profile.checked_against.contains("20"),
                "it does not say when it was checked, and against what",
            ),
            (!profile.comms.is_empty(), "it has no process names"),
            (
                profile.comms.iter().all(is_given),
                "a process name is empty",
            ),
            (
                profile.home_variables.iter().all(|name| !name.is_empty()),
                "a variable has no name",
            ),
        ])
    });
}

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter();
    Environment::new(
        Some(PathBuf::from("/home/dev")),
        Some(PathBuf::from("/work")),
        variables.map(|(name, value)| ((*name).to_owned(), OsString::from(value))),
    )
}

#[test]
fn homes_follow_their_variables_and_an_empty_one_is_unset() {
    check_all(|adapter| {
        let profile = adapter.profile();
        let default = Path::new("/home/dev").join(profile.default_home);
        let without = adapter.homes(&environment(&[]));
        let mut lack = lacks([
            (
                without.contains(&default),
                "without variables its default home is not a home",
            ),
            (
                adapter.homes(&Environment::default()).is_empty(),
                "without a user's home it invents homes",
            ),
        ]);
        let mut moves = profile.home_variables.is_empty();
        for name in profile.home_variables {
            let with = |value| adapter.homes(&environment(&[(name, value)]));
            let moved = with("/elsewhere/its");
            moves |= moved.iter().any(|home| home.starts_with("/elsewhere/its"));
            let both = with("/elsewhere/its/") == moved && with("") == without;
            let is_relative = with("its").iter().all(|home| home.is_absolute());
            let is_tilde = with("~/its")
                .iter()
                .all(|home| !home.to_string_lossy().contains('~'));
            for (is_right, lack_of) in [
                (
                    both,
                    "counts when it is empty, or with a slash at its end for another home",
                ),
                (is_relative, "makes a relative home"),
                (is_tilde, "keeps a `~`"),
            ] {
                if !is_right {
                    lack.push(format!("`{name}` {lack_of}"));
                }
            }
        }
        if !moves {
            lack.push("no variable moves its home".to_owned());
        }
        lack
    });
}

/// Programs that are nobody's agent: name, executable, arguments.
const OTHERS: &[(&str, &str, &[&str])] = &[
    ("bash", "/usr/bin/bash", &["bash", "-i"]),
    ("sh", "/usr/bin/dash", &["sh", "-c", "sleep 1"]),
    ("zsh", "/usr/bin/zsh", &["-zsh"]),
    ("vim", "/usr/bin/vim", &["vim", "notes.md"]),
    ("git", "/usr/bin/git", &["git", "commit", "-m", "x"]),
    ("node", "/usr/bin/node", &["node", "server.js"]),
    ("node", "/usr/bin/node", &["node", "--test", "cli.js"]),
    ("MainThread", "/usr/bin/node", &["node"]),
    (
        "python3",
        "/usr/bin/python3.13",
        &["python3", "-m", "http.server"],
    ),
    ("bun", "/home/dev/.bun/bin/bun", &["bun", "test"]),
    ("tmux: server", "/usr/bin/tmux", &["tmux", "new-session"]),
    ("rg", "/usr/bin/rg", &["rg", "needle"]),
    ("sudo", "/usr/bin/sudo", &["sudo", "-i"]),
    (
        "npm exec",
        "/usr/bin/node",
        &["node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "test"],
    ),
];

fn recognized(adapter: &dyn Adapter, comm: &str, exe: &str, argv: &[&str]) -> Option<Role> {
    let made = RecordedProcess::new(4711, 8123, 0)
        .comm(comm)
        .exe(exe)
        .argv(argv);
    adapter.recognize(&Program {
        process: &made.process,
        details: &made.details,
    })
}

#[test]
fn shells_editors_and_runtimes_are_nobodys_agent() {
    check_all(|adapter| {
        let found = OTHERS
            .iter()
            .filter(|(comm, exe, argv)| recognized(adapter, comm, exe, argv).is_some());
        found
            .map(|(comm, _, argv)| format!("it recognizes {comm} {argv:?}"))
            .collect()
    });
}

#[test]
fn a_process_name_alone_makes_no_agent() {
    check_all(|adapter| {
        let names = adapter.profile().comms.iter();
        let found = names.filter(|name| {
            let argv = ["prog", "--serve"];
            recognized(adapter, name, "/usr/local/bin/prog", &argv).is_some()
        });
        found
            .map(|name| format!("it recognizes a program by the name `{name}` alone"))
            .collect()
    });
}

#[test]
fn a_program_that_mentions_an_agent_is_not_that_agent() {
    check_all(|adapter| {
        let words: BTreeSet<&str> = adapter.profile().comms.iter().copied().collect();
        let is_runtime = whosup_core::agents::is_runtime_name;
        // A name that the kernel has cut is not the beginning of another one.
        let is_whole = |word: &&str| word.len() < COMM_BYTES_MAX;
        let words = words
            .into_iter()
            .filter(|word| !is_runtime(word) && *word != "MainThread")
            .filter(is_whole);
        let mut lack = Vec::new();
        for word in words {
            let beside = format!("/opt/{word}-squad/bin/{word}-squad");
            let below = format!("/home/x/{word}/bin/server");
            let script = format!("/home/x/{word}.js");
            let tries: [(&str, &str, &[&str]); 5] = [
                (word, &beside, &[&beside]),
                ("server", &below, &["server"]),
                ("node", "/usr/bin/node", &["node", &script]),
                ("vim", "/usr/bin/vim", &["vim", word]),
                ("bash", "/usr/bin/bash", &["bash", "-c", word]),
            ];
            for (comm, exe, argv) in tries {
                if recognized(adapter, comm, exe, argv).is_some() {
                    lack.push(format!("it recognizes `{exe}` {argv:?}"));
                }
            }
        }
        lack
    });
}

fn machine(home: &Path) -> Machine {
    Machine::new(
        Environment::new(Some(home.to_owned()), Some(home.to_owned()), []),
        1_795_813_800_000,
        ProcessTable::look(Arc::new(Recorded::initial())),
        Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
        Arc::new(NoCommands),
    )
}

fn scan(adapter: &dyn Adapter, machine: &Machine, root: &Path, depth: Depth) -> Found<AgentScan> {
    let home = Home {
        root: root.to_owned(),
        is_default: true,
        owner_uid: None,
    };
    let look = Look {
        machine,
        depth: &depth,
        processes: &[],
    };
    adapter.scan(&look, &home)
}

#[test]
fn an_empty_or_missing_home_is_clean_and_stays_so() {
    check_all(|adapter| {
        let directory = tempfile::tempdir().unwrap();
        let machine = machine(directory.path());
        let empty = directory.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        let before = world::Tree::read(directory.path());
        let mut lack = Vec::new();
        for (root, what) in [
            (empty, "an empty"),
            (directory.path().join("none"), "a missing"),
        ] {
            for depth in [Depth::Live, Depth::All] {
                let found = scan(adapter, &machine, &root, depth);
                if !found.problems.is_empty()
                    || !found.found.sketches.is_empty()
                    || !found.found.claims.is_empty()
                {
                    lack.push(format!("{what} home is not clean: {found:?}"));
                }
            }
        }
        if !before
            .changed(&world::Tree::read(directory.path()))
            .is_empty()
        {
            lack.push("it makes or changes files".to_owned());
        }
        lack
    });
}

#[test]
fn a_home_that_is_a_file_is_told_or_ignored_and_never_a_session() {
    check_all(|adapter| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "not a directory").unwrap();
        let machine = machine(directory.path());
        let found =
            [Depth::Live, Depth::All].map(|depth| scan(adapter, &machine, &file, depth).found);
        let is_nothing = found
            .iter()
            .all(|scan| scan.claims.is_empty() && scan.sketches.is_empty());
        lacks([(is_nothing, "it finds sessions in a file")])
    });
}

#[test]
fn every_home_has_something_worth_watching_and_all_of_it_is_below_a_users_home() {
    check_all(|adapter| {
        let home = Home {
            root: Path::new("/home/dev").join(adapter.profile().default_home),
            is_default: true,
            owner_uid: None,
        };
        let paths = adapter.watch_paths(&home);
        let is_below = paths
            .iter()
            .all(|watched| watched.path.starts_with("/home/dev"));
        lacks([
            (!paths.is_empty(), "it names no path to watch"),
            (is_below, "it watches outside of its home"),
        ])
    });
}

fn key(adapter: &dyn Adapter, session: &str) -> SessionKey {
    SessionKey {
        agent: id_of(adapter),
        session: SessionId::parse(session).unwrap(),
        home: PathBuf::from("/elsewhere/its"),
    }
}

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

#[test]
fn an_ended_session_can_be_resumed_by_its_id_in_its_own_home() {
    check_all(|adapter| {
        let variables = adapter.profile().home_variables;
        let moved = variables.first().map(|name| [(*name, "/elsewhere/its")]);
        let moved = moved.and_then(|moved| adapter.homes(&environment(&moved)).into_iter().next());
        let mut key = key(adapter, ID);
        key.home = moved.unwrap_or(key.home);
        let sketch = Sketch::new(key.clone());
        let Some(in_default) = adapter.resume(&sketch, true) else {
            return vec!["it does not say how a session is resumed".to_owned()];
        };
        let Some(elsewhere) = adapter.resume(&sketch, false) else {
            return vec!["it does not say how a session of another home is resumed".to_owned()];
        };
        let names_it = in_default.argv.iter().any(|arg| arg.contains(ID));
        let needed: Vec<(&str, &str)> = elsewhere
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let is_moved = adapter.homes(&environment(&needed)).contains(&key.home);
        lacks([
            (names_it, "the command to resume does not name the session"),
            (
                in_default.environment.is_empty(),
                "the default home needs variables",
            ),
            (
                variables.is_empty() || is_moved,
                "a session of another home is resumed in the default one",
            ),
        ])
    });
}

#[test]
fn a_sketch_that_leads_nowhere_is_described_as_nothing() {
    check_all(|adapter| {
        let directory = tempfile::tempdir().unwrap();
        let machine = machine(directory.path());
        let mut sketch = Sketch::new(SessionKey {
            home: directory.path().to_owned(),
            ..key(adapter, ID)
        });
        let look = Look {
            machine: &machine,
            depth: &Depth::Live,
            processes: &[],
        };
        let without = adapter.describe(&look, &sketch);
        let without_messages = adapter.messages(&machine, &sketch, 5).found;
        sketch.transcript = Some(directory.path().join("gone.jsonl"));
        let gone = adapter.describe(&look, &sketch);
        adapter.messages(&machine, &sketch, 5);
        lacks([
            (
                without.found.title.is_none() && without_messages.is_empty(),
                "it invents what a session said",
            ),
            (
                without.problems.is_empty(),
                "a session without a transcript is a problem",
            ),
            (
                gone.found.title.is_none(),
                "it invents what a transcript that is gone said",
            ),
        ])
    });
}

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
            for session in answer["sessions"].as_array().unwrap().iter().filter(its) {
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
        .all(|key| key.agent == agent && key.home == root);
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
        .all(|sketch| sketch.pairing == PairingRule::Never);
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
            "a sub-agent is paired with processes",
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
