//! Program, arguments and environment of a process.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
#![cfg(target_os = "linux")]

mod world;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use whosup_process::linux::Proc;
use whosup_process::{Absent, Backend, Details, PidNamespace, ProcessTable};
use world::{LeftBehind, Running, find_program, pid, skip, wait_until};

fn details(running: &Running) -> Details {
    Proc::system().details(&running.process())
}

/// Waits until a program that was just started has taken its process over.
/// The name comes first, the arguments a moment later.
fn settled(running: &Running, name: &[u8]) -> Details {
    wait_until("it executes its program", || {
        running.process().comm == name && details(running).argv.is_ok()
    });
    details(running)
}

/// Copies a program that needs no other file than its libraries.
fn copy_of_sleep(to: &Path) {
    let sleep = find_program("sleep").expect("every system has sleep");
    world::copy_program(&sleep.canonicalize().unwrap(), to, 0o755);
}

#[test]
fn program_arguments_directory_user_and_namespace_of_a_process_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let sleeper = Running::spawn(Command::new("sleep").arg("1000").current_dir(&place));
    let details = settled(&sleeper, b"sleep");
    assert_eq!(details.argv.clone().unwrap(), ["sleep", "1000"]);
    assert_eq!(details.title, Ok(None));
    assert!(details.exe.clone().unwrap().is_absolute());
    assert!(!details.is_exe_deleted);
    assert_eq!(details.cwd, Ok(place));
    assert_eq!(details.uid, Ok(rustix::process::geteuid().as_raw()));
    assert_eq!(details.inner_pids, Ok(vec![sleeper.pid()]));
    assert_eq!(details.innermost_pid(), Some(sleeper.pid()));
    let own: Result<PidNamespace, Absent> = Proc::system().scope().pid_namespace;
    assert_eq!(details.pid_namespace, own);
}

#[test]
fn a_child_is_a_fork_until_it_executes_a_program() {
    // A subshell is a fork of its shell. It ends with its input.
    let mut shell = Running::shell("(echo ready; read go; exec cat); :", &[]);
    let table = ProcessTable::look(whosup_process::system_backend());
    let mut all = table.processes().unwrap().iter();
    let child = all.find(|one| one.ppid == Some(shell.pid())).unwrap();
    assert!(child.is_fork && !shell.process().is_fork);
    shell.send_line("go");
    wait_until("it executes its program", || {
        !world::process(child.pid).is_fork
    });
}

#[test]
fn arguments_keep_what_is_empty_and_what_is_not_utf8() {
    let odd = OsString::from_vec(b"\xFF\n\xFE".to_vec());
    let shell = Running::ready(Command::new("sh").args([
        "-c".into(),
        "echo ready; read line".into(),
        OsString::new(),
        odd.clone(),
        OsString::new(),
    ]));
    let argv = details(&shell).argv.unwrap();
    let expected: Vec<OsString> = vec![
        "sh".into(),
        "-c".into(),
        "echo ready; read line".into(),
        OsString::new(),
        odd,
        OsString::new(),
    ];
    assert_eq!(argv, expected);
}

#[test]
fn of_very_long_arguments_the_first_are_read_and_an_environment_beyond_the_bound_is_not() {
    let long = "x".repeat(100_000);
    let script = "echo ready; read line";
    let mut command = Command::new("sh");
    command.args(["-c", script, &long, &long, &long]);
    for index in 0..11 {
        command.env(format!("LONG_{index}"), &long);
    }
    let shell = Running::ready(&mut command);
    let found = details(&shell);
    assert_eq!(found.argv.unwrap(), ["sh", "-c", script, &long, &long]);
    assert!(found.is_argv_cut);
    assert_eq!(found.title, Ok(None));
    assert!(found.exe.is_ok());
    let environment = Proc::system().environment(&shell.process(), &["LONG_0"]);
    let environment_bound = Absent::TooLarge {
        bytes_max: 1024 * 1024,
    };
    assert_eq!(environment, Err(environment_bound));
}

#[test]
fn the_title_of_a_node_process_is_read_and_blanked_arguments_are_not() {
    let Some(node) = find_program("node") else {
        return skip("there is no node");
    };
    let script = "process.title = 'an agent'; console.log('ready'); process.stdin.resume()";
    let node = Running::ready(Command::new(node).args(["-e", script, "an", "argument"]));
    let details = details(&node);
    assert_eq!(details.title, Ok(Some("an agent".into())));
    assert_eq!(details.argv.unwrap(), ["an agent"]);
    assert!(details.exe.unwrap().ends_with("node"));
}

