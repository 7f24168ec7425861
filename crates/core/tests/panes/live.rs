//! What is listed of real tmux servers.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use whosup_core::sources::panes::{Pane, PaneHost as _, PaneServer, tmux::Tmux};
use whosup_process::Pid;

use super::server::{OnlyIn, Patient, Server, machine, machine_with, wait_for};

/// Lists the panes of servers that all answer.
#[track_caller]
fn list(servers: &[&Server]) -> Vec<Pane> {
    let listed = Tmux.list(&machine(servers));
    assert_eq!(listed.problems, []);
    listed.found
}

fn server_of(pane: &Pane) -> &PaneServer {
    pane.server.as_ref().unwrap()
}

fn pane<'a>(panes: &'a [Pane], id: &str) -> &'a Pane {
    let mut panes = panes.iter();
    panes.find(|pane| pane.pane.as_deref() == Some(id)).unwrap()
}

#[test]
fn panes_of_every_window_are_found_on_a_socket_of_its_own() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["split-window", "sleep 601"]);
    server.run(&["new-window", "sleep 602"]);
    // A program that was just forked has no terminal yet.
    for argument in ["600", "601", "602"] {
        wait_for(argument, || {
            let machine = machine(&[&server]);
            let processes = machine.table().processes().unwrap().iter();
            let argv = |one| {
                machine
                    .table()
                    .details(one)
                    .argv
                    .clone()
                    .unwrap_or_default()
            };
            let mut sleepers = processes.filter(|one| argv(*one).iter().any(|arg| arg == argument));
            sleepers.any(|one| one.tty.is_some()).then_some(())
        });
    }
    let machine = machine(&[&server]);
    let panes = Tmux.list(&machine);
    assert_eq!(panes.problems, []);
    let panes = panes.found;
    let ids: Vec<_> = panes
        .iter()
        .filter_map(|pane| pane.pane.as_deref())
        .collect();
    assert_eq!(ids, ["%0", "%1", "%2"]);
    let process = machine.table().seen(server.pid).unwrap();
    for pane in &panes {
        let its = machine.table().seen(pane.pid.unwrap()).unwrap();
        assert_eq!(
            pane.pid,
            Some(server.process_in(pane.pane.as_ref().unwrap()))
        );
        assert_eq!((pane.tty, pane.is_dead), (its.tty, false));
        assert!(pane.tty.is_some());
        assert_eq!(pane.host, "tmux");
        assert_eq!(pane.session.as_deref(), Some("my work"));
        assert_eq!(server_of(pane).socket, server.socket);
        assert_eq!(server_of(pane).pid, Some(server.pid));
        assert_eq!(server_of(pane).stamp.as_ref(), Some(&process.stamp));
    }
}

#[test]
fn a_server_in_the_foreground_is_found() {
    let Some(server) = Server::start_in_foreground("sleep 600") else {
        return;
    };
    let panes = list(&[&server]);
    assert_eq!(pane(&panes, "%0").pid, Some(server.process_in("%0")));
}

#[test]
fn a_server_is_found_by_its_label_and_directory() {
    let directory = tempfile::tempdir().unwrap();
    let parent = directory.path().canonicalize().unwrap();
    let uid = rustix::process::getuid().as_raw();
    let socket = parent.join(format!("tmux-{uid}")).join("work");
    let options = ["-L", "work"].map(OsString::from);
    let variables = [("TMUX_TMPDIR", parent.as_path())];
    let started = Server::start_with(directory, socket, &options, &variables, "sleep 600");
    let Some(server) = started else {
        return;
    };
    assert_eq!(list(&[&server]).len(), 1);
}

#[test]
fn a_server_is_found_by_a_relative_path() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().canonicalize().unwrap().join("socket");
    let options = ["-S", "socket"].map(OsString::from);
    let started = Server::start_with(directory, socket, &options, &[], "sleep 600");
    let Some(server) = started else {
        return;
    };
    let panes = list(&[&server]);
    assert_eq!(server_of(pane(&panes, "%0")).socket, server.socket);
}

