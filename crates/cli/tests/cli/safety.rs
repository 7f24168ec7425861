//! Files that other users may have planted, and text that would steer a terminal.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::sandboxes::is_root;
use super::shell_agent::{event, file_of};
use super::world::{Said, World, said};

/// Far more than a command takes, far less than a FIFO would block.
const TIME_MAX: Duration = Duration::from_secs(30);
/// A process that is not ours.
const ANOTHER: u32 = 12_345;
/// Characters that must never reach a terminal unescaped.
const STEERING: &str = "\u{1b}[2J\u{7f}\u{85}\u{9b}\u{202e}\u{2066}\u{200b}";

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a hook with an event of a session.
fn run_hook(world: &World, session: &str, name: &str) -> Said {
    let hook_event = event(world, session, name, json!({"source": "startup"}));
    let began = Instant::now();
    let answer = said(
        world
            .whosup()
            .args(["hook", "claude-code"])
            .write_stdin(hook_event.to_string()),
    );
    assert!(began.elapsed() < TIME_MAX, "{:?}", began.elapsed());
    answer
}

/// What can be planted at a path: a link to a file, to nothing, or to a directory, or a FIFO.
const PLANTED: [fn(&Path, &World); 4] = [
    |at, world| symlink(prey(world), at).unwrap(),
    |at, world| symlink(world.root().join("nothing"), at).unwrap(),
    |at, world| symlink(prey(world).parent().unwrap(), at).unwrap(),
    |at, _| make_fifo(at),
];

fn prey(world: &World) -> PathBuf {
    world.root().join("prey/file")
}

fn make_prey(world: &World) {
    std::fs::create_dir(prey(world).parent().unwrap()).unwrap();
    std::fs::write(prey(world), "mine").unwrap();
}

#[track_caller]
fn check_prey(world: &World) {
    assert_eq!(std::fs::read_to_string(prey(world)).unwrap(), "mine");
    let beside = std::fs::read_dir(prey(world).parent().unwrap()).unwrap();
    assert_eq!(beside.count(), 1);
    assert!(!world.root().join("nothing").exists());
}

#[test]
fn files_planted_beside_records_neither_harm_nor_block() {
    for plant in PLANTED {
        for extension in ["jsonl", "lock", "json", "new", "old"] {
            let world = World::new();
            make_prey(&world);
            let path = file_of(&world, &world.s1, extension);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            plant(&path, &world);
            for name in ["SessionStart", "Stop", "SessionEnd"] {
                let answer = run_hook(&world, &world.s1, name);
                assert_eq!(answer.out, "", "{extension}");
            }
            world.run(["sweep"]);
            world.run(["dismiss", world.s1.as_str()]);
            check_prey(&world);
            // Other sessions are not affected.
            run_hook(&world, &world.s2, "SessionStart");
            let other = file_of(&world, &world.s2, "json");
            assert!(other.is_file(), "{extension}");
        }
    }
}

#[test]
fn what_is_planted_in_place_of_a_manual_page_is_not_followed() {
    for plant in PLANTED {
        let world = World::new();
        make_prey(&world);
        let page = world.write("man1/whosup-list.1", "");
        std::fs::remove_file(&page).unwrap();
        plant(&page, &world);
        // The second time the pages are there.
        for _ in 0..2 {
            let said = world.run(["man".as_ref(), page.parent().unwrap().as_os_str()]);
            assert_eq!(said.status, 0, "{}", said.err);
            check_prey(&world);
            assert!(page.symlink_metadata().unwrap().is_file());
            assert!(std::fs::read_to_string(&page).unwrap().contains(".TH"));
        }
    }
}

