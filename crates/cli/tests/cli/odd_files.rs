//! Anything may lie in the place of a small file.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::world::{World, said};

/// Far more than a scan takes, far less than reading such files would.
const LOOK_TIME_MAX: Duration = Duration::from_secs(10);

const HUGE_BYTES: u64 = 200 * 1024 * 1024;
const DEEP_LEVELS: usize = 200_000;

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn odd_files_are_problems_and_the_rest_is_shown() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let sessions = record.parent().unwrap();
    make_fifo(&sessions.join("2000000001.json"));
    symlink("/dev/zero", sessions.join("2000000002.json")).unwrap();
    std::fs::create_dir(sessions.join("2000000003.json")).unwrap();
    let huge = File::create(sessions.join("2000000004.json")).unwrap();
    huge.set_len(HUGE_BYTES).unwrap();
    let deep = "[".repeat(DEEP_LEVELS);
    std::fs::write(sessions.join("2000000005.json"), &deep[..200_000]).unwrap();
    std::fs::write(sessions.join("2000000006.json"), "").unwrap();
    std::fs::write(sessions.join("2000000007.json"), b"\xff\xfe{}").unwrap();

    for arguments in [
        &["list", "--json", "--cwd", "."][..],
        &["list", "--json", "--all", "--cwd", "."],
    ] {
        let began = Instant::now();
        let said = world.run(arguments);
        assert!(began.elapsed() < LOOK_TIME_MAX, "{:?}", began.elapsed());
        assert_eq!(said.status, 0, "{}", said.err);
        assert_eq!(said.sessions()[0]["session_id"], world.s1);
        let answer = said.json();
        let problems = answer["problems"].as_array().unwrap();
        for number in 1..=7 {
            let path = sessions.join(format!("200000000{number}.json"));
            let is_reported = problems
                .iter()
                .any(|one| one["path"] == path.to_str().unwrap());
            assert!(is_reported, "{}: {problems:?}", path.display());
        }
    }
    assert_eq!(world.run(["check", world.s1.as_str()]).status, 0);
}

/// Agents' registries fill with temporary files, and programs that removed them removed
/// files in use, too (claude-code#87677, claude-code#89565, claude-code#60146,
/// qwen-code#8969). A file with the name of a record that is no record is reported once,
/// a file with another name is no problem, and no command touches either.
#[test]
fn left_overs_of_agents_are_reported_once_and_left_where_they_are() {
    let world = World::new();
    let posing = world.pose_as_claude();
    let record = world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let sessions = record.parent().unwrap();
    let names_of_others = [
        "x.json.tmp.2000000001.ab12",
        ".2000000001.json.swp",
        ".sidecar-0123456789abcdef.tmp",
        "2026-planning-notes.json",
    ];
    let name_of_a_record = "2000000002.json";
    let old = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    for name in names_of_others.into_iter().chain([name_of_a_record]) {
        let file = File::create(sessions.join(name)).unwrap();
        file.set_modified(old).unwrap();
    }
    std::fs::create_dir(sessions.join("7.json")).unwrap();
    let facts = || {
        let entries = std::fs::read_dir(sessions).unwrap();
        let facts = entries.map(|entry| {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            (
                entry.file_name(),
                metadata.len(),
                metadata.modified().unwrap(),
            )
        });
        facts.collect::<std::collections::BTreeSet<_>>()
    };
    let before = facts();

    let said = world.run(["list", "--json", "--all", "--cwd", "."]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.sessions()[0]["session_id"], world.s1);
    let answer = said.json();
    let problems = answer["problems"].as_array().unwrap();
    let count_of = |name: &str| {
        let path = sessions.join(name);
        let of_it = problems
            .iter()
            .filter(|one| one["path"] == path.to_str().unwrap());
        of_it.count()
    };
    for name in [name_of_a_record, "7.json"] {
        assert_eq!(count_of(name), 1, "{name}: {problems:?}");
    }
    for name in names_of_others {
        assert_eq!(count_of(name), 0, "{name}: {problems:?}");
    }
    for command in ["sweep", "status", "doctor", "orphans", "list"] {
        world.run([command]);
    }
    assert_eq!(facts(), before);
    assert_eq!(world.run(["check", world.s1.as_str()]).status, 0);
}

#[test]
fn an_odd_configuration_fails_without_blocking() {
    let world = World::new();
    let path = world.write(".config/whosup/config.toml", "");
    std::fs::remove_file(&path).unwrap();
    make_fifo(&path);
    let began = Instant::now();
    let said = world.run(["list"]);
    assert!(began.elapsed() < LOOK_TIME_MAX);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("it is a FIFO"), "{}", said.err);
}

#[test]
fn a_command_that_goes_on_for_long_refuses_a_configuration_as_all_others_do() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let written = world.root().join("written");
    for text in [
        "\npromts = \"hide\"",
        "[list]\nsrt = \"age\"",
        "[colour]\nidle = \"purple\"",
    ] {
        world.write(".config/whosup/config.toml", text);
        for command in [
            &["list"][..],
            &["watch", "--ndjson"],
            &["wait", &world.s1, "--until", "idle", "--timeout", "1s"],
            &["serve", "--listen", "127.0.0.1:0"],
            &["run", "--", "touch", written.to_str().unwrap()],
        ] {
            let said = world.run(command);
            assert_eq!((said.status, said.out.as_str()), (2, ""), "{command:?}");
            let error = &said.err;
            assert!(
                error.contains("config.toml`, line 2: "),
                "{command:?} {error}"
            );
            assert!(error.contains("docs/config.md"), "{command:?} {error}");
        }
        assert!(!written.exists(), "{text}");
    }
}

#[test]
fn a_fifo_or_a_device_in_place_of_a_transcript_never_blocks() {
    let world = World::new();
    let transcript = world.write_claude_transcript(".claude", &world.s1);
    std::fs::remove_file(&transcript).unwrap();
    make_fifo(&transcript);
    let began = Instant::now();
    let said = world.run(["list", "--all", "--json"]);
    assert!(began.elapsed() < LOOK_TIME_MAX);
    assert_eq!(said.status, 0, "{}", said.err);
}

#[test]
fn without_an_absolute_home_it_is_said_that_the_usual_homes_are_not_looked_at() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let relative = |arguments: &[&str]| {
        let mut whosup = world.whosup();
        said(whosup.env("HOME", "dev").args(arguments))
    };
    let problems = relative(&["list", "--all", "--problems"]);
    assert!(
        problems.out.contains("`HOME` is no absolute path"),
        "{}",
        problems.out
    );
    assert_eq!(relative(&["check", &world.s1]).status, 3);
    assert_eq!(world.run(["check", &world.s1]).status, 1);
}
