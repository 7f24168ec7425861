//! The packages for Python and TypeScript use the words of the Rust enums.
//!
//! `WHOSUP_BLESS=1` writes their generated files; without it a difference is a failure.

use std::path::Path;

use whosup_core::adapter::phase::{Phase, WaitingFor};
use whosup_core::judging::verdict::{
    Confidence, ExitedBecause, LiveBecause, Liveness, UnknownBecause,
};
use whosup_core::reader::ErrorCode;
use whosup_sidecar::Serves;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const ORIGIN: &str = "Generated from the Rust enums by crates/core/tests/bindings.rs.";

/// What the writers of sidecars refuse, and why; they have no Rust in them.
const SIDECAR_ERROR_CODES: [&str; 6] = [
    "bad_argument",
    "forked",
    "io_error",
    "no_home",
    "not_established",
    "released",
];

struct Words {
    name: &'static str,
    about: &'static str,
    all: Vec<&'static str>,
}

fn words() -> Vec<Words> {
    let words = |name, about, all: &[&'static str]| Words {
        name,
        about,
        all: all.to_vec(),
    };
    let open_phases = Phase::ALL
        .into_iter()
        .filter(|phase| *phase != Phase::Ended);
    let open_phases: Vec<_> = open_phases.map(Phase::name).collect();
    let reasons = [
        LiveBecause::NAMES,
        ExitedBecause::NAMES,
        UnknownBecause::NAMES,
    ]
    .concat();
    let until = [Phase::NAMES, &["exited"]].concat();
    let read_codes = [ErrorCode::NAMES, &["native_missing"]].concat();
    vec![
        words(
            "Liveness",
            "What became of the process that serves a session.",
            Liveness::NAMES,
        ),
        words("Reason", "Why a session has its liveness.", &reasons),
        words(
            "Confidence",
            "How a live session is known to be live.",
            Confidence::NAMES,
        ),
        words("Phase", "What a conversation is doing.", Phase::NAMES),
        words(
            "OpenPhase",
            "A phase of a conversation that has not ended.",
            &open_phases,
        ),
        words(
            "WaitingFor",
            "What a waiting session waits for.",
            WaitingFor::NAMES,
        ),
        words("Until", "What can be waited for.", &until),
        words(
            "Serves",
            "How many sessions a process serves at once.",
            &[Serves::One.name(), Serves::Many.name()],
        ),
        words(
            "ReadErrorCode",
            "Why a question about sessions has no answer.",
            &read_codes,
        ),
        words(
            "SidecarErrorCode",
            "Why a sidecar was not written.",
            &SIDECAR_ERROR_CODES,
        ),
    ]
}

fn quoted(words: &Words) -> impl Iterator<Item = String> {
    words.all.iter().map(|word| format!("\"{word}\""))
}

fn python() -> String {
    let mut text = format!(
        "\"\"\"{ORIGIN}\"\"\"\n\nfrom typing import Literal\n\n__version__ = \"{VERSION}\"\n"
    );
    for words in words() {
        let items: String = quoted(&words)
            .map(|word| format!("    {word},\n"))
            .collect();
        text += &format!("\n# {}\n{} = Literal[\n{items}]\n", words.about, words.name);
    }
    text
}

fn typescript() -> String {
    let mut text = format!("// {ORIGIN}\n\nexport const version = \"{VERSION}\";\n");
    for words in words() {
        let items: String = quoted(&words).map(|word| format!("\n  | {word}")).collect();
        text += &format!(
            "\n/** {} */\nexport type {} ={items};\n",
            words.about, words.name
        );
    }
    text
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_packages_have_the_words_and_the_version_of_the_crates() {
    let bindings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings");
    let is_blessing = std::env::var_os("WHOSUP_BLESS").is_some_and(|value| value == "1");
    for (file, right) in [
        ("python/src/whosup/_generated.py", python()),
        ("node/src/generated.ts", typescript()),
    ] {
        let path = bindings.join(file);
        if is_blessing {
            std::fs::write(&path, &right).unwrap();
        }
        let is_right = read(&path) == right;
        assert!(is_right, "{file}: WHOSUP_BLESS=1 writes the right one");
    }
    for (file, line) in [
        ("python/pyproject.toml", format!("version = \"{VERSION}\"")),
        ("node/package.json", format!("\"version\": \"{VERSION}\"")),
    ] {
        assert!(
            read(&bindings.join(file)).contains(&line),
            "{file}: no `{line}`"
        );
    }
}

#[test]
fn the_packages_document_every_code() {
    let bindings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings");
    for (package, lacks) in [("python", ""), ("node", "forked")] {
        let readme = read(&bindings.join(package).join("README.md"));
        let codes = words()
            .into_iter()
            .filter(|words| words.name.ends_with("ErrorCode"));
        for code in codes.flat_map(|words| words.all) {
            let is_there = readme.contains(&format!("`{code}`"));
            assert_eq!(is_there, code != lacks, "{package}/README.md: `{code}`");
        }
    }
}
