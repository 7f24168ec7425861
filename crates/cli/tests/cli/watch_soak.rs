//! Soak: sessions begin, work, wait, move and die in every way, while what `watch` has
//! printed is compared with a cold `list`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::chance::Chance;
use super::schema::check;
use super::shell_agent::ShellAgent;
use super::watching::Watching;
use super::world::{Posing, World, now_ms};

/// How long it takes in the gate, in seconds; `WHOSUP_SOAK_SECONDS` is another length.
const SECONDS: u64 = 60;
/// How long `watch` may take to come to what `list` says, on a loaded machine.
const BEHIND_MAX: Duration = Duration::from_secs(30);
/// What is no change, and what differs between two looks by the clock alone.
const NOT_COMPARED: [&str; 2] = ["evidence", "taken_at"];

/// What a program knows of the sessions, apart from what is no change.
fn known(snapshot: &Value) -> Value {
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

/// Dates of processes are computed from a clock and a stamp, anew each time.
fn without_jitter(name: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if ["owner", "client"].contains(&name) {
        value["started_at"] = Value::Null;
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

#[test]
fn what_watch_has_printed_is_what_list_says_after_every_step() {
    let seconds = std::env::var("WHOSUP_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let world = World::new();
    let mut chance = Chance::of_seed(17);
    let mut watching = Watching::start(&world);
    let mut agent = ShellAgent::start(&world);
    let mut parts: Vec<Part> = Vec::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut steps, mut slowest) = (0_u32, Duration::ZERO);
    let descriptors = |pid: u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        open.count()
    };
    let mut at_first = None;
    while Instant::now() < end {
        for _ in 0..chance.below(4) {
            act(&world, &mut chance, &mut parts, &mut agent, steps);
        }
        steps += 1;
        let compared = Instant::now();
        compare(&world, &mut watching, steps);
        slowest = slowest.max(compared.elapsed());
        if steps == 20 {
            at_first = Some(descriptors(watching.pid()));
        }
    }
    eprintln!("{steps} steps, the slowest comparison took {slowest:?}");
    if let Some(first) = at_first {
        let last = descriptors(watching.pid());
        assert!(
            last < first + 40,
            "{first} descriptors at first, {last} at last"
        );
    }
    check_lines(&watching);
}

fn act(
    world: &World,
    chance: &mut Chance,
    parts: &mut Vec<Part>,
    agent: &mut ShellAgent<'_>,
    step: u32,
) {
    let kind = chance.below(9);
    if parts.is_empty() || (kind == 0 && parts.len() < 8) {
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
        3 => agent.tell(&world.s1, "SessionStart", json!({ "source": "startup" })),
        4 => agent.tell(&world.s1, "UserPromptSubmit", json!({ "prompt": "Go" })),
        5 => agent.tell(
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

/// Renames another record over the one that is there.
fn change(part: &mut Part, change: impl FnOnce(&mut Value)) {
    let mut fields: Value = serde_json::from_str(&part.text).unwrap();
    change(&mut fields);
    part.text = fields.to_string();
    let other = part.record.with_extension("new");
    std::fs::write(&other, &part.text).unwrap();
    std::fs::rename(&other, &part.record).unwrap();
}

/// Reads until what is known is what `list` says now.
#[track_caller]
fn compare(world: &World, watching: &mut Watching, step: u32) {
    let end = Instant::now() + BEHIND_MAX;
    loop {
        let cold = known(&world.run(["list", "--json", "--cwd", "."]).json());
        while watching.take(Duration::from_millis(20)) {}
        let warm = known(&watching.state);
        if warm == cold {
            return;
        }
        assert!(
            Instant::now() < end,
            "after step {step} `watch` says {warm:#}\nand `list` says {cold:#}\n{:#?}",
            watching.read.iter().rev().take(10).collect::<Vec<_>>()
        );
    }
}

/// None is lost, none comes twice, none changes nothing, and what has exited is not live again
/// unless its session was taken up.
fn check_lines(watching: &Watching) {
    let lines = watching.read.iter().map(|(_, line)| line);
    let sequence = |line: &Value| -> u64 {
        let cursor = line["cursor"].as_str().unwrap();
        cursor.rsplit_once('-').unwrap().1.parse().unwrap()
    };
    let mut last = None;
    let mut kinds = BTreeSet::new();
    for line in lines {
        if kinds.insert(line["kind"].to_string()) {
            check("watch", &[], line);
        }
        let number = sequence(line);
        assert!(last.is_none_or(|last| last < number), "{line}");
        last = Some(number);
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
