//! Soak: sessions begin, work, wait, move and die in every way, while what `watch` has
//! printed, what clients of the server have read, and the server's state are compared with a
//! cold `list`.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use whosup_live::replay;

use crate::chance::Chance;
use crate::client::{Event, Server, Stream};
use crate::questions::check_schema;
use crate::shell_agent::ShellAgent;
use crate::watching::Watching;
use crate::world::{Posing, World, now_ms};

/// How long it takes among other tests, in seconds; `WHOSUP_SOAK_SECONDS` is another length.
const SECONDS: u64 = 20;
/// How many steps there are before what is used is noted: by then everything has been used.
const WARM_STEPS: u32 = 20;
/// How much memory may be used more at the end than then, in KiB.
const MEMORY_MORE_MAX_KIB: u64 = 24 << 10;
/// How many descriptors may be open more at the end than then.
const DESCRIPTORS_MORE_MAX: usize = 40;
/// How long `watch` may take to come to what `list` says, on a loaded machine.
const BEHIND_MAX: Duration = Duration::from_secs(30);
/// How many sessions are played with at once.
const PARTS_MAX: usize = 8;
/// How long nothing happens until the engine has looked at all that has.
const REST: Duration = Duration::from_secs(2);
/// What is no change, and what differs between two looks by the clock alone.
const NOT_COMPARED: [&str; 2] = ["evidence", "taken_at"];

/// What a program knows of the sessions, apart from what is no change.
pub(crate) fn known(snapshot: &Value) -> Value {
    let sessions = snapshot["sessions"].as_array().unwrap().iter();
    let plain = |session: &Value| -> Map<String, Value> {
        let fields = session.as_object().unwrap().iter();
        let fields = fields
            .filter(|(name, value)| !NOT_COMPARED.contains(&name.as_str()) && !value.is_null());
        fields
            .map(|(name, value)| (name.clone(), without_jitter(name, value)))
            .collect()
    };
    let mut sessions: Vec<Map<String, Value>> = sessions.map(plain).collect();
    sessions.sort_by_key(|session| session["session_id"].to_string());
    json!(sessions)
}

/// Dates of processes are computed from a clock and a stamp, anew each time. That a process
/// is stopped or goes on gives no event: it is seen at the next look, up to a minute later. So
/// it is with the end of a zombie: its session has exited before.
fn without_jitter(name: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if name == "reason" && value == "zombie" {
        value = json!("no-such-process");
    }
    if ["owner", "client"].contains(&name) {
        value["started_at"] = Value::Null;
        value["stopped"] = Value::Null;
    }
    if ["started_at", "phase_since"].contains(&name) {
        let date = value.as_str().unwrap();
        // To the second: the rest may be jitter.
        value = json!(date.get(..17));
    }
    value
}

/// One session and its process.
struct Part {
    posing: Option<Posing>,
    record: std::path::PathBuf,
    text: String,
}

/// A client of the server that reads all the time.
struct Client {
    events: Receiver<Event>,
    /// The snapshot with all changes so far.
    state: Value,
    read: Vec<Value>,
}

impl Client {
    fn open(server: &Server, world: &World) -> Self {
        let path = format!("/api/v1/events?cwd={}", world.work_dir().display());
        let mut stream = Stream::open(server, &path, &[]);
        let (sender, events) = channel();
        std::thread::spawn(move || {
            while let Some(event) = stream.next_if_any() {
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self {
            events,
            state: Value::Null,
            read: Vec::new(),
        }
    }

    fn take(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            assert_eq!(event.kind, event.data["kind"].as_str().unwrap());
            assert_eq!(event.id, event.data["cursor"].as_str().unwrap());
            replay(&mut self.state, &event.data);
            self.read.push(event.data);
        }
    }
}

/// All that watches.
struct Watchers {
    watching: Watching,
    server: Server,
    /// The second one begins later.
    clients: Vec<Client>,
}

/// What watchers use.
#[derive(Debug, Clone, Copy)]
struct Used {
    descriptors: usize,
    memory_kib: u64,
}

impl Used {
    fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.unwrap().split_whitespace().next();
        Self {
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))
                .unwrap()
                .count(),
            memory_kib: memory.unwrap().parse().unwrap(),
        }
    }
}

