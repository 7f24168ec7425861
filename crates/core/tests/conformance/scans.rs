//! Homes without sessions, and sessions without files.

use super::*;

fn machine(home: &Path) -> Machine {
    Machine::new(
        Environment::new(Some(home.to_owned()), Some(home.to_owned()), []),
        1_795_813_800_000,
        ProcessTable::look(Arc::new(Recorded::initial())),
        Mounts::parse(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
        Arc::new(NoCommands),
    )
}

pub(super) fn scan(
    adapter: &dyn Adapter,
    machine: &Machine,
    root: &Path,
    depth: Depth,
) -> Found<AgentScan> {
    let home = Home {
        root: root.to_owned().into(),
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
            root: Path::new("/home/dev")
                .join(adapter.profile().default_home)
                .into(),
            is_default: true,
            owner_uid: None,
        };
        let paths = adapter.watch_paths(&machine(Path::new("/home/dev")), &home);
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
        home: PathBuf::from("/elsewhere/its").into(),
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
        key.home = moved.map_or(key.home, Into::into);
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
        let is_moved = adapter
            .homes(&environment(&needed))
            .iter()
            .any(|home| **home == *key.home);
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
        let mut sketch = Sketch::new(SessionKey {
            home: directory.path().to_owned().into(),
            ..key(adapter, ID)
        });
        let without = adapter.describe(&sketch);
        let without_messages = adapter.messages(&sketch, 5).found;
        sketch.transcript = Some(directory.path().join("gone.jsonl"));
        let gone = adapter.describe(&sketch);
        adapter.messages(&sketch, 5);
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
