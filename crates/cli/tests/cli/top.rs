//! `top` in a real terminal: what it shows, and how it leaves the terminal.

use std::path::PathBuf;

use super::terminal::Tmux;
use super::world::{WHOSUP, World, said, wait_for};

/// Printed by the shell when `top` has ended, with its exit status.
const ENDED: &str = "ended-with";

/// A shell in a pane, and `top` in it.
struct Top<'a> {
    world: &'a World,
    tmux: Tmux,
}

impl<'a> Top<'a> {
    /// Starts it; `None` if there is no tmux.
    fn start(world: &'a World, width: usize, variables: &str) -> Option<Self> {
        let shell = format!(
            "cd '{}' && exec env -i HOME='{}' PATH=\"$PATH\" TERM=\"$TERM\" PS1='$ ' \
             bash --norc --noprofile",
            world.work_dir().display(),
            world.home().display()
        );
        let tmux = Tmux::start(world, width, &shell)?;
        let top = Self { world, tmux };
        // The shell's line would be in its own mode.
        let run = format!(
            "stty -a > before; (echo $BASHPID > pid; exec env {variables} '{WHOSUP}' top --cwd .); \
             status=$?; stty -a > after; echo {ENDED} $status"
        );
        std::fs::write(top.file("run"), run).unwrap();
        top.keys(&[". ./run", "Enter"]);
        Some(top)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.world.work_dir().join(name)
    }

    fn keys(&self, keys: &[&str]) {
        let arguments = [&["send-keys", "-t", "main"], keys].concat();
        assert!(self.tmux.run(&arguments).status.success());
    }

    fn ask(&self, format: &str) -> String {
        let arguments = ["display-message", "-p", "-t", "main", format];
        let printed = String::from_utf8(self.tmux.run(&arguments).stdout).unwrap();
        printed.trim().to_owned()
    }

    fn screen(&self) -> String {
        let screen = self.tmux.run(&["capture-pane", "-p", "-t", "main"]).stdout;
        String::from_utf8(screen).unwrap()
    }

    /// Waits until the screen is as expected.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let last = std::cell::RefCell::new(String::new());
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(what, || {
                let screen = self.screen();
                last.replace(screen.clone());
                is_so(&screen).then_some(screen)
            })
        }));
        found.unwrap_or_else(|_| panic!("waited too long for {what}:\n{}", last.borrow()))
    }

    fn pid(&self) -> rustix::process::Pid {
        let pid = std::fs::read_to_string(self.file("pid")).unwrap();
        rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap()
    }

    /// Waits until it has ended, and checks that the terminal is as it was.
    #[track_caller]
    fn check_ended(&self, status: i32) {
        let ended = format!("{ENDED} {status}");
        self.until("the end", |screen| screen.contains(&ended));
        self.check_given_back();
        // The first line has the size.
        let mode = |name| {
            let mode = std::fs::read_to_string(self.file(name)).unwrap();
            mode.split_once('\n').unwrap().1.to_owned()
        };
        assert_eq!(mode("after"), mode("before"));
    }

    #[track_caller]
    fn check_given_back(&self) {
        let flags = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        assert_eq!(self.ask(flags), "0 0 1");
    }
}

/// A live session of a real process.
fn shop(world: &World) -> super::world::Posing {
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    posing
}