#[test]
fn what_watch_and_the_server_have_sent_is_what_list_says_after_every_step() {
    let seconds = std::env::var("WHOSUP_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let world = World::new();
    let mut chance = Chance::of_seed(17);
    let server = Server::start(&world);
    let mut watchers = Watchers {
        watching: Watching::start(&world),
        clients: vec![Client::open(&server, &world)],
        server,
    };
    let mut agent = ShellAgent::start(&world);
    let mut parts: Vec<Part> = Vec::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut steps, mut slowest) = (0_u32, Duration::ZERO);
    let mut at_first = None;
    let pids = [watchers.watching.child.id(), watchers.server.pid()];
    while Instant::now() < end {
        for _ in 0..chance.below(4) {
            act(&world, &mut chance, &mut parts, &mut agent, steps);
        }
        steps += 1;
        let compared = Instant::now();
        compare(&world, &mut watchers, steps);
        slowest = slowest.max(compared.elapsed());
        if steps == WARM_STEPS {
            at_first = Some(pids.map(Used::of));
            let late = Client::open(&watchers.server, &world);
            watchers.clients.push(late);
        }
    }
    let last = pids.map(Used::of);
    let at_once = watchers.server.metric("whosup_exits_at_once_total");
    eprintln!(
        "{steps} steps, the slowest comparison took {slowest:?}; {at_first:?}, {last:?} at last; \
         {at_once} exits were published before the look after them"
    );
    check_lines(watchers.watching.read.iter().map(|(_, line)| line));
    for client in &watchers.clients {
        check_lines(client.read.iter());
    }
    for (first, last) in at_first.iter().flatten().zip(last) {
        assert!(last.descriptors < first.descriptors + DESCRIPTORS_MORE_MAX);
        assert!(last.memory_kib < first.memory_kib + MEMORY_MORE_MAX_KIB);
    }
}

fn act(
    world: &World,
    chance: &mut Chance,
    parts: &mut Vec<Part>,
    agent: &mut ShellAgent<'_>,
    step: u32,
) {
    let kind = chance.below(13);
    if parts.is_empty() || kind.is_multiple_of(8) {
        if parts.len() == PARTS_MAX {
            let oldest = parts.remove(0);
            std::fs::remove_file(&oldest.record).unwrap();
        }
        let posing = world.pose_as_claude();
        let session = format!("0a0b0c0d-0000-4000-8000-{:06x}{:06x}", posing.pid(), step);
        let record = world.write_claude_record(posing.pid(), &posing.start(), &session);
        if chance.below(2) == 0 {
            world.write_claude_transcript(".claude", &session);
        }
        let text = std::fs::read_to_string(&record).unwrap();
        parts.push(Part {
            posing: Some(posing),
            record,
            text,
        });
        return;
    }
    let at = chance.index(parts.len());
    match kind {
        // It dies, and leaves its record.
        1 => parts[at].posing = None,
        // It exits cleanly.
        2 => {
            let part = parts.swap_remove(at);
            std::fs::remove_file(&part.record).unwrap();
        }
        // It is killed while nothing else happens, so that its exit may be published before a
        // look. Its parent does not ask for its status before the next step.
        9 => {
            std::thread::sleep(REST);
            if let Some(posing) = &mut parts[at].posing {
                posing.kill();
            }
        }
        // It is stopped, goes on, or is killed while it is stopped.
        10 | 11 => signal(&parts[at], ["STOP", "CONT"][chance.index(2)]),
        // It ends as a service manager ends it.
        12 => signal(&parts[at], "TERM"),
        3 => agent.report(&world.s1, "SessionStart", json!({ "source": "startup" })),
        4 => agent.report(&world.s1, "UserPromptSubmit", json!({ "prompt": "Go" })),
        5 => agent.report(
            &world.s1,
            "PermissionRequest",
            json!({ "tool_name": "Bash" }),
        ),
        // Another session of the same process.
        6 => change(&mut parts[at], |fields| {
            fields["sessionId"] = json!(format!("1a0b0c0d-0000-4000-8000-{step:012x}"));
        }),
        _ => change(&mut parts[at], |fields| {
            let status = ["idle", "busy"][usize::from(fields["status"] == "idle")];
            fields["status"] = json!(status);
            fields["statusUpdatedAt"] = json!(now_ms());
        }),
    }
}