#[test]
fn the_title_of_a_perl_process_is_read() {
    let Some(perl) = find_program("perl") else {
        return skip("there is no perl");
    };
    let script = "$| = 1; $0 = 'An Agent'; print \"ready\\n\"; <STDIN>";
    let perl = Running::ready(Command::new(perl).args(["-e", script]));
    let details = details(&perl);
    assert_eq!(details.title, Ok(Some("An Agent".into())));
}

#[test]
fn a_title_longer_than_the_arguments_were_is_read() {
    let Some(perl) = find_program("perl") else {
        return skip("there is no perl");
    };
    // The room of the environment behind the arguments takes the rest of it.
    let script = "$| = 1; $0 = 'x' x 300; print \"ready\\n\"; <STDIN>";
    let perl = Running::ready(
        Command::new(perl)
            .args(["-e", script])
            .env_clear()
            .env("FIRST", "y".repeat(400)),
    );
    let details = details(&perl);
    assert_eq!(details.title, Ok(Some("x".repeat(300).into())));
    let environment = Proc::system().environment(&perl.process(), &["FIRST"]);
    assert_eq!(environment, Err(Absent::Overwritten));
}

#[test]
fn named_variables_are_read_and_no_others() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo ready; read line"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("AGENT_HOME", "/home/dev/.agent")
        .env("AGENT_HOME_TWO", "no")
        .env("SECRET", "never read");
    let shell = Running::ready(&mut command);
    let process = shell.process();
    let names = ["AGENT_HOME", "MISSING"];
    let found = Proc::system().environment(&process, &names);
    let expected = vec![("AGENT_HOME".to_owned(), OsString::from("/home/dev/.agent"))];
    assert_eq!(found, Ok(expected));
    let none = Proc::system().environment(&process, &[]);
    assert_eq!(none, Ok(vec![]));
}

#[test]
fn a_process_without_arguments_or_environment_has_empty_ones() {
    let Some(python) = find_program("python3") else {
        return skip("there is no python3 to call execve(2) with empty lists");
    };
    // The kernel gives an empty list one empty argument, since Linux 5.18.
    let script = "import ctypes\nnone = (ctypes.c_char_p * 1)(None)\n\
        ctypes.CDLL(None).execve(b'/bin/cat', none, none)";
    let cat = Running::spawn(Command::new(python).args(["-c", script]));
    let details = settled(&cat, b"cat");
    let argv = details.argv.unwrap();
    assert!(argv.is_empty() || argv == [""], "{argv:?}");
    assert_eq!(details.title, Ok(None));
    let environment = Proc::system().environment(&cat.process(), &["PATH"]);
    assert_eq!(environment, Ok(vec![]));
}

#[test]
fn a_process_that_executes_another_program_is_never_read_as_half_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let (one, two) = (place.join("one"), place.join("two"));
    let sh = find_program("sh").unwrap().canonicalize().unwrap();
    world::copy_program(&sh, &one, 0o755);
    world::copy_program(&sh, &two, 0o755);
    // Each executes the other, for ever.
    let script = place.join("script");
    std::fs::write(&script, "exec \"$2\" \"$0\" \"$2\" \"$1\"").unwrap();
    let restless = Running::spawn(Command::new(&one).arg(&script).args([&one, &two]));
    let process = restless.process();
    let table = Proc::system();
    let (mut ones, mut twos) = (0, 0);
    wait_until("each program was seen often", || {
        let details = table.details(&process);
        if let (Ok(exe), Ok(argv)) = (details.exe, details.argv) {
            ones += usize::from(exe == one);
            twos += usize::from(exe == two);
            assert!(exe == argv[0] || !exe.starts_with(&place), "{argv:?}");
        }
        ones >= 50 && twos >= 50
    });
}

#[track_caller]
fn check_exe(details: &Details, path: &Path, is_deleted: bool) {
    assert_eq!(details.exe.as_deref(), Ok(path));
    assert_eq!(details.is_exe_deleted, is_deleted);
}

