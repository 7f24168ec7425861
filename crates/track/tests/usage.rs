//! What was counted is kept, and is never trusted more than the transcripts.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use whosup_core::machine::Environment;
use whosup_core::sidecar::AgentId;
use whosup_core::sidecar::SessionId;
use whosup_core::sources::agents::adapter;
use whosup_core::sources::usage::Tally;
use whosup_track::{CountJob, UsageCache, WholeSession};

struct World {
    home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("p")).unwrap();
        Self { home }
    }

    fn transcript(&self, name: &str) -> PathBuf {
        self.home.path().join("p").join(name)
    }

    fn append(&self, name: &str, id: &str, output: u64) {
        let mut text = fs::read_to_string(self.transcript(name)).unwrap_or_default();
        text.push_str(&line(id, output));
        fs::write(self.transcript(name), text).unwrap();
    }

    /// The output of each transcript, and whether they could not be kept.
    fn count(&self, names: &[&str]) -> (Vec<Option<u64>>, bool) {
        let home = self.home.path().to_owned();
        let environment = Environment::new(Some(home.clone()), Some(home), []);
        let counting = adapter(&AgentId::parse("claude-code").unwrap())
            .unwrap()
            .profile()
            .counting
            .unwrap();
        let jobs = names.iter().map(|name| CountJob {
            counting,
            path: self.transcript(name),
        });
        let jobs: Vec<CountJob> = jobs.collect();
        let mut cache = UsageCache::of(&environment);
        let results = cache.count(&jobs, &|_| {});
        let outputs = results
            .into_iter()
            .map(|result| Some(result.ok()?.total().output));
        (outputs.collect(), cache.save().is_err())
    }

    fn cache(&self) -> PathBuf {
        self.home.path().join(".cache/whosup/usage")
    }

    fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn line(id: &str, output: u64) -> String {
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"m\",\"usage\":{{\"output_tokens\":{output}}}}}}}\n"
    )
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_counted_is_kept_for_the_user_alone_and_only_the_rest_is_read() {
    let world = World::new();
    world.append("a", "1", 5);
    world.append("b", "1", 7);
    assert_eq!(
        world.count(&["a", "b", "gone"]),
        (vec![Some(5), Some(7), None], false)
    );
    let kept = world.kept();
    assert_eq!(kept.len(), 1);
    assert_eq!((mode(&kept[0]), mode(&world.cache())), (0o600, 0o700));
    // What is kept is believed, so it is not read again: a sum that is not there.
    let text = fs::read_to_string(&kept[0]).unwrap();
    fs::write(&kept[0], text.replace("0,0,0,0,7,", "0,0,0,0,70,")).unwrap();
    assert_eq!(world.count(&["a", "b"]).0, [Some(5), Some(70)]);
    world.append("b", "2", 1);
    assert_eq!(world.count(&["b"]).0, [Some(71)]);
    // Nothing depends on it.
    fs::remove_dir_all(world.home.path().join(".cache")).unwrap();
    assert_eq!(world.count(&["a", "b"]).0, [Some(5), Some(8)]);
}

#[test]
fn a_transcript_that_was_replaced_or_is_gone_is_not_what_was_kept() {
    let world = World::new();
    world.append("a", "1", 5);
    world.append("b", "1", 7);
    world.count(&["a", "b"]);
    let other = world.transcript("other");
    fs::write(&other, line("x", 3)).unwrap();
    fs::rename(other, world.transcript("a")).unwrap();
    fs::remove_file(world.transcript("b")).unwrap();
    assert_eq!(world.count(&["a", "b"]).0, [Some(3), None]);
    let kept = fs::read_to_string(&world.kept()[0]).unwrap();
    assert!(kept.contains("\"a\"") && !kept.contains("\"b\""), "{kept}");
}

#[test]
fn what_is_planted_in_the_place_of_the_cache_is_neither_read_nor_written() {
    let world = World::new();
    world.append("a", "1", 5);
    world.count(&["a"]);
    let kept = world.kept().remove(0);
    let elsewhere = world.home.path().join("elsewhere");
    fs::write(&elsewhere, "{}").unwrap();
    fs::remove_file(&kept).unwrap();
    symlink(&elsewhere, &kept).unwrap();
    assert_eq!(world.count(&["a"]), (vec![Some(5)], false));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "{}");
    // A world-writable directory keeps nothing, and the counts are right.
    fs::set_permissions(world.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    world.append("a", "2", 1);
    assert_eq!(world.count(&["a"]), (vec![Some(6)], true));
}

/// Makes a file that was last written to an hour ago.
fn write_long_ago(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(an_hour_ago).unwrap();
}

#[test]
fn a_session_of_a_database_is_kept_until_one_of_its_files_changes() {
    let world = World::new();
    let home = world.home.path().to_owned();
    let environment = Environment::new(Some(home.clone()), Some(home), []);
    let files = [world.transcript("a.db"), world.transcript("a.db-wal")];
    write_long_ago(&files[0], "one");
    let session = || WholeSession::new(&SessionId::parse("ses_1").unwrap(), &files, None);
    let mut tally = Tally::default();
    tally.lost_lines = 3;
    let keep = || {
        let mut cache = UsageCache::of(&environment);
        cache.keep_whole(session(), &tally);
        cache.save().unwrap();
    };
    let kept = || UsageCache::of(&environment).whole(&session());

    keep();
    assert_eq!(kept(), Some(tally.clone()));
    write_long_ago(&files[1], "a commit");
    assert_eq!(kept(), None);
    keep();
    assert_eq!(kept(), Some(tally.clone()));
    // Another write in the same moment would not show.
    fs::write(&files[1], "another commit").unwrap();
    assert_eq!(kept(), None);
    keep();
    write_long_ago(&files[1], "a commit, later");
    assert_eq!(kept(), None);
    keep();
    fs::remove_file(&files[0]).unwrap();
    assert_eq!(kept(), None);
    keep();
    let text = fs::read_to_string(&world.kept()[0]).unwrap();
    assert!(!text.contains("ses_1"), "{text}");
}