#[test]
fn top_shows_real_processes_as_they_change_and_leaves_the_terminal_as_it_was() {
    let world = World::new();
    let mut posing = shop(&world);
    let Some(top) = Top::start(&world, 100, "") else {
        return;
    };
    let is_row = |line: &str| line.contains("claude-code") && line.contains("Fix the flaky");
    let screen = top.until("the row with its memory", |screen| {
        screen
            .lines()
            .any(|line| is_row(line) && line.contains("0%"))
    });
    assert!(screen.starts_with("whosup top 1 idle"), "{screen}");
    assert_eq!(top.ask("#{alternate_on} #{mouse_any_flag}"), "1 1");
    top.keys(&["Enter"]);
    top.until("the evidence", |screen| screen.contains("start-stamp"));
    top.keys(&["q", "m"]);
    top.until("the messages", |screen| screen.contains("user"));
    top.keys(&["Escape"]);
    top.until("the rows", |screen| screen.lines().any(is_row));
    top.keys(&["g"]);
    top.until("what kept it from going", |screen| {
        screen.contains("error: cannot show") && screen.lines().any(is_row)
    });
    posing.kill();
    top.until("the death", |screen| {
        screen
            .lines()
            .any(|line| is_row(line) && line.contains("orphaned"))
    });
    top.keys(&["r"]);
    top.until("the command", |screen| screen.contains("copied: cd "));
    top.keys(&["/", "nothing", "Enter"]);
    top.until("no row", |screen| screen.contains("No session matches"));
    top.keys(&["Escape"]);
    top.until("the row again", |screen| screen.lines().any(is_row));
    top.keys(&["d"]);
    top.until("the empty view", |screen| {
        screen.contains("No agent is running")
    });
    top.tmux
        .run(&["resize-window", "-t", "main", "-x", "50", "-y", "20"]);
    top.until("the refusal", |screen| {
        screen.contains("needs 60x6, this is 50x20")
    });
    // A key and a new size at once: neither is lost.
    top.keys(&["?"]);
    top.tmux.run(&[
        "resize-window",
        "-t",
        "main",
        "-x",
        "90",
        "-y",
        "20",
        ";",
        "send-keys",
        "-t",
        "main",
        "q",
        "q",
    ]);
    top.check_ended(0);
}

#[test]
fn top_gives_the_terminal_back_when_it_is_suspended_and_when_a_signal_ends_it() {
    let world = World::new();
    let _posing = shop(&world);
    let Some(top) = Top::start(&world, 80, "NO_COLOR=1") else {
        return;
    };
    let is_shown = |screen: &str| screen.contains("claude-code");
    top.until("the row", is_shown);
    let escapes = top
        .tmux
        .run(&["capture-pane", "-e", "-p", "-t", "main"])
        .stdout;
    let escapes = String::from_utf8(escapes).unwrap();
    for colour in 30..=37 {
        assert!(!escapes.contains(&format!("[{colour}m")), "{escapes:?}");
    }
    top.keys(&["C-z"]);
    // The shell sees it stop by SIGSTOP.
    top.check_ended(128 + 19);
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", top.pid().as_raw_nonzero()));
        let stat = stat.unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next()
    };
    wait_for("its stop", || (state() == Some('T')).then_some(()));
    top.keys(&["fg", "Enter"]);
    wait_for("its screen", || {
        (top.ask("#{alternate_on}") == "1").then_some(())
    });
    top.until("the row again", is_shown);
    rustix::process::kill_process(top.pid(), rustix::process::Signal::TERM).unwrap();
    wait_for("the usual screen", || {
        (top.ask("#{alternate_on}") == "0").then_some(())
    });
    top.check_given_back();
}

#[test]
fn a_signal_ends_top_as_it_ends_other_programs() {
    for (signal, status) in [
        (rustix::process::Signal::TERM, 143),
        (rustix::process::Signal::HUP, 129),
    ] {
        let world = World::new();
        let _posing = shop(&world);
        let Some(top) = Top::start(&world, 80, "") else {
            return;
        };
        top.until("the row", |screen| screen.contains("claude-code"));
        rustix::process::kill_process(top.pid(), signal).unwrap();
        top.check_ended(status);
    }
}

#[test]
fn top_ends_when_its_terminal_goes() {
    let world = World::new();
    let _posing = shop(&world);
    let Some(top) = Top::start(&world, 80, "") else {
        return;
    };
    top.until("the row", |screen| screen.contains("claude-code"));
    let pid = top.pid();
    top.tmux.run(&["kill-server"]);
    wait_for("its end", || {
        rustix::process::test_kill_process(pid)
            .is_err()
            .then_some(())
    });
}

#[test]
fn without_a_terminal_top_names_what_needs_none() {
    let world = World::new();
    let said = said(world.whosup().arg("top"));
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    for name in ["whosup watch", "whosup list"] {
        assert!(said.err.contains(name), "{}", said.err);
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_panic_is_reported_on_the_usual_screen_and_leaves_the_terminal_as_it_was() {
    let world = World::new();
    let Some(top) = Top::start(&world, 100, "WHOSUP_TOP_PANICS=1") else {
        return;
    };
    top.check_ended(101);
    assert!(top.screen().contains("a test wants this panic"));
}
