//! The vectors of the sidecar's conformance kit, by our own reader.

#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod vector;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vector::{World, list};
use whosup_core::adapter::claim::Subject;
use whosup_core::judging::observe::Observer;
use whosup_core::sources::common_place::scan_common_place;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors")
}

/// What our reader says: verdict, reason and confidence.
fn answer(vector: &Value) -> Option<(String, Option<String>, Option<String>)> {
    let world = World::of(vector)?;
    let machine = world.machine();
    let found = scan_common_place(&machine, |_| true);
    let claims = &found.found.scan.claims;
    if !found.problems.is_empty() {
        // What can't be read shows nothing, and may be about any process.
        let mut subjects = claims.iter().map(|claim| &claim.subject);
        assert!(subjects.all(|subject| *subject == Subject::Unreadable));
        return Some(("problem".to_owned(), None, None));
    }
    let [claim] = claims.as_slice() else {
        panic!("{} claims", claims.len());
    };
    let verdict = Observer::new(&machine, claims.iter().map(|claim| &**claim))
        .judge(claim)
        .verdict;
    let confidence = verdict.confidence().map(|it| it.name().to_owned());
    let reason = Some(verdict.reason().to_owned());
    Some((verdict.liveness().name().to_owned(), reason, confidence))
}

/// What our reader's list says.
fn listed(vector: &Value) -> Option<(String, Option<String>, Option<String>)> {
    let list = list(&World::of(vector)?.machine());
    let sessions = list["sessions"].as_array().unwrap();
    let Some(session) = sessions.first() else {
        assert_ne!(list["problems"], json!([]));
        return Some(("problem".to_owned(), None, None));
    };
    let field = |key: &str| session[key].as_str().map(str::to_owned);
    Some((field("liveness")?, field("reason"), field("confidence")))
}

/// What an answer says: verdict, reason and confidence; `None` if the file of
/// the vector can't be made here.
type Answer = fn(&Value) -> Option<(String, Option<String>, Option<String>)>;

#[test]
fn our_judge_gives_the_right_verdict_for_every_vector() {
    check_all(answer);
}

#[test]
fn our_list_gives_the_right_verdict_for_every_vector() {
    check_all(listed);
}

#[track_caller]
fn check_all(answer: Answer) {
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut files: Vec<_> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let parsed: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for vector in parsed["vectors"].as_array().unwrap() {
            let name = vector["name"].as_str().unwrap();
            let Some((verdict, reason, confidence)) = answer(vector) else {
                eprintln!("skipped: only root can give a file away: {name}");
                continue;
            };
            seen += 1;
            let expect = &vector["expect"];
            let is_right = expect["verdict"] == *verdict
                && expect["reason"].as_str() == reason.as_deref()
                && expect["confidence"].as_str() == confidence.as_deref();
            if !is_right {
                wrong.push(format!(
                    "{name}: {verdict} {reason:?} {confidence:?}, not {expect}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen >= 60, "only {seen} vectors");
}