#[test]
fn a_removed_or_replaced_program_has_its_path_without_the_mark() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let program = place.join("agent");
    copy_of_sleep(&program);
    let running = Running::spawn(Command::new(&program).arg("1000"));
    check_exe(&settled(&running, b"agent"), &program, false);
    // A second name keeps the file alive, so its link count shows nothing.
    std::fs::hard_link(&program, place.join("kept")).unwrap();
    std::fs::remove_file(&program).unwrap();
    check_exe(&details(&running), &program, true);
    // An update: another file has the name.
    copy_of_sleep(&program);
    check_exe(&details(&running), &program, true);
    std::fs::remove_file(place.join("kept")).unwrap();
    check_exe(&details(&running), &program, true);
}

#[test]
fn a_program_whose_name_ends_like_the_mark_is_not_taken_for_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let program = place.join("agent (deleted)");
    copy_of_sleep(&program);
    let running = Running::spawn(Command::new(&program).arg("1000"));
    check_exe(&settled(&running, b"agent (deleted)"), &program, false);
    // Without the mark the name leads to another file: that changes nothing.
    copy_of_sleep(&place.join("agent"));
    check_exe(&details(&running), &program, false);
    std::fs::remove_file(&program).unwrap();
    check_exe(&details(&running), &program, true);
}

#[test]
fn a_program_of_another_mount_namespace_is_judged_by_the_root_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let sleep = find_program("sleep").unwrap().canonicalize().unwrap();
    // A mount that only the process itself can see.
    let script = "mount -t tmpfs tmpfs \"$0\" && cp \"$1\" \"$0/$2\" && exec \"$0/$2\" \"$3\"";
    let script = ["-m", "sh", "-c", script, place.to_str().unwrap()];
    let wrapper = [&script[..], &[sleep.to_str().unwrap(), "agent (deleted)"]].concat();
    let wrapper = world::in_new(&wrapper);
    if !world::can_or_skip(&[&wrapper[..], &["0"]].concat()) {
        return;
    }
    let mut command = Command::new(wrapper[0]);
    let running = Running::spawn(command.args(&wrapper[1..]).arg("1000"));
    let program = place.join("agent (deleted)");
    check_exe(&settled(&running, b"agent (deleted)"), &program, false);
    assert!(!program.exists());
}

#[test]
fn a_removed_directory_has_its_path_without_the_mark() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&place).unwrap();
    let script = "echo ready; read line";
    let shell = Running::ready(Command::new("sh").args(["-c", script]).current_dir(&place));
    assert_eq!(details(&shell).cwd, Ok(place.clone()));
    std::fs::remove_dir(&place).unwrap();
    assert_eq!(details(&shell).cwd, Ok(place));
}

#[test]
fn a_path_that_is_not_utf8_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let mut odd = place.into_os_string().into_vec();
    odd.extend_from_slice(b"/w\xFF\n");
    let odd = PathBuf::from(OsString::from_vec(odd));
    std::fs::create_dir(&odd).unwrap();
    let shell = Running::ready(
        Command::new("sh")
            .args(["-c", "echo ready; read line"])
            .current_dir(&odd),
    );
    let cwd = details(&shell).cwd.unwrap();
    assert_eq!(cwd.as_os_str().as_bytes(), odd.as_os_str().as_bytes());
}

#[test]
fn a_look_leads_from_a_process_to_its_ancestors_and_past_a_dead_parent_to_init() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(world::can(&["mkfifo", fifo.to_str().unwrap()]));
    let script = "sh -c 'echo $$; read line < \"$0\"' \"$1\" & wait";
    let mut shell = Running::spawn(Command::new("sh").args(["-c", script, "sh"]).arg(&fifo));
    let child = pid(shell.line().parse().unwrap());
    let child = LeftBehind::new(child);
    let table = ProcessTable::look(whosup_process::system_backend());
    let parents = |table: &ProcessTable| -> Vec<_> {
        let child = table.seen(child.pid()).expect("it is listed").clone();
        table.ancestors(&child).map(|parent| parent.pid).collect()
    };
    let found = parents(&table);
    assert_eq!(found[..2], [shell.pid(), whosup_process::Pid::own()]);
    shell.end();
    let table = ProcessTable::look(whosup_process::system_backend());
    let found = parents(&table);
    assert!(!found.contains(&shell.pid()));
    assert!(found.last().is_none_or(|last| last.get() == 1), "{found:?}");
}
