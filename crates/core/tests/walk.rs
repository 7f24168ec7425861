//! `docs/walk.md` names files and functions that exist.

use std::fs::read_to_string;
use std::path::Path;

/// How many files a reader may have to open on the way, as the page promises.
const FILES_MAX: usize = 15;

#[test]
fn every_station_of_the_walk_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = read_to_string(root.join("docs/walk.md")).expect("the page");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(".rs`"))
        .map(|line| {
            line.split('|')
                .map(|cell| cell.trim().trim_matches('`'))
                .collect()
        })
        .collect();
    assert!(
        (10..=FILES_MAX).contains(&rows.len()),
        "{} rows",
        rows.len()
    );
    for row in rows {
        let [_, _, file, name, ..] = row.as_slice() else {
            panic!("a row without a file and a name: {row:?}");
        };
        let source = read_to_string(root.join("crates").join(file));
        let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
        let is_there = [
            format!("fn {name}("),
            format!("fn {name}<"),
            format!("static {name}:"),
        ]
        .iter()
        .any(|start| source.contains(start.as_str()));
        assert!(is_there, "{file} has no {name}");
    }
}
