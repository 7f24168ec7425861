//! A directory on a mount that never answers blocks no command, although records, settings,
//! transcripts and processes name it.
//!
//! The mount is real: a FUSE file system whose server, the shell that has `/dev/fuse` open,
//! never answers, in a mount namespace of its own. Both end with that shell.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{WHOSUP, World, copy_program, wait_for};

/// How long a command may take on a busy machine. A hanging command never ends.
const COMMAND_SECONDS_MAX: u64 = 60;
/// How long the whole test may take.
const WORLD_TIME_MAX: Duration = Duration::from_secs(600);
/// The exit status if the mount is not possible.
const SKIPPED: i32 = 77;

/// Makes the mount, and checks that it hangs.
const MOUNT: &str = r#"
exec 5<>/dev/fuse || exit 77
mount -i -t fuse -o fd=5,rootmode=40000,user_id=0,group_id=0 never "$HANG" || exit 77
timeout -s KILL 1 stat "$HANG/app" >/dev/null 2>&1 5<&-
[ $? = 137 ] || exit 77
said() {
    timeout -s KILL "$SECONDS_MAX" "$WHOSUP" "$@" 5<&- </dev/null >"$OUT" 2>"$OUT.err"
    status=$?
    [ $status = 137 ] && { echo "it hangs: whosup $*" >&2; exit 1; }
    return $status
}
"#;

/// Runs a line of shell beside a mount that hangs at `hang` in the world; `None` if such a
/// mount is not possible here.
#[track_caller]
fn run_beside_hanging_mount(world: &World, line: &str) -> Option<()> {
    let hang = world.root().join("hang");
    std::fs::create_dir_all(hang.join("app")).unwrap();
    let mut shell = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
        .arg(line.replace("MOUNT", MOUNT))
        .env_clear()
        .env("HOME", world.home())
        .env("WHOSUP", WHOSUP)
        .env("HANG", &hang)
        .env("OUT", world.root().join("out"))
        .env("SECONDS_MAX", COMMAND_SECONDS_MAX.to_string())
        .env("ROOT", world.root())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + WORLD_TIME_MAX;
    let status = wait_for("the shell beside the mount", || {
        if Instant::now() > until {
            // A process that waits for the mount gets an answer when the mount's server ends.
            shell.kill().unwrap();
        }
        shell.try_wait().unwrap()
    });
    let mut complaint = String::new();
    std::io::Read::read_to_string(&mut shell.stderr.take().unwrap(), &mut complaint).unwrap();
    if status.code() == Some(SKIPPED) || complaint.starts_with("unshare:") {
        eprintln!("skipped: no mount that hangs can be made here: {complaint}");
        return None;
    }
    assert!(status.success(), "{status}: {complaint}");
    Some(())
}

#[test]
fn what_others_name_on_a_mount_that_never_answers_holds_nothing_up() {
    let world = World::new();
    let hang = world.root().join("hang");
    let claude = "opt/@anthropic-ai/claude-code/bin/claude";
    for program in [claude, "opt/pi", "opt/crush", "opt/qwen"] {
        let path = world.root().join(program);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        copy_program("/bin/sleep", &path);
    }
    // A transcript, a list of projects, settings and a link in a home name it.
    let line = json!({
        "type": "user", "message": { "role": "user", "content": "hi" },
        "timestamp": "2026-11-27T20:57:20.486Z", "cwd": hang.join("app"),
        "sessionId": world.s2, "version": "2.1.197",
    });
    let transcript = format!(".claude/projects/-hang-app/{}.jsonl", world.s2);
    world.write(&transcript, format!("{line}\n"));
    // Another one names a link to it.
    std::os::unix::fs::symlink(hang.join("app"), world.root().join("link")).unwrap();
    let behind_link = "2b022b20-e8f2-410e-9552-8385582a8e8b";
    let mut record = line.clone();
    record["cwd"] = json!(world.root().join("link"));
    record["sessionId"] = json!(behind_link);
    let transcript = format!(".claude/projects/-link/{behind_link}.jsonl");
    world.write(&transcript, format!("{record}\n"));
    let projects =
        json!({"projects": [{"path": hang.join("app"), "data_dir": hang.join(".crush")}]});
    world.write(".local/share/crush/projects.json", projects.to_string());
    let logging = format!(
        "[session_logging]\nsave_dir = \"{}\"\n",
        hang.join("vibe").display()
    );
    world.write(".vibe/config.toml", logging);
    // So does a hook.
    let event = json!({
        "session_id": world.s1, "hook_event_name": "SessionStart", "source": "startup",
        "cwd": hang.join("app"),
        "transcript_path": hang.join(format!("{}.jsonl", world.s2)),
    });
    world.write("event", event.to_string());
    // And processes that work there, or have their home there.
    let line = format!(
        r#"
cd "$HANG/app" || exit 1
"$ROOT/{claude}" 300 >/dev/null 2>&1 & pids=$!
CLAUDE_CONFIG_DIR="$HANG/claude" "$ROOT/{claude}" 301 >/dev/null 2>&1 & pids="$pids $!"
"$ROOT/opt/pi" 302 >/dev/null 2>&1 & pids="$pids $!"
"$ROOT/opt/crush" 303 >/dev/null 2>&1 & pids="$pids $!"
HOME="$HANG/home" "$ROOT/opt/qwen" 304 >/dev/null 2>&1 & pids="$pids $!"
cd /
trap 'kill $pids' EXIT
MOUNT
began=$(date +%s)
timeout -s KILL "$SECONDS_MAX" "$WHOSUP" hook claude-code 5<&- <"$HOME/event" || exit 1
said
said list --all --json || exit 1
cp "$OUT" "$OUT.all"
said status
said check {s1}
said why {s1}
said show {s1}
said show {s2}
said resume --print {s2}
said show {behind_link}
said resume --print {behind_link}
said orphans
said sweep --dry-run
said doctor
said list --all --cwd "$HOME"
exit 0
"#,
        s1 = world.s1,
        s2 = world.s2,
    );
    if run_beside_hanging_mount(&world, &line).is_none() {
        return;
    }
    let said = std::fs::read_to_string(world.root().join("out.all")).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    let session = |id: &str| {
        let sessions = said["sessions"].as_array().unwrap();
        let found = sessions.iter().find(|one| one["session_id"] == id);
        found
            .unwrap_or_else(|| panic!("{id} is not in {said}"))
            .clone()
    };
    // What could be read is listed, and what was not touched is named.
    assert_eq!(session(&world.s1)["work_dir"], json!(hang.join("app")));
    assert_eq!(session(&world.s2)["title"], "hi");
    let problems = said["problems"].to_string();
    for untouched in ["hang/claude", "hang/vibe"] {
        assert!(problems.contains(untouched), "{untouched}: {problems}");
    }
}
