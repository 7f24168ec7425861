//! Every fixture of every agent once more, after something has befallen its
//! processes, its files or its host that befell users of other tools: no
//! session may be called live, or exited, for it.
//!
//! `WHOSUP_FIXTURES=codex/` runs only the cases with that text in `AGENT/CASE`.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test makes its own world, and fails where that fails"
)]

mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use world::{DepthName, World, time_ms};

/// A session of an answer, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    liveness: String,
    reason: String,
    confidence: Option<String>,
    owner: Option<i64>,
    has_pane: bool,
    is_sub_agent: bool,
    has_transcript: bool,
}

/// The sessions of an answer by agent, id and home.
type Rows = BTreeMap<String, Row>;

fn rows(answer: &Value) -> Rows {
    let sessions = answer["sessions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    sessions
        .map(|one| {
            let key = [&one["agent"], &one["session_id"], &one["home"]].map(text);
            let row = Row {
                liveness: text(&one["liveness"]),
                reason: text(&one["reason"]),
                confidence: one["confidence"].as_str().map(str::to_owned),
                owner: one["owner"]["pid"].as_i64(),
                has_pane: !one["pane"].is_null(),
                is_sub_agent: !one["parent_session_id"].is_null(),
                has_transcript: !one["files"]["transcript"].is_null(),
            };
            (key.join(" "), row)
        })
        .collect()
}

impl Row {
    fn is_live(&self) -> bool {
        self.liveness == "live"
    }
}

/// A full walk of a fixture as it is, and after a change to its `world.json`.
struct Answers {
    /// Whoever looks has variables set, which may name another home.
    has_own_environment: bool,
    before: Rows,
    after: Rows,
    answer: Value,
}

/// Runs a check on every fixture that has a live session, and reports all that fail.
#[track_caller]
fn check_all(change: impl Fn(&mut Value), check: impl Fn(&Answers) -> Vec<String>) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let world = World::of_fixture(&case);
        let before = rows(&world.look(DepthName::All));
        if !before.values().any(Row::is_live) {
            continue;
        }
        let world = World::of_changed_fixture(&case, |world| change(world));
        let answer = world.look(DepthName::All);
        let answers = Answers {
            has_own_environment: !world.file().env.is_empty(),
            before,
            after: rows(&answer),
            answer,
        };
        checked += 1;
        for fault in check(&answers) {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(
        checked > 0,
        "no fixture with a live session is called `{wanted}`"
    );
    assert!(report.is_empty(), "of {checked} fixtures\n{report}");
}

/// Every folder `tests/fixtures/AGENT/CASE`, with its name.
fn cases() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    };
    let mut cases: Vec<_> = folders(&root).iter().flat_map(|one| folders(one)).collect();
    cases.sort();
    let name = |case: &PathBuf| case.strip_prefix(&root).unwrap().display().to_string();
    cases.into_iter().map(|case| (name(&case), case)).collect()
}

/// Changes every process of a world.
fn each_process(world: &mut Value, change: impl Fn(&mut Value)) {
    let processes = world["processes"].as_array_mut();
    processes.into_iter().flatten().for_each(change);
}

/// The PIDs of a world's processes, which are taken out of it.
fn take_processes(world: &mut Value) -> Value {
    let taken = world.as_object_mut().unwrap().remove("processes");
    let taken = taken.unwrap_or_else(|| json!([]));
    let pids = taken.as_array().unwrap().iter();
    pids.map(|process| process["pid"].clone()).collect()
}

fn set_view(world: &mut Value, changes: Value) {
    let mut view = world["view"].as_object().cloned().unwrap_or_default();
    view.extend(changes.as_object().unwrap().clone());
    world["view"] = Value::Object(view);
}

/// Moves a time of a world by some seconds.
fn shift(time: &mut Value, seconds: i64) {
    let moved = time_ms(time.as_str().unwrap()) + seconds * 1000;
    let moved = jiff::Timestamp::from_millisecond(moved).unwrap();
    *time = json!(moved.to_string());
}

/// Nothing is live, and nobody is there.
fn nobody_is_there(answers: &Answers) -> Vec<String> {
    let live = answers.after.iter().filter(|(_, row)| row.is_live());
    let mut faults: Vec<_> = live.map(|(key, row)| format!("{key}: {row:?}")).collect();
    let unattributed = answers.answer["unattributed"].as_array().unwrap();
    faults.extend(unattributed.iter().map(|one| format!("is there: {one}")));
    faults
}

/// Sessions that were live and are not listed, though their files are there.
/// Where to look may be known by the process alone: by its environment, which
/// names a home, or by its directory; sessions of such places go with it.
fn lost(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let lost = live.filter(|(key, row)| {
        let is_known_without = row.has_transcript && row.confidence.as_deref() != Some("inferred");
        let is_looked_at = key.ends_with(' ') && !answers.has_own_environment;
        is_known_without && is_looked_at && !answers.after.contains_key(*key)
    });
    lost.map(|(key, row)| format!("{key} is lost: {row:?}"))
        .collect()
}

