//! What has befallen processes.

use super::*;

/// Zombies were counted as running (local-operator#1025, procfs#2).
#[test]
fn processes_that_have_exited_and_were_not_reaped_serve_no_session() {
    let change = |world: &mut Value| {
        each_process(world, |process| {
            process["state"] = json!("Z");
            process["threads"] = json!(1);
            process["holds"] = json!([]);
        });
    };
    check_all(change, nobody_is_there);
}

/// A reused PID was taken for the session's process (sysinfo#1628).
#[test]
fn other_programs_with_the_pids_of_agents_serve_no_session() {
    let change = |world: &mut Value| {
        let now_ms = time_ms(world["now"].as_str().unwrap());
        each_process(world, |process| {
            let age_ms = now_ms - time_ms(process["began"].as_str().unwrap());
            let later_s = (age_ms / 1000 - 1).max(0);
            let start = process["start"].as_i64().unwrap() + later_s * 100;
            shift(&mut process["began"], later_s);
            *process = json!({
                "pid": process["pid"], "start": start + 1, "began": process["began"],
                "comm": "vim", "argv": ["vim", "notes.md"], "exe": "/usr/bin/vim",
                "env": {}, "holds": [],
            });
        });
    };
    check_all(change, nobody_is_there);
}

/// What could not be asked was read as dead (claude-code#74566, ggcode#799).
#[test]
fn processes_that_are_hidden_have_not_exited() {
    let change = |world: &mut Value| {
        world["hidden"] = take_processes(world);
        let view = json!({"hide_pid": "invisible", "is_everything_shown": false, "is_root": false});
        set_view(world, view);
    };
    check_all(change, nothing_has_exited);
}

/// The same, where processes are listed and can't be read.
#[test]
fn processes_that_can_not_be_read_have_not_exited() {
    let change = |world: &mut Value| {
        world["unreadable"] = take_processes(world);
        let view = json!({"hide_pid": "no-access", "is_everything_shown": false, "is_root": false});
        set_view(world, view);
    };
    check_all(change, nothing_has_exited);
}

/// The same for what another user's process tells: name and arguments.
#[test]
fn processes_that_refuse_to_be_looked_into_have_not_exited() {
    let change = |world: &mut Value| {
        set_view(world, json!({"is_root": false}));
        each_process(world, |process| {
            for field in ["exe", "cwd", "env", "holds"] {
                process[field] = Value::Null;
            }
        });
    };
    check_all(change, nothing_has_exited);
}

/// Entries that were filled in part were taken for other programs (sysinfo#805).
#[test]
fn processes_of_which_only_the_name_is_known_have_not_exited() {
    let change = |world: &mut Value| {
        set_view(world, json!({"is_root": false}));
        each_process(world, |process| {
            process.as_object_mut().unwrap().remove("title");
            for field in ["argv", "exe", "cwd", "env", "holds"] {
                process[field] = Value::Null;
            }
        });
    };
    check_all(change, nothing_has_exited);
}

/// Root looks at the agents of a user, in the home of the user.
#[test]
fn processes_of_the_owner_of_the_home_have_not_exited_for_whoever_looks() {
    let change = |world: &mut Value| set_view(world, json!({"uid": 4711}));
    check_all(change, nothing_has_exited);
}

/// A user runs an agent as another one by `sudo`, which does not show its home.
#[test]
fn processes_of_another_user_below_ours_have_not_exited() {
    const SHELL: i32 = 899;
    let change = |world: &mut Value| {
        set_view(world, json!({"is_root": false, "uid": 1000}));
        let all = world["processes"].as_array().cloned().unwrap_or_default();
        each_process(world, |process| {
            // In a container, what is another user's than the claim's file is not meant.
            if process["inner_pids"].is_null() {
                process["uid"] = json!(4711);
            }
            let is_agents = |parent: &Value| {
                let is_above =
                    ["systemd", "tmux: server"].contains(&parent["comm"].as_str().unwrap());
                parent["pid"] == process["ppid"] && !is_above
            };
            if !all.iter().any(is_agents) {
                process["ppid"] = json!(SHELL);
            }
            for field in ["exe", "cwd", "env", "holds"] {
                process[field] = Value::Null;
            }
        });
        let began = all.iter().map(|process| process["began"].as_str().unwrap());
        let began = began.min().unwrap();
        let shell = json!({"pid": SHELL, "start": 0, "began": began, "comm": "bash", "uid": 1000});
        let processes = world["processes"].as_array_mut();
        processes
            .into_iter()
            .for_each(|all| all.push(shell.clone()));
    };
    check_all(change, nothing_has_exited);
}

/// What follows in very long arguments is not known.
#[test]
fn processes_of_whose_arguments_only_the_beginning_is_known_have_not_exited() {
    let change = |world: &mut Value| {
        each_process(world, |process| process["is_argv_cut"] = json!(true));
    };
    check_all(change, nothing_has_exited);
}

/// A stopped process was taken for a dead one (herdr#700).
#[test]
fn stopped_processes_keep_their_sessions_and_panes() {
    let change = |world: &mut Value| {
        each_process(world, |process| {
            if process["state"] != json!("Z") {
                process["state"] = json!("T");
            }
        })
    };
    check_all(change, |answers| {
        let mut faults = all_live_on(answers);
        if answers.before != answers.after {
            faults.push("another answer".to_owned());
        }
        faults
    });
}

/// A process whose terminal was closed was called dead (happy#1693, claudecodeui#882,
/// cctop#18).
#[test]
fn processes_that_lost_their_terminals_live_on_in_no_pane() {
    const ABOVE: &[&str] = &["bash", "sh", "zsh", "fish", "tmux: server", "login", "sshd"];
    let change = |world: &mut Value| {
        world["panes"] = json!([]);
        let processes = world["processes"].as_array().cloned().unwrap_or_default();
        let is_above = |pid: &Value| {
            let its = processes.iter().find(|process| process["pid"] == *pid);
            its.is_none_or(|its| ABOVE.contains(&its["comm"].as_str().unwrap()))
        };
        each_process(world, |process| {
            if process.get("ppid").is_some_and(is_above) {
                process["ppid"] = json!(1);
            }
            process.as_object_mut().unwrap().remove("tty");
        });
    };
    check_all(change, |answers| {
        let mut faults = nothing_has_exited(answers);
        let in_panes = answers.after.iter().filter(|(_, row)| row.has_pane);
        faults.extend(in_panes.map(|(key, _)| format!("{key} is in a pane")));
        faults
    });
}

/// A child that an agent forked to run a tool was taken for another copy of the agent, and
/// the agent for its launcher.
#[test]
fn forks_that_have_not_executed_their_program_yet_are_no_agents() {
    let change = |world: &mut Value| {
        let processes = world["processes"].as_array().cloned().unwrap_or_default();
        let forks = processes.into_iter().enumerate().map(|(at, mut process)| {
            process["ppid"] = process["pid"].clone();
            process["pid"] = json!(3_000_000 + at);
            let inner = process.get_mut("inner_pids").and_then(Value::as_array_mut);
            if let Some(inner) = inner {
                inner.fill(json!(9_000 + at));
            }
            process["fork"] = json!(true);
            process
        });
        let forks: Vec<Value> = forks.collect();
        if let Some(processes) = world.get_mut("processes").and_then(Value::as_array_mut) {
            processes.extend(forks);
        }
    };
    check_all(change, all_live_on);
}
