//! Real agents and whosup in sandboxes, containers and crowds: a process that can't be
//! seen, or is about to start, ends no session.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::world::{Posing, WHOSUP, World, copy_program, wait_for};

/// A user that owns no files.
const NOBODY_UID: &str = "65534";

pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: it takes root to become another user or to make namespaces");
    }
    is_root
}

/// Makes all below a world readable, and gives `home` to [`NOBODY_UID`].
fn open_to_unprivileged(world: &World) {
    let root = world.root().to_str().unwrap();
    let home = world.home();
    for arguments in [
        vec!["chmod", "-R", "a+rX", root],
        vec!["chown", "-R", NOBODY_UID, home.to_str().unwrap()],
    ] {
        let status = Command::new(arguments[0]).args(&arguments[1..]).status();
        assert!(status.unwrap().success());
    }
}

/// Runs a line of shell with `$WHOSUP`, started by `wrapper`.
#[track_caller]
pub(crate) fn run_in(world: &World, wrapper: &[&str], line: &str) -> Option<String> {
    let program = world.root().join("whosup");
    if !program.exists() {
        copy_program(WHOSUP, &program);
    }
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .args(["sh", "-c", line])
        .env_clear()
        .env("HOME", world.home())
        .env("WHOSUP", &program)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir("/")
        .output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        other => {
            eprintln!("skipped: {wrapper:?} does not work here: {other:?}");
            None
        }
    }
}

fn sessions(answer: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["sessions"].as_array().unwrap().clone()
}

fn liveness<'a>(sessions: &'a [Value], id: &str) -> Option<&'a str> {
    let found = sessions.iter().find(|one| one["session_id"] == id);
    found?["liveness"].as_str()
}

const AS_NOBODY: [&str; 7] = [
    "setpriv",
    "--reuid",
    NOBODY_UID,
    "--regid",
    NOBODY_UID,
    "--clear-groups",
    "--",
];

/// A start in a sandbox got `EPERM` for signal 0, read it as dead, and wiped the
/// records of every other running session (claude-code#74566, agent-browser#564,
/// onctl#1082, ggcode#799).
#[test]
fn processes_that_may_not_be_signalled_are_no_dead_ones_and_their_records_stay() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let agents: [Posing; 3] = std::array::from_fn(|_| world.pose_as_claude());
    let ids = [
        world.s1.clone(),
        world.s2.clone(),
        world.s1.replacen("0a", "0b", 1),
    ];
    let records: Vec<_> = agents
        .iter()
        .zip(&ids)
        .map(|(agent, id)| world.write_claude_record(agent.pid(), &agent.start(), id))
        .collect();
    // The last record has nothing but the PID to identify the process.
    let record = std::fs::read(&records[2]).unwrap();
    let mut record: Value = serde_json::from_slice(&record).unwrap();
    record.as_object_mut().unwrap().remove("procStart");
    std::fs::write(&records[2], record.to_string()).unwrap();
    let before: Vec<_> = records
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    open_to_unprivileged(&world);
    let hook = json!({"session_id": world.s1, "hook_event_name": "SessionStart", "cwd": "/"});
    let payload = world.write("payload", hook.to_string());

    let line = format!(
        "kill -0 {} 2>/dev/null && exit 9; \"$WHOSUP\" list --all --json; \
         \"$WHOSUP\" sweep >&2; \"$WHOSUP\" hook claude-code < '{}' >&2",
        agents[0].pid(),
        payload.display()
    );
    let Some(said) = run_in(&world, &AS_NOBODY, &line) else {
        return;
    };
    let found = sessions(&said);
    for id in &ids[..2] {
        assert_eq!(liveness(&found, id), Some("live"), "{said}");
    }
    // By name and date it may be this process; no more is known.
    let third = found
        .iter()
        .find(|one| one["session_id"] == ids[2].as_str());
    let third = third.expect("it is listed");
    assert_ne!(third["liveness"], "exited", "{said}");
    assert_ne!(third["confidence"], "proven", "{said}");
    let after: Vec<_> = records
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert_eq!(after, before);
}

/// An agent in a container, and the shell that keeps the container running.
struct Container {
    child: Child,
}