/// What was live has not exited: it is live or unknown.
fn nothing_has_exited(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let exited = live.filter_map(|(key, before)| {
        let after = answers.after.get(key)?;
        // That an exclusive claim is dead counts, unless arguments say otherwise,
        // and those can't be seen any more.
        let is_dead_claim = before.reason == "arguments" && after.reason == "no-such-process";
        let has_exited = after.liveness == "exited" && !is_dead_claim;
        has_exited.then(|| format!("{key}: {before:?} became {after:?}"))
    });
    exited.chain(lost(answers)).collect()
}

/// What was live is so still, by the same process.
fn all_live_on(answers: &Answers) -> Vec<String> {
    let live = answers.before.iter().filter(|(_, row)| row.is_live());
    let changed = live.filter_map(|(key, before)| {
        let after = answers.after.get(key)?;
        let is_same = after.is_live() && after.owner == before.owner;
        (!is_same).then(|| format!("{key}: {before:?} became {after:?}"))
    });
    changed.chain(lost(answers)).collect()
}

/// Zombies were counted as running (local-operator#1025, procfs#2).
#[test]
fn processes_that_have_exited_and_were_not_reaped_serve_no_session() {
    let change = |world: &mut Value| {
        each_process(world, |process| {
            process["state"] = json!("Z");
            process["threads"] = json!(1);
            process["holds"] = json!([]);
        });
    };
    check_all(change, nobody_is_there);
}

/// A reused PID was taken for the session's process (sysinfo#1628).
#[test]
fn other_programs_with_the_pids_of_agents_serve_no_session() {
    let change = |world: &mut Value| {
        let now_ms = time_ms(world["now"].as_str().unwrap());
        each_process(world, |process| {
            let age_ms = now_ms - time_ms(process["began"].as_str().unwrap());
            let later_s = (age_ms / 1000 - 1).max(0);
            let start = process["start"].as_i64().unwrap() + later_s * 100;
            shift(&mut process["began"], later_s);
            *process = json!({
                "pid": process["pid"], "start": start + 1, "began": process["began"],
                "comm": "vim", "argv": ["vim", "notes.md"], "exe": "/usr/bin/vim",
                "env": {}, "holds": [],
            });
        });
    };
    check_all(change, nobody_is_there);
}

/// What could not be asked was read as dead (claude-code#74566, ggcode#799).
#[test]
fn processes_that_are_hidden_have_not_exited() {
    let change = |world: &mut Value| {
        world["hidden"] = take_processes(world);
        let view = json!({"hide_pid": "invisible", "is_everything_shown": false, "is_root": false});
        set_view(world, view);
    };
    check_all(change, nothing_has_exited);
}

/// The same, where processes are listed and can't be read.
#[test]
fn processes_that_can_not_be_read_have_not_exited() {
    let change = |world: &mut Value| {
        world["unreadable"] = take_processes(world);
        let view = json!({"hide_pid": "no-access", "is_everything_shown": false, "is_root": false});
        set_view(world, view);
    };
    check_all(change, nothing_has_exited);
}

/// The same for what another user's process tells: name and arguments.
#[test]
fn processes_that_refuse_to_be_looked_into_have_not_exited() {
    let change = |world: &mut Value| {
        set_view(world, json!({"is_root": false}));
        each_process(world, |process| {
            for field in ["exe", "cwd", "env", "holds"] {
                process[field] = Value::Null;
            }
        });
    };
    check_all(change, nothing_has_exited);
}

/// Entries that were filled in part were taken for other programs (sysinfo#805).
#[test]
fn processes_of_which_only_the_name_is_known_have_not_exited() {
    let change = |world: &mut Value| {
        set_view(world, json!({"is_root": false}));
        each_process(world, |process| {
            process.as_object_mut().unwrap().remove("title");
            for field in ["argv", "exe", "cwd", "env", "holds"] {
                process[field] = Value::Null;
            }
        });
    };
    check_all(change, nothing_has_exited);
}

/// A stopped process was taken for a dead one (herdr#700).
#[test]
fn stopped_processes_keep_their_sessions_and_panes() {
    let change = |world: &mut Value| {
        each_process(world, |process| {
            if process["state"] != json!("Z") {
                process["state"] = json!("T");
            }
        })
    };
    check_all(change, |answers| {
        let mut faults = all_live_on(answers);
        if answers.before != answers.after {
            faults.push("another answer".to_owned());
        }
        faults
    });
}

