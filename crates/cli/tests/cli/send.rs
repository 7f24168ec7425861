//! What a pane shows after `whosup send`, and when nothing is typed.

use super::attach::{set_status, set_waiting, start_agent, start_agent_of};
use super::terminal::{Tmux, agent_command};
use super::world::{Said, World, wait_for};

struct Scene {
    // The server ends before the directory of its socket is removed.
    tmux: Tmux,
    world: World,
    pane: String,
}

impl Scene {
    /// An agent that reads lines and shows them.
    fn build() -> Option<Self> {
        let world = World::new();
        let tmux = Tmux::start(&world, 100, "exec cat")?;
        let pane = start_agent(&world, &tmux, &["new-window", "-d", "-t", "main"]);
        Some(Self { world, tmux, pane })
    }

    /// An agent that runs a script of shell.
    fn of_script(script: &str) -> Option<Self> {
        let world = World::new();
        let tmux = Tmux::start(&world, 100, "exec cat")?;
        let program = world.shell_as_claude();
        let file = world.write("script", script);
        let command = format!("{} '{}'", agent_command(&world, &program), file.display());
        let window = ["new-window", "-d", "-t", "main"];
        let pane = start_agent_of(&world, &tmux, &window, &command);
        Some(Self { world, tmux, pane })
    }

    fn send(&self, arguments: &[&str]) -> Said {
        let session: &str = &self.world.s1;
        self.world.run([&["send", session], arguments].concat())
    }

    fn screen(&self) -> String {
        let output = self.tmux.run(&["capture-pane", "-p", "-t", &self.pane]);
        String::from_utf8(output.stdout).unwrap()
    }

    fn wait_for_screen(&self, expected: &str) {
        wait_for(expected, || {
            (self.screen().trim_end() == expected).then_some(())
        });
    }
}

/// Shows each byte that it gets, in a terminal in raw mode with bracketed paste.
const SHOWS_BYTES: &str = "stty raw -echo; printf '\\033[?2004hready\\r\\n'; cat -v";

