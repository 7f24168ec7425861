//! What has befallen transcripts.

use super::*;

/// Changes every transcript of a world: files of lines that are not empty.
fn each_transcript(directory: &Path, change: &dyn Fn(&Path)) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, file_type) = (entry.path(), entry.file_type().unwrap());
        if file_type.is_dir() {
            each_transcript(&path, change);
        } else if file_type.is_file()
            && path.extension().is_some_and(|name| name == "jsonl")
            && entry.metadata().unwrap().len() > 0
        {
            let modified = entry.metadata().unwrap().modified().unwrap();
            change(&path);
            let file = std::fs::File::open(&path).unwrap();
            file.set_modified(modified).unwrap();
        }
    }
}

/// Looks at every fixture before and after a change to its transcripts, which
/// may make no difference.
#[track_caller]
fn check_files(change: &dyn Fn(&Path)) {
    let wanted = std::env::var("WHOSUP_FIXTURES").unwrap_or_default();
    let mut report = String::new();
    for (name, case) in cases() {
        if !name.contains(&wanted) {
            continue;
        }
        let world = World::of_fixture(&case);
        // What is appended is no later than the last record that can be read.
        world.date_transcripts();
        let before = world.look(DepthName::All);
        each_transcript(world.home(), change);
        let after = rows(&world.look(DepthName::All));
        for (key, before) in rows(&before) {
            let after = after.get(&key).cloned();
            // A sub-agent has ended where nothing follows its last record.
            let goes_on = before.is_sub_agent
                && before.reason == "released"
                && after
                    .as_ref()
                    .is_some_and(|after| after.reason.starts_with("parent-"));
            if after.as_ref() != Some(&before) && !goes_on {
                let _ = writeln!(report, "{name}: {key}: {before:?} became {after:?}");
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// A full disk left torn and fused lines and runs of NUL bytes, and one of them
/// hid everything (oh-my-pi#8596, opencode#7607, kern-ai#300).
#[test]
fn torn_and_fused_lines_at_the_end_of_every_transcript_hide_nothing() {
    check_files(&|path| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"{\"a\":1}{\"b\":2}\n{\"c\":\n\0\0\0\0\0\0\0\0\n{\"d\":")
            .unwrap();
    });
}