#[test]
fn files_planted_in_place_of_the_log_of_hooks_do_no_harm() {
    for plant in PLANTED {
        for name in ["hook.log", "hook.log.old", "sessions/claude-code"] {
            let world = World::new();
            make_prey(&world);
            let path = world.home().join(".local/state/whosup").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            plant(&path, &world);
            // No valid event: that goes to the log.
            let answer = said(
                world
                    .whosup()
                    .args(["hook", "claude-code"])
                    .write_stdin("{"),
            );
            assert_eq!(answer.out, "", "{name}");
            if name != "sessions/claude-code" {
                check_prey(&world);
            }
        }
    }
}

#[test]
fn what_is_planted_beside_settings_harms_nothing() {
    for plant in PLANTED {
        let world = World::new();
        make_prey(&world);
        let settings = world.write(".claude/settings.json", "{}\n");
        for name in ["settings.json.whosup~", "settings.json.tmp"] {
            plant(&settings.with_file_name(name), &world);
        }
        for how in ["install", "uninstall"] {
            let answer = world.run(["hooks", how, "claude-code", "--yes"]);
            assert_eq!(answer.status, 0, "{}", answer.err);
            let text = std::fs::read_to_string(&settings).unwrap();
            assert_eq!(text.contains("hook claude-code"), how == "install");
        }
        check_prey(&world);
    }
}

#[test]
fn a_world_writable_state_directory_is_refused_and_named() {
    for below in ["", "whosup", "whosup/hooks"] {
        let world = World::new();
        world.write(".claude/settings.json", "{}\n");
        let state = world.home().join(".local/state");
        let open = state.join(below);
        std::fs::create_dir_all(&open).unwrap();
        set_mode(&open, 0o777);
        let answer = world.run(["hooks", "install", "claude-code", "--yes"]);
        assert_eq!(answer.status, 2, "{below}: {}", answer.out);
        let named = format!(
            "everybody may write `{}`",
            open.display().to_string().trim_end_matches('/')
        );
        assert!(answer.err.contains(&named), "{below}: {}", answer.err);
        let settings = world.home().join(".claude/settings.json");
        assert_eq!(std::fs::read_to_string(settings).unwrap(), "{}\n");
        set_mode(&open, 0o755);
        let answer = world.run(["hooks", "install", "claude-code", "--yes"]);
        assert_eq!(answer.status, 0, "{below}: {}", answer.err);
    }
}

