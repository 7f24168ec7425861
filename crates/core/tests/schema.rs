//! The checked-in schemas say what is written, and nothing else.

mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whosup_core::adapter::phase::{Phase, WaitingFor};
use whosup_core::judging::verdict::{
    Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause, Verdict,
};
use whosup_core::sources::record::{Heard, Owners, RecordedOwner, SessionRecord, parse_record};
use whosup_core::views::wire::{
    WireContext, WireCost, WireProcessResources, WireResources, WireTreeResources, WireTurn,
    WireUsage, WireWaitingOn,
};
use whosup_process::{BootId, Pid, PidNamespace, StartStamp};
use whosup_sidecar::{AgentId, SessionId};
use world::wire_schema::{bundled, checked_in, strict};
use world::{Defaults, WorldFile, stated};

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn check_valid(validator: &jsonschema::Validator, value: &Value, what: &str) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}

/// The whole answers of all fixtures, by the names of their folders.
fn expected_answers() -> Vec<(String, Value)> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let agents = folders(&manifest_dir().join("tests/fixtures"));
    let cases = agents.iter().flat_map(|agent| folders(agent));
    let mut answers: Vec<_> = cases
        .map(|case| {
            let defaults = Defaults::of(&WorldFile::read(&case));
            let answer = defaults.fill(stated(&case));
            (case.display().to_string(), answer)
        })
        .collect();
    answers.sort_by(|(one, _), (other, _)| one.cmp(other));
    answers
}

#[test]
fn every_expected_answer_is_valid() {
    let validator = jsonschema::validator_for(&strict("list", &[])).unwrap();
    let answers = expected_answers();
    assert!(answers.len() > 10, "only {} answers", answers.len());
    for (case, answer) in answers {
        check_valid(&validator, &answer, &case);
    }
}