#[test]
fn panes_of_two_servers_are_kept_apart() {
    let Some(one) = Server::start("sleep 600") else {
        return;
    };
    let Some(other) = Server::start("sleep 600") else {
        return;
    };
    let panes = list(&[&one, &other]);
    assert_eq!(panes.len(), 2);
    for server in [&one, &other] {
        let mut its = panes.iter();
        let its = its
            .find(|pane| server_of(pane).pid == Some(server.pid))
            .unwrap();
        assert_eq!(its.pane.as_deref(), Some("%0"));
        assert_eq!(its.pid, Some(server.process_in("%0")));
        assert_eq!(server_of(its).socket, server.socket);
    }
}

#[test]
fn a_server_that_hangs_costs_the_deadline_and_hides_no_other() {
    let Some(mut hanging) = Server::start("sleep 600") else {
        return;
    };
    let Some(answering) = Server::start("sleep 600") else {
        return;
    };
    hanging.stop();
    let deadline = Duration::from_secs(4);
    let machine = machine_with(&[&hanging, &answering], Patient(deadline), &[]);
    let started = Instant::now();
    let listed = Tmux.list(&machine);
    let took = started.elapsed();
    assert!(deadline <= took && took < deadline * 3, "{took:?}");
    let servers: Vec<_> = listed
        .found
        .iter()
        .map(|pane| server_of(pane).pid)
        .collect();
    assert_eq!(servers, [Some(answering.pid)]);
    let [problem] = listed.problems.as_slice() else {
        panic!("{:?}", listed.problems);
    };
    let socket = hanging.socket.display();
    let about = format!("cannot list the panes of the tmux server on `{socket}`: no answer within");
    assert!(problem.message.starts_with(&about), "{}", problem.message);
}

#[test]
fn no_title_hides_a_pane_or_moves_its_fields() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let titles = [
        "",
        " ",
        "a|b: c, %9 1 0 /dev/pts/0",
        "✳ \u{202e}日本 é",
        "#{pid} #(id)",
    ];
    let mut expected = vec![("%0".to_owned(), server.process_in("%0"), None)];
    for title in titles {
        let new = ["new-window", "-P", "-F", "#{pane_id}", "sleep 600"];
        let id = server.run(&new);
        server.run(&["select-pane", "-t", &id, "-T", &title.replace('#', "##")]);
        let pid = server.process_in(&id);
        expected.push((id, pid, Some(title)));
    }
    let panes = list(&[&server]);
    assert_eq!(panes.len(), expected.len());
    for (id, pid, title) in expected {
        let pane = pane(&panes, &id);
        assert_eq!(pane.pid, Some(pid), "{title:?}");
        if let Some(title) = title {
            assert_eq!(pane.title, title);
        }
    }
}

#[test]
fn bytes_that_a_program_writes_as_its_title_hide_no_pane() {
    let write = r"printf '\033]2;a\tb\rc\nd|e:caf\351\033\\'; printf '\033]2;then\007'; sleep 600";
    let Some(server) = Server::start(write) else {
        return;
    };
    server.run(&["split-window", "sleep 601"]);
    let title = ["display-message", "-p", "-t", "%0", "#{pane_title}"];
    wait_for("the last title", || {
        (server.run(&title) == "then").then_some(())
    });
    let printf = r"printf '\033]2;x\ty|z: \351\r\n%%9 1 0\007'; sleep 600";
    server.run(&["respawn-pane", "-k", "-t", "%0", printf]);
    let panes = list(&[&server]);
    for id in ["%0", "%1"] {
        assert_eq!(pane(&panes, id).pid, Some(server.process_in(id)));
    }
}

#[test]
fn a_pane_whose_process_has_exited_is_dead() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    server.run(&["split-window", "true"]);
    let panes = wait_for("a dead pane", || {
        let panes = list(&[&server]);
        pane(&panes, "%1").is_dead.then_some(panes)
    });
    assert_eq!(pane(&panes, "%1").tty, None);
    assert!(!pane(&panes, "%0").is_dead);
}