#[test]
fn a_text_is_typed_and_enter_is_a_key_of_its_own() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let said = scene.send(&["run the tests; now"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(
        said.err.contains("typed into claude-code session"),
        "{}",
        said.err
    );
    scene.wait_for_screen("run the tests; now");
    // `cat` repeats the line once it is submitted.
    let said = scene.send(&["", "--enter"]);
    assert_eq!(said.status, 0, "{}", said.err);
    scene.wait_for_screen("run the tests; now\nrun the tests; now");
}

#[test]
fn a_pane_in_scrollback_gets_the_text() {
    let Some(scene) = Scene::build() else {
        return;
    };
    scene.tmux.run(&["copy-mode", "-t", &scene.pane]);
    let said = scene.send(&["hello", "--enter"]);
    assert_eq!(said.status, 0, "{}", said.err);
    scene
        .tmux
        .run(&["send-keys", "-t", &scene.pane, "-X", "cancel"]);
    scene.wait_for_screen("hello\nhello");
}

#[test]
fn line_breaks_are_pasted_and_control_characters_removed() {
    let Some(scene) = Scene::of_script(SHOWS_BYTES) else {
        return;
    };
    scene.wait_for_screen("ready");
    let mut command = scene.world.whosup();
    command.args(["send", &scene.world.s1, "-", "--enter"]);
    command.write_stdin("one\u{1b}[201~\u{3}\ntwo\n");
    let said = super::world::said(&mut command);
    assert_eq!(said.status, 0, "{}", said.err);
    // `cat -v` shows ESC as `^[`, a line break as itself, and Enter as `^M`.
    scene.wait_for_screen("ready\n^[[200~one\n          two^[[201~^M");
}

#[test]
fn line_breaks_that_would_be_enter_are_not_typed() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let said = scene.send(&["one\ntwo"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("would be an Enter"), "{}", said.err);
    assert_eq!(scene.screen().trim(), "");
}

#[test]
fn nothing_is_typed_at_a_permission_prompt_or_in_a_turn() {
    for (status, why) in [
        ("\"status\":\"busy\"", "it is in a turn"),
        ("waiting", "it asks for a permission"),
    ] {
        let Some(scene) = Scene::build() else {
            return;
        };
        if status == "waiting" {
            set_waiting(&scene.world, "permission prompt");
        } else {
            set_status(&scene.world, status);
        }
        let said = scene.send(&["y", "--enter"]);
        assert_eq!(said.status, 2, "{}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
        assert_eq!(scene.screen().trim(), "", "{why}");
        let said = scene.send(&["forced", "--force"]);
        assert_eq!(said.status, 0, "{}", said.err);
        scene.wait_for_screen("forced");
    }
}

/// Ends the program that reads a FIFO on drop: a background job outlives its terminal.
struct EndsReader(std::path::PathBuf);

impl Drop for EndsReader {
    fn drop(&mut self) {
        use rustix::fs::{Mode, OFlags, open};
        open(&self.0, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).ok();
    }
}

/// Even with `--force`: the text would be a command for the program that has the terminal.
#[test]
fn nothing_is_typed_while_another_program_has_the_terminal() {
    let world = World::new();
    let Some(tmux) = Tmux::start(&world, 100, "exec cat") else {
        return;
    };
    drop(world.pose_as_claude());
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    // A background job of a shell, which reads no terminal.
    let (ready, input) = (world.root().join("pid"), world.root().join("input"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &input,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let script = format!(
        "cd '{}'; HOME='{}' '{}' '{}' & echo $! > '{}'; exec cat",
        world.work_dir().display(),
        world.home().display(),
        program.display(),
        input.display(),
        ready.display()
    );
    let script = world.write("script", script);
    let shell = format!("bash --norc --noprofile -m '{}'", script.display());
    let made = [
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{pane_id}",
        "-t",
        "main",
        &shell,
    ];
    let pane = String::from_utf8(tmux.run(&made).stdout)
        .unwrap()
        .trim()
        .to_owned();
    let pid = wait_for("the agent's PID", || {
        let text = std::fs::read_to_string(&ready).ok()?;
        text.trim().parse().ok()
    });
    super::attach::write_session(&world, pid);
    let scene = Scene { world, tmux, pane };
    let _ended = EndsReader(input);
    for options in [&["rm -rf x", "--enter"][..], &["rm -rf x", "--force"]] {
        let said = scene.send(options);
        assert_eq!(said.status, 2, "{}", said.err);
        let why = "is not in the foreground of";
        assert!(said.err.contains(why), "{}", said.err);
        assert!(said.err.contains("`cat` is"), "{}", said.err);
        assert_eq!(scene.screen().trim(), "");
    }
}

#[test]
fn nothing_is_typed_for_a_session_without_a_pane() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let said = world.run(["send", &world.s1, "x", "--force"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("its pane is not known"), "{}", said.err);
    let gone = world.run(["send", &world.s2, "x"]);
    assert_eq!(gone.status, 4, "{}", gone.err);
}

#[test]
fn the_answer_is_waited_for() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let transcript = scene
        .world
        .write_claude_transcript(".claude", &scene.world.s1);
    let answered = std::thread::scope(|threads| {
        let waiting = threads.spawn(|| scene.send(&["what?", "--enter", "--wait"]));
        scene.wait_for_screen("what?\nwhat?");
        let at = jiff::Timestamp::now().to_string();
        let line = serde_json::json!({
            "type": "assistant",
            "isSidechain": false,
            "message": {
                "role": "assistant",
                "model": "m",
                "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": "That is the answer." }],
            },
            "timestamp": at,
            "cwd": scene.world.work_dir(),
            "sessionId": scene.world.s1,
            "version": "2.1.197",
        });
        let before = std::fs::read_to_string(&transcript).unwrap();
        std::fs::write(&transcript, format!("{before}{line}\n")).unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(answered.status, 0, "{}", answered.err);
    assert_eq!(answered.out, "That is the answer.\n");
}