/// A process whose terminal was closed was called dead (happy#1693, claudecodeui#882,
/// cctop#18).
#[test]
fn processes_that_lost_their_terminals_live_on_in_no_pane() {
    const ABOVE: &[&str] = &["bash", "sh", "zsh", "fish", "tmux: server", "login", "sshd"];
    let change = |world: &mut Value| {
        world["panes"] = json!([]);
        let processes = world["processes"].as_array().cloned().unwrap_or_default();
        let is_above = |pid: &Value| {
            let its = processes.iter().find(|process| process["pid"] == *pid);
            its.is_none_or(|its| ABOVE.contains(&its["comm"].as_str().unwrap()))
        };
        each_process(world, |process| {
            if process.get("ppid").is_some_and(is_above) {
                process["ppid"] = json!(1);
            }
            process.as_object_mut().unwrap().remove("tty");
        });
    };
    check_all(change, |answers| {
        let mut faults = nothing_has_exited(answers);
        let in_panes = answers.after.iter().filter(|(_, row)| row.has_pane);
        faults.extend(in_panes.map(|(key, _)| format!("{key} is in a pane")));
        faults
    });
}

/// The name of the host changed under running processes (tailscale#4003, FullPageOS#508).
/// By its name alone a host is the same only where the process fits in all else.
#[test]
fn sessions_outlive_a_new_name_of_their_host() {
    let change = |world: &mut Value| {
        world["host"] = json!("box-2.local");
    };
    check_all(change, |answers| {
        let mut faults = nothing_has_exited(answers);
        for (key, before) in answers.before.iter().filter(|(_, row)| row.is_live()) {
            let after = &answers.after[key];
            let may_be_elsewhere =
                before.confidence.as_deref() == Some("consistent") && after.reason == "other-host";
            if !after.is_live() && !may_be_elsewhere {
                faults.push(format!("{key}: {before:?} became {after:?}"));
            }
        }
        faults
    });
}

/// After a paused machine resumed, processes looked younger than their records
/// (claude-swap#299). What is inferred rests on dates alone, and may be lost by that.
#[test]
fn sessions_outlive_a_step_of_the_clock() {
    let change = |world: &mut Value| {
        shift(&mut world["now"], 7 * 60);
        each_process(world, |process| shift(&mut process["began"], 7 * 60));
    };
    check_all(change, |answers| {
        let claimed = answers.before.iter().filter(|(_, row)| {
            let is_inferred = row.confidence.as_deref() == Some("inferred");
            row.is_live() && !is_inferred && row.has_transcript && !row.is_sub_agent
        });
        let fault = |(key, before): (&String, &Row)| {
            let after = &answers.after[key];
            let is_right = after.is_live()
                || (before.confidence.as_deref() != Some("proven") && after.liveness == "unknown");
            (!is_right).then(|| format!("{key}: {before:?} became {after:?}"))
        };
        claimed.filter_map(fault).collect()
    });
}

/// Changes every transcript of a world: files of lines that are not empty.
fn each_transcript(directory: &Path, change: &dyn Fn(&Path)) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, file_type) = (entry.path(), entry.file_type().unwrap());
        if file_type.is_dir() {
            each_transcript(&path, change);
        } else if file_type.is_file()
            && path.extension().is_some_and(|name| name == "jsonl")
            && entry.metadata().unwrap().len() > 0
        {
            let modified = entry.metadata().unwrap().modified().unwrap();
            change(&path);
            let file = std::fs::File::open(&path).unwrap();
            file.set_modified(modified).unwrap();
        }
    }
}

/// Looks at every fixture before and after a change to its transcripts, which
/// may make no difference.
#[track_caller]
fn check_files(change: &dyn Fn(&Path)) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let world = World::of_fixture(&case);
        let before = world.look(DepthName::All);
        each_transcript(world.home(), change);
        let after = world.look(DepthName::All);
        for (key, before) in rows(&before) {
            let after = rows(&after).get(&key).cloned();
            if after.as_ref() != Some(&before) {
                let _ = writeln!(report, "{name}: {key}: {before:?} became {after:?}");
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// A full disk left torn and fused lines and runs of NUL bytes, and one of them
/// hid everything (oh-my-pi#8596, opencode#7607, kern-ai#300).
#[test]
fn torn_and_fused_lines_at_the_end_of_every_transcript_hide_nothing() {
    check_files(&|path| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"{\"a\":1}{\"b\":2}\n{\"c\":\n\0\0\0\0\0\0\0\0\n{\"d\":")
            .unwrap();
    });
}