#[test]
fn a_window_in_two_tmux_sessions_is_listed_once() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["new-session", "-d", "-t", "my work", "-s", "again"]);
    assert_eq!(list(&[&server]).len(), 1);
}

#[test]
fn a_server_without_panes_is_no_problem() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["set-option", "-g", "exit-empty", "off"]);
    server.run(&["kill-session", "-t", "my work"]);
    assert_eq!(list(&[&server]), []);
}

#[test]
fn a_server_whose_socket_is_gone_is_a_problem() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let aside = server.directory().join("aside");
    std::fs::rename(&server.socket, &aside).unwrap();
    let machine = machine_with(&[&server], OnlyIn(server.directory()), &[]);
    let listed = Tmux.list(&machine);
    std::fs::rename(&aside, &server.socket).unwrap();
    assert_eq!(listed.found, []);
    let messages: Vec<_> = listed.problems.into_iter().map(|one| one.message).collect();
    let pid = server.pid;
    let message = format!("cannot list the panes of tmux server `{pid}`: no socket leads to it");
    assert_eq!(messages, [message]);
}

#[test]
fn our_own_variable_leads_to_a_socket_that_was_moved() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let aside = server.directory().join("aside");
    std::fs::rename(&server.socket, &aside).unwrap();
    let mut tmux = aside.clone().into_os_string();
    tmux.push(format!(",{},0", server.pid));
    let variables = [("TMUX", tmux)];
    let machine = machine_with(&[&server], OnlyIn(server.directory()), &variables);
    let listed = Tmux.list(&machine);
    std::fs::rename(&aside, &server.socket).unwrap();
    assert_eq!(listed.problems, []);
    assert_eq!(server_of(pane(&listed.found, "%0")).socket, aside);
}

#[test]
fn asking_where_nobody_listens_starts_no_server_and_makes_no_file() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let (stale, machine) = (server.socket.clone(), machine(&[&server]));
    server.run(&["kill-server"]);
    wait_for("the end of the server", || {
        UnixStream::connect(&stale).err()
    });
    let entries = || {
        let entries = server.directory().read_dir().unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = entries();
    let listed = Tmux.list(&machine);
    assert_eq!(listed.found, []);
    assert_eq!(entries(), before);
    assert!(UnixStream::connect(&stale).is_err());
}

#[test]
fn attaching_shows_that_very_pane() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    server.run(&["split-window", "-t", "%0", "sleep 601"]);
    server.run(&["new-window", "sleep 602"]);
    server.run(&["new-session", "-d", "-s", "other", "sleep 603"]);
    let shown = |format: &str| server.run(&["display-message", "-p", "-t", "%0", format]);
    assert_eq!(shown("#{window_active} #{pane_active}"), "0 0");
    let panes = list(&[&server]);
    let argv = Tmux.attach(pane(&panes, "%0")).unwrap().argv;
    // A terminal to attach from: a pane of another server.
    let quoted: Vec<_> = argv.iter().map(|arg| format!("'{arg}'")).collect();
    let command = format!("env -u TMUX TERM=screen {}", quoted.join(" "));
    let Some(outside) = Server::start(&command) else {
        return;
    };
    let clients = wait_for("a client", || {
        let clients = server.run(&["list-clients", "-F", "#{client_session}"]);
        (!clients.is_empty()).then_some(clients)
    });
    assert_eq!(clients, "my work");
    assert_eq!(shown("#{window_active} #{pane_active}"), "1 1");
    drop(outside);
}

#[test]
fn no_pane_of_a_server_is_listed_after_it_exited() {
    let Some(server) = Server::start("sleep 600") else {
        return;
    };
    let pid: Pid = server.pid;
    server.run(&["kill-server"]);
    let gone = wait_for("its end", || {
        let machine = machine(&[&server]);
        let seen = machine.table().seen(pid);
        seen.is_none_or(|process| process.is_exited)
            .then_some(machine)
    });
    assert_eq!(Tmux.list(&gone).found, []);
}
