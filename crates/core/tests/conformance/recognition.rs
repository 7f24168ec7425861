//! Which programs are an agent's, and which are nobody's.

use super::*;

/// Programs that are nobody's agent: name, executable, arguments.
const OTHERS: &[(&str, &str, &[&str])] = &[
    ("bash", "/usr/bin/bash", &["bash", "-i"]),
    ("sh", "/usr/bin/dash", &["sh", "-c", "sleep 1"]),
    ("zsh", "/usr/bin/zsh", &["-zsh"]),
    ("vim", "/usr/bin/vim", &["vim", "notes.md"]),
    ("git", "/usr/bin/git", &["git", "commit", "-m", "x"]),
    ("node", "/usr/bin/node", &["node", "server.js"]),
    ("node", "/usr/bin/node", &["node", "--test", "cli.js"]),
    ("MainThread", "/usr/bin/node", &["node"]),
    (
        "python3",
        "/usr/bin/python3.13",
        &["python3", "-m", "http.server"],
    ),
    ("bun", "/home/dev/.bun/bin/bun", &["bun", "test"]),
    ("tmux: server", "/usr/bin/tmux", &["tmux", "new-session"]),
    ("rg", "/usr/bin/rg", &["rg", "needle"]),
    ("sudo", "/usr/bin/sudo", &["sudo", "-i"]),
    (
        "npm exec",
        "/usr/bin/node",
        &["node", "/usr/lib/node_modules/npm/bin/npm-cli.js", "test"],
    ),
];

fn recognized(adapter: &dyn Adapter, comm: &str, exe: &str, argv: &[&str]) -> Option<Role> {
    let made = RecordedProcess::new(4711, 8123, 0)
        .comm(comm)
        .exe(exe)
        .argv(argv);
    adapter.profile().programs.recognize(&Program {
        process: &made.process,
        details: &made.details,
    })
}

#[test]
fn shells_editors_and_runtimes_are_nobodys_agent() {
    check_all(|adapter| {
        let found = OTHERS
            .iter()
            .filter(|(comm, exe, argv)| recognized(adapter, comm, exe, argv).is_some());
        found
            .map(|(comm, _, argv)| format!("it recognizes {comm} {argv:?}"))
            .collect()
    });
}

#[test]
fn a_process_name_alone_makes_no_agent() {
    check_all(|adapter| {
        let names = adapter.profile().programs.names();
        let found = names.filter(|name| {
            let argv = ["prog", "--serve"];
            recognized(adapter, name, "/usr/local/bin/prog", &argv).is_some()
        });
        found
            .map(|name| format!("it recognizes a program by the name `{name}` alone"))
            .collect()
    });
}

#[test]
fn a_program_that_mentions_an_agent_is_not_that_agent() {
    check_all(|adapter| {
        let words: BTreeSet<&str> = adapter.profile().programs.names().collect();
        // A name that the kernel has cut is not the beginning of another one.
        let is_whole = |word: &&str| word.len() < COMM_BYTES_MAX;
        let words = words.into_iter().filter(is_whole);
        let mut lack = Vec::new();
        for word in words {
            let beside = format!("/opt/{word}-squad/bin/{word}-squad");
            let below = format!("/home/x/{word}/bin/server");
            let script = format!("/home/x/{word}.js");
            let tries: [(&str, &str, &[&str]); 5] = [
                (word, &beside, &[&beside]),
                ("server", &below, &["server"]),
                ("node", "/usr/bin/node", &["node", &script]),
                ("vim", "/usr/bin/vim", &["vim", word]),
                ("bash", "/usr/bin/bash", &["bash", "-c", word]),
            ];
            for (comm, exe, argv) in tries {
                if recognized(adapter, comm, exe, argv).is_some() {
                    lack.push(format!("it recognizes `{exe}` {argv:?}"));
                }
            }
        }
        lack
    });
}
