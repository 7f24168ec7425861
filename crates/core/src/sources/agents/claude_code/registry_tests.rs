use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const RECORD: &str = r#"{"pid":7,"sessionId":"0a022b20-e8f2-410e-9552-8385582a8e8b"}"#;

fn home(directory: &Path) -> Home {
    fs::create_dir_all(directory.join("sessions")).unwrap();
    Home {
        root: directory.to_owned().into(),
        is_default: true,
        owner_uid: None,
    }
}

#[track_caller]
fn check_problem(name: &str, content: &str, right: &str) {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    fs::write(folder(&home).join(name), content).unwrap();
    let found = read(&home);
    assert!(found.found.is_empty(), "{name}");
    let messages: Vec<_> = found
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(messages, [right], "{name}");
    assert_eq!(found.problems[0].path, Some(folder(&home).join(name)));
}

/// Releases add files beside the records, as 2.1.332 does a key for each.
#[test]
fn a_file_of_another_name_is_no_problem() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    for name in [
        "7.0f343b0931126a20f133d67c2b018a3b.key",
        "x.json.tmp.24420.ab12",
        ".24420.json.swp",
        ".fleetview-heartbeat",
        "2026-planning-notes.json",
        "7.json.bak",
        "-7.json",
        "pid-7.json",
        "0.json",
        "07.json",
        ".json",
        "99999999999.json",
    ] {
        fs::write(folder(&home).join(name), RECORD).unwrap();
    }
    let found = read(&home);
    assert!(found.found.is_empty() && found.problems.is_empty());
}

#[test]
fn a_record_that_can_not_be_read_is_reported_and_ignored() {
    check_problem(
        "8.json",
        RECORD,
        "`pid` is 7, but the file is named after 8",
    );
    check_problem("9.json", "", "it is empty (read 4 times)");
}

#[test]
fn a_record_that_stays_cut_off_is_reported_after_a_few_reads() {
    let cut = RECORD.get(..20).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    fs::write(folder(&home).join("7.json"), cut).unwrap();
    fs::write(folder(&home).join("8.json"), RECORD.replace("7", "8")).unwrap();
    let found = read(&home);
    assert_eq!(found.found.len(), 1);
    assert!(found.problems[0].message.ends_with("(read 4 times)"));
}

#[test]
fn a_record_that_is_being_written_is_read_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let path = folder(&home).join("7.json");
    fs::write(&path, RECORD).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        // As Claude Code does: truncate, then write.
        threads.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let mut file = fs::File::create(&path).unwrap();
                file.write_all(RECORD.as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let reads = (0..200).filter(|_| read(&home).found.len() == 1).count();
        is_done.store(true, Ordering::Relaxed);
        // A writer that is stopped between its two steps may spoil some.
        assert!(reads >= 100, "{reads} of 200");
    });
}

#[test]
fn links_directories_and_pipes_are_told_and_hide_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let at = |name: &str| folder(&home).join(name);
    fs::write(at("7.json"), RECORD).unwrap();
    std::os::unix::fs::symlink(at("7.json"), at("8.json")).unwrap();
    fs::create_dir(at("9.json")).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("10.json"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    fs::File::create(at("11.json"))
        .unwrap()
        .set_len(200 << 20)
        .unwrap();
    fs::write(at("12.json"), "[".repeat(100_000)).unwrap();
    let found = read(&home);
    assert_eq!(found.found.len(), 1);
    let messages: Vec<_> = found
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            "it is a FIFO",
            "it is larger than 262144 bytes: it has at least 209715200",
            "its JSON is nested too deep",
            "it is a symbolic link",
            "it is a directory",
        ]
    );
}

#[test]
fn a_folder_of_broken_records_costs_no_more_than_a_few() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    for pid in 1..=200 {
        fs::write(folder(&home).join(format!("{pid}.json")), "").unwrap();
    }
    let found = read(&home);
    let again = |problem: &&Problem| problem.message.ends_with("(read 4 times)");
    assert_eq!(found.problems.len(), 200);
    assert_eq!(
        found.problems.iter().filter(again).count(),
        REREAD_RECORDS_MAX
    );
}

#[test]
fn a_home_without_a_registry_is_no_problem() {
    let directory = tempfile::tempdir().unwrap();
    let missing = Home {
        root: directory.path().join("none").into(),
        is_default: true,
        owner_uid: None,
    };
    assert!(read(&missing).problems.is_empty());
}
