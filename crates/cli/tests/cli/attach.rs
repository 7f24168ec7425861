//! What a person sees after `whosup attach`, inside and outside of tmux.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::terminal::{Tmux, agent_command};
use super::world::{WHOSUP, World, wait_for};

/// A tmux with two tmux sessions: `main` with a shell, and `other`, where an agent of session
/// 1 lives in the second pane of the window `api`, which is not current.
struct Scene {
    // The server ends before the directory of its socket is removed.
    tmux: Tmux,
    world: World,
    /// The agent's pane.
    pane: String,
}

impl Scene {
    fn build() -> Option<Self> {
        let world = World::new();
        let tmux = Tmux::start(&world, 100, "exec cat")?;
        tmux.run(&[
            "new-session",
            "-d",
            "-s",
            "other",
            "-n",
            "first",
            "exec cat",
        ]);
        tmux.run(&["new-window", "-d", "-t", "other", "-n", "api", "exec cat"]);
        let pane = start_agent(&world, &tmux, &["split-window", "-d", "-t", "other:api"]);
        tmux.run(&["select-window", "-t", "other:first"]);
        Some(Self { world, tmux, pane })
    }

    fn printed(&self, arguments: &[&str]) -> String {
        printed(&self.tmux, arguments)
    }

    /// Waits until a client of this tmux shows the agent's pane.
    fn wait_until_shown(&self) {
        let format = "#{client_session} #{window_name} #{pane_id}";
        let expected = format!("other api {}", self.pane);
        wait_for("the pane to be shown", || {
            let clients = self.printed(&["list-clients", "-F", format]);
            clients.lines().any(|line| line == expected).then_some(())
        });
    }
}

fn printed(tmux: &Tmux, arguments: &[&str]) -> String {
    let output = tmux.run(arguments);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts an agent of session 1 in a new pane, and returns the pane.
pub(crate) fn start_agent(world: &World, tmux: &Tmux, arguments: &[&str]) -> String {
    drop(world.pose_as_claude());
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    start_agent_of(world, tmux, arguments, &agent_command(world, &program))
}

/// The same with another command.
pub(crate) fn start_agent_of(
    world: &World,
    tmux: &Tmux,
    arguments: &[&str],
    command: &str,
) -> String {
    let print = ["-P", "-F", "#{pane_id} #{pane_pid}", command];
    let made = printed(tmux, &[arguments, &print].concat());
    let (pane, pid) = made.split_once(' ').unwrap();
    write_session(world, pid.parse().unwrap());
    pane.to_owned()
}

/// Writes the files of Claude Code for session 1, once its process runs.
pub(crate) fn write_session(world: &World, pid: u32) {
    write_session_of(world, pid, &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
}

/// Writes the record that Claude Code keeps of a process, once that runs.
pub(crate) fn write_session_of(world: &World, pid: u32, session: &str) {
    let start = wait_for("the agent to run", || {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(')')?.1;
        let start = fields.split_whitespace().nth(19)?.to_owned();
        (comm.trim() == "claude").then_some(start)
    });
    world.write_claude_record(pid, &start, session);
}

/// A line of shell that runs `whosup attach` in this world.
fn attach_line(world: &World, arguments: &str) -> String {
    format!(
        "HOME='{}' '{WHOSUP}' attach {arguments}",
        world.home().display()
    )
}

/// A terminal outside of any multiplexer, in which a line of shell runs. It ends with the
/// value.
struct Outside(Child);

impl Outside {
    fn run(world: &World, line: &str) -> Self {
        let mut command = Command::new("setsid");
        // Its parent exits at once, so that no ancestor leads to the pane of the test.
        command.args(["--fork", "script", "-qfc", line]);
        command.arg(world.root().join("typescript"));
        for name in ["TMUX", "TMUX_PANE", "STY", "ZELLIJ"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm").current_dir(world.work_dir());
        command.stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

#[test]
fn from_inside_of_the_same_tmux_the_client_is_switched_to_the_pane() {
    let Some(scene) = Scene::build() else {
        return;
    };
    // A person's terminal: the pane of another tmux, which shows `main`.
    let attach = format!(
        "env -u TMUX tmux -S '{}' attach-session -t main",
        scene.tmux.socket.display()
    );
    let Some(_terminal) = Tmux::start_named(&scene.world, "person", 100, &attach) else {
        return;
    };
    wait_for("the person's client", || {
        let clients = scene.printed(&["list-clients", "-F", "#{client_session}"]);
        (clients == "main").then_some(())
    });
    let line = attach_line(&scene.world, &scene.world.s1);
    scene.tmux.run(&["new-window", "-t", "main", &line]);
    scene.wait_until_shown();
    // No second client came.
    assert_eq!(scene.printed(&["list-clients", "-F", "x"]), "x");
}

#[test]
fn from_outside_the_pane_is_attached_here() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let line = attach_line(&scene.world, &scene.world.s1);
    let _terminal = Outside::run(&scene.world, &line);
    scene.wait_until_shown();
}

#[test]
fn without_a_terminal_a_live_session_can_not_be_shown_and_has_not_exited() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let said = scene.world.run(["attach", &scene.world.s1]);
    assert_eq!(said.status, 2, "{}", said.err);
    let named = format!(
        "error: cannot show claude-code session {} from here",
        scene.world.s1
    );
    assert!(said.err.contains(&named), "{}", said.err);
    assert!(said.err.contains("cause: `tmux` failed"), "{}", said.err);
}

#[test]
fn while_the_client_is_suspended_the_shell_has_the_terminal() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let mark = |name: &str| scene.world.root().join(name);
    let (stopped, ended) = (mark("stopped"), mark("ended"));
    let line = attach_line(&scene.world, &scene.world.s1);
    let (is_stopped, is_ended) = (stopped.display(), ended.display());
    let shell = format!("{line}; touch '{is_stopped}'; fg; echo \\$? > '{is_ended}'");
    let _terminal = Outside::run(&scene.world, &format!("sh -mc \"{shell}\""));
    scene.wait_until_shown();
    let client = scene.printed(&["list-clients", "-F", "#{client_name}"]);
    scene.tmux.run(&["suspend-client", "-t", &client]);
    wait_for("the shell", || stopped.exists().then_some(()));
    scene.wait_until_shown();
    let status = wait_for("the end", || {
        scene.tmux.run(&["detach-client", "-t", &client]);
        let status = std::fs::read_to_string(&ended).ok()?;
        (!status.is_empty()).then_some(status)
    });
    assert_eq!(status, "0\n");
}

#[test]
fn from_inside_another_tmux_instructions_are_printed() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let line = attach_line(&scene.world, &scene.world.s1);
    let Some(other) = Tmux::start_named(&scene.world, "another", 200, &format!("{line}; cat"))
    else {
        return;
    };
    let text = wait_for("what is said", || {
        let text = printed(&other, &["capture-pane", "-p", "-J", "-t", "main"]);
        text.contains("hint:").then_some(text)
    });
    assert!(
        text.contains("another tmux server: detach from it first"),
        "{text}"
    );
    assert!(text.contains("attach-session -t"), "{text}");
    assert_eq!(scene.printed(&["list-clients"]), "");
}

#[test]
fn the_command_can_be_printed_and_the_json_has_it() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let world = &scene.world;
    let said = world.run(["show", "--json", &world.s1]);
    let session = &said.sessions()[0];
    assert_eq!(session["pane"]["session"], "other");
    assert_eq!(session["pane"]["window"], "api");
    assert_eq!(session["pane"]["pane"], scene.pane.as_str());
    let argv = session["attach"]["argv"].as_array().unwrap();
    let argv: Vec<&str> = argv.iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(argv[0], "tmux");
    let printed = world.root().join("printed");
    let line = attach_line(
        world,
        &format!("--print {} > '{}'", world.s1, printed.display()),
    );
    let _terminal = Outside::run(world, &line);
    let text = wait_for("the command", || {
        let text = std::fs::read_to_string(&printed).ok()?;
        text.ends_with('\n').then_some(text)
    });
    assert!(text.trim().ends_with(&argv.join(" ")), "{text}");
    let table = world.run(["list", "--columns", "id,pane,tty"]).out;
    assert!(table.contains("tmux other:api.1"), "{table}");
    assert!(table.contains("pts/"), "{table}");
}

