//! The threads of Codex in a demo: two of a daemon, one of which a terminal shows, and two
//! of one process without a daemon.

use serde_json::{Value, json};

use super::part::Part;
use super::props::{Props, date};

const PROGRAM: &str =
    ".local/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
const DAEMON_PROGRAM: &str =
    ".codex/packages/app-server-daemon/releases/0.171.0-x86_64-unknown-linux-musl/bin/codex";
const VERSION: &str = "0.171.0";
const MODEL: &str = "gpt-5-codex";

/// One thread.
struct Thread {
    /// The last digits of its ID; the first are its date.
    number: u64,
    work_dir: &'static str,
    name: &'static str,
    born_minutes_ago: i64,
    last_minutes_ago: i64,
    now: Now,
}

/// The phase of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Now {
    Works,
    Asks,
    Rests,
}

const SHOWN: Thread = Thread {
    number: 0x0d1,
    work_dir: "src/mobile",
    name: "Dark mode for the settings screen",
    born_minutes_ago: 26,
    // A question from before the process began would not belong to it.
    last_minutes_ago: 0,
    now: Now::Asks,
};
const DETACHED: Thread = Thread {
    number: 0x0d2,
    work_dir: "src/api",
    name: "Split the user service in two",
    born_minutes_ago: 55,
    last_minutes_ago: 2,
    now: Now::Works,
};
const LEFT: Thread = Thread {
    number: 0x0d3,
    work_dir: "src/infra",
    name: "Shorten the build",
    born_minutes_ago: 90,
    last_minutes_ago: 70,
    now: Now::Rests,
};
const CURRENT: Thread = Thread {
    number: 0x0d4,
    work_dir: "src/infra",
    name: "Cache dependencies in CI",
    born_minutes_ago: 65,
    last_minutes_ago: 21,
    now: Now::Rests,
};

const THREADS: [Thread; 4] = [SHOWN, DETACHED, LEFT, CURRENT];

/// The processes.
pub(super) fn parts(props: &Props<'_>) -> Vec<Part> {
    let serving = |part: Part, threads: &[Thread]| Part {
        locks: threads
            .iter()
            .map(|thread| props.path(&thread.lock(props)))
            .collect(),
        open: threads
            .iter()
            .map(|thread| props.path(&thread.rollout(props)))
            .collect(),
        ..part
    };
    let daemon = [
        "codex",
        "app-server",
        "--listen",
        "unix://",
        "--managed-daemon",
    ];
    vec![
        serving(
            Part::new("codex-daemon", DAEMON_PROGRAM, &daemon, "src/mobile").without_terminal(),
            &[SHOWN, DETACHED],
        ),
        Part::new("codex-client", PROGRAM, &["codex"], "src/mobile"),
        serving(
            Part::new("codex-alone", PROGRAM, &["codex"], "src/infra"),
            &[LEFT, CURRENT],
        ),
    ]
}

/// Makes the directories of the files that the processes hold.
pub(super) fn make_folders(props: &Props<'_>) -> anyhow::Result<()> {
    props.folder(".codex/thread-writer-locks")?;
    for thread in &THREADS {
        props.folder(&thread.day(props))?;
    }
    Ok(())
}

/// Writes the files of these threads.
pub(super) fn write(props: &Props<'_>) -> anyhow::Result<()> {
    for thread in &THREADS {
        props.lines(&thread.rollout(props), &thread.records(props)?)?;
    }
    let names = THREADS.iter().map(|thread| {
        json!({
            "id": thread.id(props), "thread_name": thread.name,
            "updated_at": date(thread.born_at_ms(props)),
        })
    });
    let names: Vec<Value> = names.collect();
    props.lines(".codex/session_index.jsonl", &names)
}

impl Thread {
    const fn born_at_ms(&self, props: &Props<'_>) -> i64 {
        props.minutes_ago(self.born_minutes_ago)
    }

    /// A UUID of version 7: a date and digits.
    fn id(&self, props: &Props<'_>) -> String {
        let digits = format!("{:012x}", self.born_at_ms(props));
        let (first, second) = digits.split_at(8);
        format!("{first}-{second}-7001-8001-{:012x}", self.number)
    }

    fn lock(&self, props: &Props<'_>) -> String {
        format!(".codex/thread-writer-locks/{}.lock", self.id(props))
    }

    fn day(&self, props: &Props<'_>) -> String {
        let date = date(self.born_at_ms(props));
        let day = date.get(..10).unwrap_or(&date).replace('-', "/");
        format!(".codex/sessions/{day}")
    }

    fn rollout(&self, props: &Props<'_>) -> String {
        let date = date(self.born_at_ms(props));
        let time = date.get(..19).unwrap_or(&date).replace(':', "-");
        format!(
            "{}/rollout-{time}-{}.jsonl",
            self.day(props),
            self.id(props)
        )
    }

    fn records(&self, props: &Props<'_>) -> anyhow::Result<Vec<Value>> {
        let id = self.id(props);
        let work_dir = props.text(self.work_dir)?;
        let began = date(self.born_at_ms(props));
        let last = date(props.minutes_ago(self.last_minutes_ago));
        let line = |at: &str, kind: &str, payload: Value| json!({ "timestamp": at, "type": kind, "payload": payload });
        let message = |role: &str, part: &str, text: &str| {
            json!({
                "type": "message", "role": role,
                "content": [{ "type": part, "text": text }],
            })
        };
        let call = |name: &str| json!({ "type": "function_call", "name": name, "call_id": "c1" });
        let meta = json!({
            "id": id, "session_id": id, "timestamp": began, "cwd": work_dir,
            "cli_version": VERSION, "source": "cli", "git": { "branch": "main" },
        });
        let turn = json!({ "type": "task_started", "turn_id": "t1", "root_turn_id": "t1" });
        let context = json!({ "turn_id": "t1", "cwd": work_dir, "model": MODEL });
        let mut records = vec![
            line(&began, "session_meta", meta),
            line(&began, "event_msg", turn),
            line(&began, "turn_context", context),
            line(
                &began,
                "response_item",
                message("user", "input_text", self.name),
            ),
        ];
        records.push(line(&last, "event_msg", self.tokens(props)));
        match self.now {
            Now::Works => records.push(line(&last, "response_item", call("exec_command"))),
            Now::Asks => records.push(line(&last, "response_item", call("request_user_input"))),
            Now::Rests => {
                let reply = message("assistant", "output_text", "Done.");
                records.push(line(&last, "response_item", reply));
                let end = json!({ "type": "task_complete", "turn_id": "t1" });
                records.push(line(&last, "event_msg", end));
            }
        }
        Ok(records)
    }

    /// What the model was given and has answered, and the limits of the account.
    fn tokens(&self, props: &Props<'_>) -> Value {
        let input = 1_900 * self.number % 60_000 + 14_000;
        let output = input / 40;
        let counts = json!({
            "input_tokens": input, "cached_input_tokens": input / 8 * 7, "output_tokens": output,
            "reasoning_output_tokens": output / 3, "total_tokens": input + output,
        });
        let info = json!({
            "total_token_usage": counts, "last_token_usage": counts, "model_context_window": 272_000,
        });
        let window = |minutes: i64, used: f64, left_minutes: i64| {
            json!({
                "used_percent": used, "window_minutes": minutes,
                "resets_at": props.minutes_ago(-left_minutes) / 1_000,
            })
        };
        let limits = json!({
            "limit_id": "codex", "primary": window(300, 41.0, 131),
            "secondary": window(10_080, 12.0, 5_400),
        });
        json!({ "type": "token_count", "info": info, "rate_limits": limits })
    }
}