fn signal(part: &Part, name: &str) {
    if let Some(posing) = &part.posing {
        crate::world::signal(posing.pid(), name);
    }
}

/// Renames another record over the one that is there.
fn change(part: &mut Part, change: impl FnOnce(&mut Value)) {
    let mut fields: Value = serde_json::from_str(&part.text).unwrap();
    change(&mut fields);
    part.text = fields.to_string();
    let other = part.record.with_extension("new");
    std::fs::write(&other, &part.text).unwrap();
    std::fs::rename(&other, &part.record).unwrap();
}

/// Reads until what each of them knows is what `list` says now.
#[track_caller]
fn compare(world: &World, watchers: &mut Watchers, step: u32) {
    let end = Instant::now() + BEHIND_MAX;
    let path = format!("/api/v1/state?cwd={}", world.work_dir().display());
    loop {
        let cold = known(&world.run(["list", "--json", "--cwd", "."]).json());
        while watchers.watching.take(Duration::from_millis(20)) {}
        watchers.clients.iter_mut().for_each(Client::take);
        let mut warm = vec![
            ("`watch`", known(&watchers.watching.state)),
            ("the server", known(&watchers.server.json(&path))),
        ];
        let clients = watchers
            .clients
            .iter()
            .filter(|client| !client.state.is_null());
        warm.extend(clients.map(|client| ("a client", known(&client.state))));
        let Some((who, other)) = warm.into_iter().find(|(_, warm)| *warm != cold) else {
            return;
        };
        assert!(
            Instant::now() < end,
            "after step {step} {who} says {other:#}\nand `list` says {cold:#}\n{:#?}",
            watchers
                .watching
                .read
                .iter()
                .rev()
                .take(10)
                .collect::<Vec<_>>()
        );
    }
}

/// None is lost, none comes twice, none changes nothing, and what has exited is not live again
/// unless its session was taken up, nor shown again once it was removed.
fn check_lines<'a>(lines: impl Iterator<Item = &'a Value>) {
    let sequence = |line: &Value| -> u64 {
        let cursor = line["cursor"].as_str().unwrap();
        cursor.rsplit_once('-').unwrap().1.parse().unwrap()
    };
    let mut last = None;
    let mut kinds = BTreeSet::new();
    let mut removed = BTreeSet::new();
    for line in lines {
        if kinds.insert(line["kind"].to_string()) {
            check_schema("watch", line);
        }
        let number = sequence(line);
        assert!(last.is_none_or(|last| last < number), "{line}");
        last = Some(number);
        let session = &line["session"];
        if line["kind"] == "removed" {
            removed.insert(session["session_id"].to_string());
        }
        let is_back = removed.contains(&session["session_id"].to_string());
        assert!(
            line["kind"] != "added" || !is_back || session["liveness"] != "exited",
            "taken back: {line}"
        );
        if line["kind"] == "changed" {
            let changes = line["changes"].as_object().unwrap();
            assert!(!changes.is_empty(), "{line}");
            assert!(
                changes
                    .values()
                    .all(|change| change["old"] != change["new"]),
                "{line}"
            );
            let liveness = &line["changes"]["liveness"];
            assert!(liveness["old"] != "exited", "taken back: {line}");
        }
    }
}