/// Every path below a directory, the directory included.
fn walk(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn root_in_a_user_s_home_overwrites_nothing_of_root_s_and_leaves_nothing_there() {
    if !is_root() {
        eprintln!("skipped: only root can be root in another user's home");
        return;
    }
    let world = World::new();
    make_prey(&world);
    std::fs::write(prey(&world), "{}\n").unwrap();
    let linked = world.write(".claude/settings.json", "{}\n");
    std::fs::remove_file(&linked).unwrap();
    symlink(prey(&world), &linked).unwrap();
    let give_home = || {
        for path in walk(&world.home()) {
            lchown(&path, Some(ANOTHER), Some(ANOTHER)).unwrap();
        }
    };
    give_home();
    let refuses = |more: &[&str]| {
        let mut command = world.whosup();
        command.args(["hooks", "install", "claude-code", "--yes"]);
        for state in more {
            command.env("XDG_STATE_HOME", state);
        }
        let answer = said(&mut command);
        assert_eq!(answer.status, 2, "{}", answer.out);
        assert!(answer.err.contains("belongs to user"), "{}", answer.err);
        assert_eq!(std::fs::read_to_string(prey(&world)).unwrap(), "{}\n");
        assert_eq!(std::fs::metadata(prey(&world)).unwrap().uid(), 0);
        for path in walk(&world.home()) {
            let owner = std::fs::symlink_metadata(&path).unwrap().uid();
            assert_eq!(owner, ANOTHER, "{}", path.display());
        }
    };
    // The state directory would be made in that user's home.
    refuses(&[]);
    assert_eq!(run_hook(&world, &world.s1, "SessionStart").out, "");
    // With a state directory of root's own, the link makes it fail.
    let own = world.root().join("state");
    let own = own.to_str().unwrap();
    refuses(&[own]);
    // Settings of that user stay that user's.
    std::fs::remove_file(&linked).unwrap();
    std::fs::write(&linked, "{}\n").unwrap();
    give_home();
    let mut command = world.whosup();
    command
        .args(["hooks", "install", "claude-code", "--yes"])
        .env("XDG_STATE_HOME", own);
    let answer = said(&mut command);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let facts = std::fs::metadata(&linked).unwrap();
    assert_eq!((facts.uid(), facts.gid()), (ANOTHER, ANOTHER));
    assert!(std::fs::read_to_string(&linked).unwrap().contains("hook"));
}

#[test]
fn a_state_directory_of_another_user_is_refused_and_named() {
    if !is_root() {
        eprintln!("skipped: only root can give a directory to another user");
        return;
    }
    let world = World::new();
    world.write(".claude/settings.json", "{}\n");
    let whosup = world.home().join(".local/state/whosup");
    std::fs::create_dir_all(&whosup).unwrap();
    chown(&whosup, Some(ANOTHER), None).unwrap();
    let answer = world.run(["hooks", "install", "claude-code", "--yes"]);
    assert_eq!(answer.status, 2, "{}", answer.out);
    let named = format!("`{}` belongs to user {ANOTHER}", whosup.display());
    assert!(answer.err.contains(&named), "{}", answer.err);
    assert_eq!(run_hook(&world, &world.s1, "SessionStart").out, "");
    assert_eq!(walk(&whosup).len(), 1);
}

#[test]
fn an_event_of_a_session_that_is_called_like_an_option_is_refused() {
    let world = World::new();
    run_hook(&world, "--yolo", "SessionStart");
    let log = world.home().join(".local/state/whosup/hook.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("must not begin with a hyphen"), "{log}");
    assert!(!file_of(&world, "--yolo", "jsonl").exists());
}

/// Settings whose hooks run a program.
fn write_settings(world: &World, program: &str) {
    let hook = json!([{ "hooks": [{
        "type": "command",
        "command": format!("{program} hook claude-code"),
    }] }]);
    let settings = json!({ "hooks": { "Stop": hook } });
    world.write(".claude/settings.json", settings.to_string());
}

#[test]
fn doctor_runs_no_program_that_another_user_may_have_put_there() {
    let world = World::new();
    let ran = world.root().join("ran");
    let script = format!("#!/bin/sh\n: > '{}'\necho whosup 0.0.1\n", ran.display());
    let put = |directory: &Path, mode: u32| {
        std::fs::create_dir_all(directory).unwrap();
        let program = directory.join("whosup");
        std::fs::write(&program, &script).unwrap();
        set_mode(&program, 0o755);
        set_mode(directory, mode);
        program
    };
    put(&world.work_dir(), 0o755);
    let beside = put(&world.work_dir().join("bin"), 0o755);
    let open = put(&world.root().join("open"), 0o777);
    let sticky = put(&world.root().join("sticky"), 0o1777);
    let below = put(&world.root().join("open/deep"), 0o755);
    symlink(&open, world.root().join("link-whosup")).unwrap();
    let link = world.root().join("link-whosup").display().to_string();
    for program in ["./whosup", "bin/whosup", "../shop/whosup"] {
        write_settings(&world, program);
        let answer = world.run(["doctor"]);
        let expected = format!(
            "hooks of claude-code run `{program}`, which is not looked at: a relative path"
        );
        assert!(answer.out.contains(&expected), "{}", answer.out);
        assert!(!ran.exists(), "{program}");
    }
    for program in [&open, &sticky, &below] {
        write_settings(&world, &program.display().to_string());
        let answer = world.run(["doctor"]);
        assert!(
            answer
                .out
                .contains("which is not run: everybody may write `"),
            "{}",
            answer.out
        );
        assert!(!ran.exists(), "{}", program.display());
    }
    write_settings(&world, &link);
    world.run(["doctor"]);
    assert!(!ran.exists(), "{link}");
    // A name is searched on the search path, but not in relative parts of it.
    write_settings(&world, "whosup");
    let mut command = world.whosup();
    command.arg("doctor").env("PATH", ".:bin::/nowhere");
    let answer = said(&mut command);
    assert!(
        answer.out.contains("which is not on `PATH`"),
        "{}",
        answer.out
    );
    assert!(!ran.exists());
    // A program in a place that only its owner can write is run.
    write_settings(&world, &beside.display().to_string());
    let answer = world.run(["doctor"]);
    assert!(
        answer.out.contains("which is older: 0.0.1"),
        "{}",
        answer.out
    );
    assert!(ran.exists());
}

#[track_caller]
fn check_steers_nothing(text: &str, what: &str) {
    let steers = |c: char| STEERING.contains(c) && !"[2J".contains(c);
    assert!(!text.contains(steers), "{what}: {text:?}");
}

#[test]
fn json_never_steers_a_terminal_and_says_the_same() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    let folder = world.work_dir().display().to_string().replace('/', "-");
    let prompt = format!("a{STEERING}b");
    let line = json!({
        "type": "user",
        "sessionId": world.s1,
        "cwd": world.work_dir(),
        "timestamp": "2026-11-27T20:53:23.000Z",
        "uuid": "1",
        "version": "2.1.197",
        "message": { "role": "user", "content": prompt },
    });
    let name = format!(".claude/projects/{folder}/{}.jsonl", world.s1);
    world.write(&name, format!("{line}\n"));
    let id = world.s1.as_str();
    for arguments in [
        &["list", "--json"][..],
        &["list", "--all", "--json"],
        &["list", "--ndjson"],
        &["show", "--json", id],
        &["why", "--json", id],
    ] {
        let answer = world.run(arguments);
        assert_eq!(answer.status, 0, "{arguments:?}: {}", answer.err);
        check_steers_nothing(&answer.out, &arguments.join(" "));
        let title = answer
            .out
            .lines()
            .find(|line| line.contains("\"title\"") && line.contains("\\u009b"))
            .unwrap_or_else(|| panic!("{arguments:?}: {}", answer.out));
        assert!(
            title.contains("\\u007f") && title.contains("\\u202e"),
            "{title}"
        );
    }
    let rows = world.run(["list", "--json"]).sessions();
    let row = rows.iter().find(|row| row["session_id"] == id).unwrap();
    let title = row["title"].as_str().unwrap();
    assert!(
        title.contains('\u{9b}') && title.contains('\u{202e}'),
        "{title:?}"
    );
}

#[test]
fn a_usage_error_never_steers_a_terminal() {
    let world = World::new();
    let odd = |before: &str| format!("{before}{STEERING}\u{1b}]0;title\u{7}");
    for arguments in [
        vec![odd("--colour")],
        vec![odd("lst")],
        vec!["list".to_owned(), odd("--limit=")],
        vec!["list".to_owned(), "--liveness".to_owned(), odd("live")],
        vec!["list".to_owned(), "--color".to_owned(), odd("")],
        vec!["list".to_owned(), "--agent".to_owned(), odd("codex")],
        vec!["list".to_owned(), odd("surplus")],
        vec![
            "run".to_owned(),
            "--id".to_owned(),
            odd("x"),
            "--".to_owned(),
            "true".to_owned(),
        ],
        vec!["show".to_owned(), odd("x")],
    ] {
        for colour in ["never", "always"] {
            let mut command = world.whosup();
            command.args(&arguments).env("CLICOLOR_FORCE", "1");
            if colour == "never" {
                command.env("NO_COLOR", "1");
            }
            let answer = said(&mut command);
            assert_eq!(answer.status, 2, "{arguments:?}: {}", answer.err);
            assert_eq!(answer.out, "");
            check_steers_nothing(&answer.err, &format!("{arguments:?}"));
            assert!(
                answer.err.contains("\\u{202e}"),
                "{arguments:?}: {}",
                answer.err
            );
        }
    }
}