impl Container {
    /// Starts a process that poses as Claude Code in namespaces of its own, and lets it write its
    /// record with its PID there.
    fn start(world: &World, program: &Path, session: &str) -> Option<Self> {
        let record = world.home().join(format!(".claude/sessions/{session}.new"));
        let line = format!(
            "exec 3<&0; '{}' <&3 & pid=$!; start=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f20); \
             printf '%s %s' $pid \"$start\" > '{}.part'; mv '{}.part' '{}'; wait",
            program.display(),
            record.display(),
            record.display(),
            record.display(),
        );
        let child = Command::new("unshare")
            .args([
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child",
                "sh",
                "-c",
                &line,
            ])
            .current_dir(world.work_dir())
            .env_clear()
            .env("HOME", world.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self { child })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Containers that share a home, a machine id and a boot id have the same small
/// PIDs (meridian#905, lxc#3027).
#[test]
fn two_containers_with_equal_pids_are_neither_dead_nor_alive_to_each_other() {
    if !is_root() {
        return;
    }
    let world = World::new();
    std::fs::create_dir_all(world.home().join(".claude/sessions")).unwrap();
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    copy_program("/bin/cat", &program);
    let mut containers = Vec::new();
    let mut pids = Vec::new();
    for id in [&world.s1, &world.s2] {
        let Some(container) = Container::start(&world, &program, id) else {
            eprintln!("skipped: there is no unshare");
            return;
        };
        containers.push(container);
        let path = world.home().join(format!(".claude/sessions/{id}.new"));
        let text = wait_for("the agent of a container", || {
            assert!(
                containers
                    .last_mut()
                    .unwrap()
                    .child
                    .try_wait()
                    .unwrap()
                    .is_none()
            );
            std::fs::read_to_string(&path).ok()
        });
        let (pid, start) = text.split_once(' ').unwrap();
        let pid: u32 = pid.parse().unwrap();
        let record = world.write_claude_record(pid, start, id);
        // Both records would have the same name.
        let home = world.home().join(format!("home-of-{id}/sessions"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::rename(record, home.join(format!("{pid}.json"))).unwrap();
        pids.push(pid);
    }
    assert_eq!(pids[0], pids[1], "the two began in the same way");
    let homes = [&world.s1, &world.s2]
        .map(|id| format!("\"~/home-of-{id}\""))
        .join(", ");
    let config = format!("[homes]\nclaude-code = [{homes}]\n");
    world.write(".config/whosup/config.toml", config);

    // A reader that sees into both containers distinguishes the agents by start stamp.
    let answer = world.run(["list", "--all", "--json", "--cwd", "."]);
    for id in [&world.s1, &world.s2] {
        assert_eq!(
            liveness(&answer.sessions(), id),
            Some("live"),
            "{}",
            answer.out
        );
    }
    // A third container has that PID too, and knows nothing of these sessions.
    let line = "sleep 1000 > /dev/null & one=$!; sleep 1000 > /dev/null & \
        \"$WHOSUP\" list --all --json; kill $one $!";
    let third = ["unshare", "--pid", "--fork", "--mount-proc"];
    let Some(said) = run_in(&world, &third, line) else {
        return;
    };
    for id in [&world.s1, &world.s2] {
        assert_eq!(liveness(&sessions(&said), id), Some("unknown"), "{said}");
    }
}

/// One process that vanished in mid-scan failed the whole scan (node_exporter#1901,
/// util-linux#2799, psutil#503).
#[test]
fn a_list_amid_short_lived_processes_has_all_that_stay() {
    let world = World::new();
    let (one, two) = (world.pose_as_claude(), world.pose_as_claude());
    world.write_claude_record(one.pid(), &one.start(), &world.s1);
    world.write_claude_record(two.pid(), &two.start(), &world.s2);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Short-lived agents, which a scan inspects.
            while !is_over.load(Ordering::Relaxed) {
                let posing = world.pose("@anthropic-ai/claude-code/bin/claude", |command| {
                    command.stdin(Stdio::null());
                });
                posing.reap();
            }
        });
        for _ in 0..10 {
            let said = world.run(["list", "--json", "--cwd", "."]);
            let is_whole = said.status == 0
                && [&world.s1, &world.s2]
                    .iter()
                    .all(|id| liveness(&said.sessions(), id) == Some("live"));
            if !is_whole {
                is_over.store(true, Ordering::Relaxed);
                panic!("{} {} {}", said.status, said.out, said.err);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// After execve(2), the program of a process stayed the old program (sysinfo#840).
#[test]
fn a_shell_that_execs_an_agent_is_recognized_at_the_next_look() {
    let world = World::new();
    let agent = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    std::fs::create_dir_all(agent.parent().unwrap()).unwrap();
    copy_program("/bin/cat", &agent);
    let script = format!("read line; exec '{}'", agent.display());
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(world.work_dir())
        .env_clear()
        .env("HOME", world.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = shell.id().to_string();
    let before = world.run(["why", "--pid", &pid]);
    let mut stdin = shell.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"go\n").unwrap();
    wait_for("the shell to become an agent", || {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        (comm == "claude\n").then_some(())
    });
    let after = world.run(["why", "--pid", &pid]);
    drop(stdin);
    shell.wait().unwrap();
    assert_eq!(before.status, 4, "{}", before.out);
    assert_eq!(after.status, 3, "{}", after.out);
    assert!(after.out.contains("claude-code"), "{}", after.out);
}

/// The number that Git-bash gives to a process, `$$`, is not the Windows PID, and matched another
/// process (agmsg#371, agmsg#567, agmsg#505).
#[test]
fn a_pid_in_the_payload_of_a_hook_makes_that_process_no_owner() {
    let world = World::new();
    let other = world.pose_as_claude();
    let hook_event = json!({
        "session_id": world.s1,
        "hook_event_name": "SessionStart",
        "source": "startup",
        "cwd": world.work_dir(),
        "pid": other.pid(),
        "ppid": other.pid(),
        "owner_pid": other.pid(),
    });
    let payload = world.write("payload", hook_event.to_string());
    // No agent is above this hook, only this test.
    let said = world
        .whosup()
        .args(["hook", "claude-code"])
        .write_stdin(std::fs::read(payload).unwrap())
        .output()
        .unwrap();
    assert!(said.status.success());
    let name = format!(".local/state/whosup/sessions/claude-code/{}.json", world.s1);
    let record = std::fs::read(world.home().join(name)).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["owner"]["pid"], std::process::id(), "{record}");
    assert_eq!(record["owner"]["unrecognized"], true, "{record}");
    let said = world.run(["pid", world.s1.as_str()]);
    assert_ne!(said.out.trim(), other.pid().to_string());
}
