//! The manual pages are complete and well formed, and refer only to existing pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::world::World;

const SECTIONS: &[&str] = &[
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "EXIT STATUS",
    "FILES",
    "ENVIRONMENT",
    "EXAMPLES",
    "SEE ALSO",
];

/// Checkers of pages: a program, and its arguments before the page.
const CHECKERS: &[(&str, &[&str])] = &[
    ("groff", &["-man", "-ww", "-Tutf8", "-P-cbou"]),
    ("mandoc", &["-T", "lint", "-W", "error"]),
];

/// The pages by name, such as `whosup-list.1`.
fn pages(world: &World) -> BTreeMap<String, PathBuf> {
    let directory = world.home().join("man1");
    let said = world.run(["man".as_ref(), directory.as_os_str()]);
    assert_eq!(said.status, 0, "{}", said.err);
    let entries = directory.read_dir().unwrap();
    let page = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.to_owned(), path)
    };
    entries.map(page).collect()
}

/// What a reader sees.
fn rendered(page: &Path) -> Option<String> {
    let mut groff = Command::new("groff");
    let output = groff.args(CHECKERS[0].1).arg(page).output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn each_command_has_a_page_and_hidden_ones_have_none() {
    let world = World::new();
    let pages = pages(&world);
    for name in [
        "whosup",
        "whosup-list",
        "whosup-help",
        "whosup-hooks-install",
    ] {
        assert!(
            pages.contains_key(&format!("{name}.1")),
            "{name}: {pages:?}"
        );
    }
    for (name, path) in &pages {
        let page = std::fs::read_to_string(path).unwrap();
        assert!(!name.contains("after-end") && !page.contains("after\\-end"));
    }
    let whole = std::fs::read_to_string(&pages["whosup.1"]).unwrap();
    assert_eq!(world.run(["man"]).out, whole);
}

#[test]
fn each_page_has_every_section_and_refers_to_pages_that_are_there() {
    let world = World::new();
    let pages = pages(&world);
    for (name, path) in &pages {
        let Some(text) = rendered(path) else {
            eprintln!("skipped: there is no groff here");
            return;
        };
        let mut rest = text.lines();
        for section in SECTIONS {
            assert!(
                rest.any(|line| line == *section),
                "{name}: {section}\n{text}"
            );
        }
        let words = text.split(|character: char| character.is_whitespace() || character == ',');
        let references: Vec<&str> = words.filter(|word| word.ends_with("(1)")).collect();
        for reference in &references {
            let file = reference.replace("(1)", ".1");
            assert!(pages.contains_key(&file), "{name} refers to {reference}");
        }
        // The title's two, and at least one more.
        assert!(
            references.len() >= 3 || name == "whosup.1",
            "{name}: {references:?}"
        );
    }
}

#[test]
fn each_page_has_the_exit_statuses_of_its_command_and_no_others() {
    let world = World::new();
    let section = |path: &Path| {
        let page = std::fs::read_to_string(path).unwrap();
        let rest = page.split("\"EXIT STATUS\"\n").nth(1).unwrap().to_owned();
        let lines = rest.lines().take_while(|line| !line.starts_with(".SH"));
        let text = lines.filter(|line| *line != ".PP").collect::<Vec<_>>();
        text.join(" ").replace("\\-", "-")
    };
    for (name, path) in pages(&world) {
        let words = name.trim_end_matches(".1").replace('-', " ");
        let command = words.trim_start_matches("whosup").split_whitespace();
        let help = world.run(command.chain(["--help"])).out;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = section(&path);
        let general = "0 done, 2 usage error or failure.";
        let is_of_help = help.contains(&format!("Exit status: {shown}"));
        assert!(is_of_help || shown == general, "{name}: {shown}\n{help}");
        // What passes on a program's status, or takes a session, has others.
        let passes_on = ["run", "demo", "hook", "conformance", "resume", "wait"];
        let takes_a_session = help.contains("Session ID or unique prefix");
        let has_own = passes_on.iter().any(|one| words == format!("whosup {one}"));
        if has_own || takes_a_session {
            assert_ne!(shown, general, "{name}");
        }
    }
}

#[test]
fn examples_stand_as_they_were_written() {
    let world = World::new();
    for (name, path) in pages(&world) {
        let Some(text) = rendered(&path) else {
            eprintln!("skipped: there is no groff here");
            return;
        };
        let name = name.trim_end_matches(".1").replace('-', " ");
        let command = name.trim_start_matches("whosup").split_whitespace();
        let help = world.run(command.chain(["--help"])).out;
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        for example in examples.take_while(|line| line.starts_with("  ")) {
            let is_it = |line: &str| line.trim() == example.trim();
            assert!(text.lines().any(is_it), "{name}: {example}\n{text}");
        }
    }
}

#[test]
fn readers_of_pages_find_nothing_to_complain_about() {
    let world = World::new();
    let pages = pages(&world);
    for (program, arguments) in CHECKERS {
        for path in pages.values() {
            let Ok(output) = Command::new(program).args(*arguments).arg(path).output() else {
                eprintln!("skipped: there is no {program} here");
                break;
            };
            let complaints = match *program {
                "mandoc" => output.stdout,
                _ => output.stderr,
            };
            let complaints = String::from_utf8_lossy(&complaints);
            assert!(
                output.status.success() && complaints.is_empty(),
                "{path:?}: {complaints}"
            );
        }
    }
}
