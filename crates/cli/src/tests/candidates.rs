//! The sessions that a process without a known session may be serving, in every view that
//! shows such a process.

use serde_json::{Value, json};
use whosup_core::process::RecordedProcess;

use super::world::{MINUTE_MS, S1, S2, World, now_ms, ticks};

const PI: i32 = 4730;

/// A pi that may be serving one of two sessions of its directory.
fn world() -> World {
    let mut world = World::new();
    let work_dir = world.work_dir("src/ops");
    let pi = RecordedProcess::new(PI, ticks(PI), now_ms() - 30 * MINUTE_MS)
        .comm("pi")
        .title("pi")
        .exe("/usr/local/bin/node")
        .cwd(&work_dir)
        .tty(136, 20);
    world.add_process(pi);
    let folder = work_dir.to_str().unwrap().replace('/', "-");
    for (id, prompt, minute) in [(S1, "mend the roof", 40), (S2, "paint the door", 41)] {
        let said_at = format!("2026-11-27T20:{minute}:00.000Z");
        let message = |id: &str, role: &str, text: &str| {
            json!({"type": "message", "id": id, "parentId": null, "timestamp": said_at,
                "message": {"role": role, "content": [{"type": "text", "text": text}],
                    "stopReason": "stop"}})
        };
        let lines = [
            json!({"type": "session", "version": 3, "id": id, "cwd": work_dir,
                "timestamp": "2026-11-27T11:00:00.800Z"}),
            message("e0", "user", prompt),
            message("f0", "assistant", "Done."),
        ];
        let text = lines.map(|line| line.to_string() + "\n").concat();
        let name = format!(".pi/agent/sessions/-{folder}--/2026-11-27T11-00-00-800Z_{id}.jsonl");
        world.write(&name, text);
    }
    world
}

/// The candidates of the process, each with its title.
#[track_caller]
fn candidates(answer: &Value) -> Vec<(String, Option<String>)> {
    let process = &answer["unattributed"][0];
    assert_eq!(process["pid"], PI, "{answer:#}");
    let ids = process["candidates"].as_array().unwrap().iter();
    let titles = process["candidate_titles"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    ids.map(|id| text(id).unwrap())
        .zip(titles.map(text))
        .collect()
}

const VIEWS: &[&str] = &[
    "list --json",
    "list --all --json",
    "list --limit 1 --json",
    "status --json",
    "why --pid 4730 --json",
];

#[test]
fn every_view_has_the_titles_of_what_a_process_may_be_serving() {
    let world = world();
    let title = |text: &str| Some(text.to_owned());
    let expected = [
        (S2.to_owned(), title("paint the door")),
        (S1.to_owned(), title("mend the roof")),
    ];
    for view in VIEWS {
        assert_eq!(candidates(&world.run(view).json()), expected, "{view}");
    }
    let said = world.run("why --pid 4730").out;
    assert!(
        said.contains(&format!("It may serve {S1}: mend the roof.")),
        "{said}"
    );
}

#[test]
fn titles_that_are_prompts_are_kept_out_of_every_view() {
    let world = world();
    world.write(".config/whosup/config.toml", "prompts = \"hide\"\n");
    for view in VIEWS {
        let candidates = candidates(&world.run(view).json());
        assert_eq!(candidates.len(), 2, "{view}");
        assert!(
            candidates.iter().all(|(_, title)| title.is_none()),
            "{view}: {candidates:?}"
        );
    }
    let said = world.run("why --pid 4730").out;
    assert!(said.contains(&format!("It may serve {S1}.")), "{said}");
}
