//! Many sessions in several tmux servers.

use std::os::unix::fs::PermissionsExt as _;

use super::attach::write_session_of;
use super::terminal::{Tmux, agent_command};
use super::world::{World, said};

const SERVERS: usize = 3;
const SESSIONS: usize = 51;

/// However many panes there are, each server is asked once, and no other program runs: `PATH` has
/// none.
#[test]
fn fifty_sessions_in_three_servers_cost_three_commands() {
    let world = World::new();
    let mut servers = Vec::new();
    for name in 0..SERVERS {
        let Some(tmux) = Tmux::start_named(&world, &name.to_string(), 100, "exec cat") else {
            return;
        };
        servers.push(tmux);
    }
    drop(world.pose_as_claude());
    let program = world
        .root()
        .join("opt/@anthropic-ai/claude-code/bin/claude");
    let command = agent_command(&world, &program);
    for (number, tmux) in (0..SESSIONS).zip(servers.iter().cycle()) {
        let made = tmux.run(&["new-window", "-d", "-P", "-F", "#{pane_pid}", &command]);
        let pid = String::from_utf8(made.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        write_session_of(
            &world,
            pid,
            &format!("0a022b20-e8f2-410e-9552-{number:012}"),
        );
    }

    let (folder, log) = (world.root().join("only"), world.root().join("log"));
    std::fs::create_dir_all(&folder).unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nPATH='{path}'; export PATH; exec tmux \"$@\"\n",
        log.display()
    );
    let wrapper = folder.join("tmux");
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let answer = said(world.whosup().env("PATH", &folder).args(["list", "--json"])).json();
    let sessions = answer["sessions"].as_array().unwrap();
    // Those of other tests have another home.
    let own = sessions.iter().filter(|one| one["home"].is_null());
    let in_tmux = own.filter(|one| one["pane"]["host"] == "tmux");
    assert_eq!(in_tmux.count(), SESSIONS, "{:#}", answer["problems"]);
    let log = std::fs::read_to_string(&log).unwrap();
    let asked = |tmux: &Tmux| {
        let socket = tmux.socket.to_string_lossy().into_owned();
        log.lines().filter(|line| line.contains(&socket)).count()
    };
    let asked: Vec<usize> = servers.iter().map(asked).collect();
    assert_eq!(asked, [1; SERVERS], "{log}");
    // Servers of other tests are asked too, but not more often.
    let mut lines: Vec<&str> = log.lines().collect();
    let commands = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(commands, lines.len(), "{log}");
}