#[test]
fn the_schema_refuses_what_is_not_written() {
    let validator = jsonschema::validator_for(&strict("list", &[])).unwrap();
    let (_, good) = expected_answers()
        .into_iter()
        .find(|(_, answer)| answer["sessions"].get(0).is_some())
        .expect("a fixture with a session");
    assert!(validator.is_valid(&good));
    for (pointer, value) in [
        ("/sessions/0/liveness", json!("dead")),
        ("/sessions/0/reason", json!("because")),
        ("/sessions/0/orphan", json!(null)),
        ("/sessions/0/session_id", json!("")),
        ("/schema_version", json!(2)),
        ("/taken_at", json!(0)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
    let open = jsonschema::validator_for(&bundled("list")).unwrap();
    let mut newer = good.clone();
    newer["sessions"][0]["mood"] = json!("fine");
    assert!(!validator.is_valid(&newer), "an undocumented field");
    assert!(
        open.is_valid(&newer),
        "what is checked in is open for new fields"
    );
    let mut lacking = good;
    let session = lacking["sessions"][0].as_object_mut().unwrap();
    session.remove("usage").unwrap();
    assert!(!validator.is_valid(&lacking), "a field that is not written");
}

/// What no look fills in yet has the shape that the schema gives it.
#[test]
fn what_is_null_for_now_has_the_shape_of_its_schema() {
    let usage = WireUsage {
        input_tokens: Some(1),
        cached_input_tokens: Some(0),
        cache_write_tokens: Some(0),
        output_tokens: Some(2),
        reasoning_tokens: None,
        cost: Some(WireCost {
            amount: 0.01,
            currency: "USD",
            source: "agent",
        }),
        tokens_without_price: 0,
    };
    let resources = WireResources {
        shared: false,
        owner: Some(WireProcessResources {
            cpu_percent: None,
            cpu_seconds: Some(12.5),
            rss_bytes: Some(123_456_789),
            pss_bytes: None,
            read_bytes: None,
            write_bytes: None,
            threads: Some(12),
        }),
        tree: Some(WireTreeResources {
            processes: 4,
            cpu_percent: None,
            cpu_seconds: Some(20.1),
            rss_bytes: None,
        }),
    };
    let context = WireContext {
        tokens: 51_234,
        window: Some(200_000),
        percent: Some(25.6),
        window_assumed: false,
    };
    let turn = WireTurn {
        started_at: None,
        output_tokens: Some(1_200),
    };
    let waiting_on = WireWaitingOn {
        tool: Some("Bash"),
        text: Some("rm -rf build"),
    };
    let fields = json!({
        "usage": usage, "resources": resources, "context": context, "turn": turn,
        "waiting_on": waiting_on,
    });
    let (_, mut answer) = expected_answers()
        .into_iter()
        .find(|(_, answer)| answer["sessions"].get(0).is_some())
        .expect("a fixture with a session");
    for (name, value) in fields.as_object().unwrap() {
        answer["sessions"][0][name] = value.clone();
    }
    let validator = jsonschema::validator_for(&strict("list", &[])).unwrap();
    check_valid(
        &validator,
        &answer,
        "a session of which everything is known",
    );
}

/// Every reason there is.
fn every_verdict() -> Vec<Verdict> {
    let live = LiveBecause::ALL.map(|because| Verdict::Live(because, Confidence::Proven));
    let exited = ExitedBecause::ALL.map(Verdict::Exited);
    let unknown = [
        UnknownBecause::ProcNotOurs,
        UnknownBecause::UntrustedClaim,
        UnknownBecause::OtherHost,
        UnknownBecause::OtherPidNamespace,
        UnknownBecause::Ambiguous,
        UnknownBecause::ProbeFailed,
        UnknownBecause::Hidden,
        UnknownBecause::IncompleteView,
        UnknownBecause::Unreadable,
        UnknownBecause::OtherTimeNamespace,
        UnknownBecause::ProgramChanged,
        UnknownBecause::BootNotKnown,
        UnknownBecause::YoungerThanClaim,
        UnknownBecause::UnrecognizedProgram,
        UnknownBecause::BarePid,
        UnknownBecause::MayBeServedBy(Pid::own()),
        UnknownBecause::HeldByOther,
        UnknownBecause::OwnerNotFound,
        UnknownBecause::Parent,
    ];
    assert_eq!(unknown.map(UnknownBecause::name), UnknownBecause::NAMES);
    let unknown = unknown.map(Verdict::Unknown);
    live.into_iter().chain(exited).chain(unknown).collect()
}

#[test]
fn the_schema_names_every_word_that_is_written() {
    let schema = checked_in("common.v1.schema.json");
    let words = |pointer: &str| -> BTreeSet<String> {
        let list = schema
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{pointer}"));
        let words = list.as_array().unwrap().iter();
        words
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let reasons: BTreeSet<String> = every_verdict()
        .into_iter()
        .map(|verdict| verdict.reason().to_owned())
        .collect();
    assert_eq!(words("/$defs/reason/enum"), reasons);
    let liveness: BTreeSet<String> = names(&Liveness::ALL.map(Liveness::name));
    assert_eq!(words("/$defs/liveness/enum"), liveness);
    let phases: BTreeSet<String> = names(&Phase::ALL.map(Phase::name));
    assert_eq!(words("/$defs/session/properties/phase/enum"), phases);
    let waits: BTreeSet<String> = names(&WaitingFor::ALL.map(WaitingFor::name));
    assert_eq!(words("/$defs/session/properties/waiting_for/enum"), waits);
}

#[test]
fn every_verdict_has_a_sentence_of_its_own() {
    let sentences: BTreeSet<String> = every_verdict()
        .into_iter()
        .map(whosup_core::views::explain::sentence)
        .collect();
    assert_eq!(sentences.len(), every_verdict().len());
}

#[test]
fn a_written_record_is_valid_and_reads_as_it_was() {
    let validator = jsonschema::validator_for(&checked_in("record.v1.schema.json")).unwrap();
    let owner = RecordedOwner {
        pid: Pid::new(4711).unwrap(),
        stamp: Some(StartStamp::LinuxTicks(8123)),
        host: Some("devbox".to_owned()),
        boot: BootId::parse("19c1d8ff-a55f-47c0-82a1-b0f1bc43623a"),
        pid_namespace: Some(PidNamespace::INITIAL),
        executable: None,
        is_shared: true,
        is_unrecognized: true,
    };
    for owner in [None, Some(owner)] {
        let record = SessionRecord {
            agent: AgentId::parse("codex").unwrap(),
            session: SessionId::parse("s1").unwrap(),
            home: PathBuf::from("/home/dev/.codex"),
            owners: owner.clone().map_or_else(Owners::default, |owner| {
                Owners::of_one(owner, (1_795_812_774_007, 1_795_812_846_391), None)
            }),
            owner,
            phase: Phase::Idle,
            waiting_for: None,
            last_event_at_ms: 1_795_812_846_391,
            started_at_ms: None,
            ended_at_ms: None,
            work_dir: None,
            git_branch: None,
            transcript: None,
            parent: None,
            heard: Heard::default(),
        };
        let written = record.to_json();
        check_valid(&validator, &written, "record");
        assert_eq!(parse_record(written.to_string().as_bytes()), Ok(record));
    }
    assert!(!validator.is_valid(&json!({ "schema_version": 1 })));
}