#[test]
fn without_an_id_a_person_chooses_and_a_program_is_refused() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let world = &scene.world;
    let refused = world.run(["attach"]);
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert!(refused.err.contains(&world.s1[..8]), "{}", refused.err);
    let line = attach_line(world, "");
    let made = ["new-window", "-P", "-F", "#{pane_id}", "-t", "main"];
    let line = format!("{line}; cat");
    let chooser = scene.printed(&[&made[..], &[line.as_str()]].concat());
    let screen = || scene.printed(&["capture-pane", "-p", "-t", &chooser]);
    wait_for("the list", || {
        screen().contains(&world.s1[..8]).then_some(())
    });
    scene
        .tmux
        .run(&["send-keys", "-t", &chooser, "nothing like it"]);
    wait_for("an empty list", || {
        (!screen().contains(&world.s1[..8])).then_some(())
    });
    scene
        .tmux
        .run(&["send-keys", "-t", &chooser, "-N", "15", "BSpace"]);
    scene
        .tmux
        .run(&["send-keys", "-t", &chooser, &world.s1[..8]]);
    wait_for("the session again", || {
        screen().contains("Fix the flaky login").then_some(())
    });
    scene.tmux.run(&["send-keys", "-t", &chooser, "Enter"]);
    // No client shows it, but the window becomes the current one.
    wait_for("the window", || {
        let format = "#{window_active} #{pane_active}";
        let printed = scene.printed(&["display-message", "-p", "-t", &scene.pane, format]);
        (printed == "1 1").then_some(())
    });
}

#[test]
fn next_goes_to_the_session_that_has_waited_longest() {
    let Some(scene) = Scene::build() else {
        return;
    };
    let world = &scene.world;
    let none = world.run(["attach", "--waiting", "--print"]);
    assert_eq!((none.status, none.err.as_str()), (4, "no session waits\n"));
    set_waiting(world, "permission prompt");
    let said = world.run(["attach", "--waiting", "--print"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.contains(&scene.pane), "{}", said.out);
}

/// Lets the agent of session 1 wait.
pub(crate) fn set_waiting(world: &World, what: &str) {
    let status = format!("\"status\":\"waiting\",\"waitingFor\":\"{what}\"");
    set_status(world, &status);
}

/// Changes what the agent of session 1 reports of itself.
pub(crate) fn set_status(world: &World, status: &str) {
    let directory = world.home().join(".claude/sessions");
    let mut records = directory
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let record = records.next().unwrap();
    let text = std::fs::read_to_string(&record).unwrap();
    let changed = text.replace("\"status\":\"idle\"", status);
    assert_ne!(changed, text);
    write_anew(&record, &changed);
}

fn write_anew(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    std::fs::write(&aside, text).unwrap();
    std::fs::rename(&aside, path).unwrap();
}

#[test]
fn a_session_that_has_exited_is_not_gone_to() {
    let world = World::new();
    world.write_claude_transcript(".claude", &world.s1);
    let said = world.run(["attach", &world.s1]);
    assert_ne!(said.status, 0);
    assert!(
        said.err.contains("cannot show claude-code session"),
        "{}",
        said.err
    );
}