/// Options that take up a session, and the arguments that they have.
fn without_sessions(argv: &Value) -> Value {
    const OPTIONS: &[&str] = &[
        "--resume",
        "--continue",
        "--session",
        "--session-id",
        "--fork-session",
        "--fork",
        "--id",
        "--chat",
        "-r",
        "-c",
        "-C",
        "-s",
        "resume",
        "fork",
        "attach",
        "--acp",
        "--experimental-acp",
        "--list-sessions",
    ];
    let is_option = |argument: &str| {
        let name = argument.split('=').next().unwrap_or_default();
        OPTIONS.contains(&name)
    };
    let Some(arguments) = argv.as_array() else {
        return argv.clone();
    };
    let kept = arguments
        .iter()
        .take_while(|argument| !is_option(argument.as_str().unwrap()));
    kept.cloned().collect()
}

/// A new session was shown with the transcript of the session before it in the
/// same directory (agent-deck#959, herdr#454, herdr#4104).
#[test]
fn processes_that_have_just_begun_have_no_session_of_those_before_them() {
    const LATER_S: i64 = 2 * 60 * 60;
    let change = |world: &mut Value| {
        let then_ms = time_ms(world["now"].as_str().unwrap());
        shift(&mut world["now"], LATER_S);
        world["panes"] = json!([]);
        each_process(world, |process| {
            let began_ms = time_ms(process["began"].as_str().unwrap());
            let later_s = (then_ms - began_ms) / 1000 + LATER_S - 60;
            let start = process["start"].as_i64().unwrap();
            process["start"] = json!(start + later_s * 100);
            shift(&mut process["began"], later_s);
            process["holds"] = json!([]);
            if process.get("argv").is_some() {
                process["argv"] = without_sessions(&process["argv"]);
            }
        });
    };
    check_all(change, |answers| {
        let live = answers.after.iter().filter(|(_, row)| row.is_live());
        live.map(|(key, row)| format!("{key}: {row:?}")).collect()
    });
}

/// Agents that may write what their shell called the directory, which can be a
/// link, and do not make up a folder's name from its real path.
const BY_WHAT_IS_WRITTEN: &[&str] = &["cline/", "codex/", "copilot/", "opencode/", "vibe/"];

/// Copies a fixture, with a link in place of every directory `/home/dev/...`
/// that a file names, and what that leads to in place of every process's own.
fn copy_with_links(case: &Path, to: &Path) {
    let text = std::fs::read_to_string(case.join("world.json")).unwrap();
    let mut world: Value = serde_json::from_str(&text).unwrap();
    let mut directories = std::collections::BTreeSet::new();
    each_process(&mut world, |process| {
        let Some(cwd) = process["cwd"].as_str() else {
            return;
        };
        if let Some(below) = cwd.strip_prefix("/home/dev/") {
            process["cwd"] = json!(format!("@HOME@/real/{below}"));
        }
    });
    directories.extend(each_string(&world).filter_map(|text| {
        let below = text.strip_prefix("@HOME@/real/")?;
        Some(below.to_owned())
    }));
    let mut made = world["make"].as_array().cloned().unwrap_or_default();
    made.push(json!({"path": "@HOME@/link", "kind": {"symlink": "@HOME@/real"}}));
    made.extend(
        directories
            .iter()
            .map(|below| json!({"path": format!("@HOME@/real/{below}"), "kind": "directory"})),
    );
    world["make"] = Value::Array(made);
    std::fs::write(to.join("world.json"), world.to_string()).unwrap();
    copy_folder(&case.join("home"), &to.join("home"), &|text| {
        text.replace("/home/dev/", "@HOME@/link/")
    });
}

fn each_string(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(each_string)),
        Value::Object(fields) => Box::new(fields.values().flat_map(each_string)),
        _ => Box::new(std::iter::empty()),
    }
}

fn copy_folder(from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target, change);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => change(text).into_bytes(),
                Err(error) => error.into_bytes(),
            };
            std::fs::write(target, bytes).unwrap();
        }
    }
}

/// A directory that was reached by a link hid its sessions
/// (notebook-intelligence#171, claude-code#16103, orca#10841).
#[test]
fn sessions_of_a_directory_that_was_reached_by_a_link_are_found() {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    let mut checked = 0;
    for (name, case) in cases() {
        let is_of_interest = BY_WHAT_IS_WRITTEN
            .iter()
            .any(|agent| name.starts_with(agent));
        if !is_of_interest || !name.contains(&wanted) {
            continue;
        }
        let before = rows(&World::of_fixture(&case).look(DepthName::All));
        if !before.values().any(Row::is_live) {
            continue;
        }
        let copy = tempfile::tempdir().unwrap();
        copy_with_links(&case, copy.path());
        let answer = World::of_fixture(copy.path()).look(DepthName::All);
        let answers = Answers {
            has_own_environment: false,
            before,
            after: rows(&answer),
            answer,
        };
        checked += 1;
        for fault in all_live_on(&answers) {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(checked > 0);
    assert!(report.is_empty(), "of {checked} fixtures\n{report}");
}
