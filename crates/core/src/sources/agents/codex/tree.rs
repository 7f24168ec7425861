//! Finds rollouts: of one thread near the day of its birth, or of all threads.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::rollout::Rollout;
use super::{AGENT, thread_id};
use crate::machine::problem::Problem;
use crate::sources::agents::kit::folder::{Names, list_or_report};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// How many names in one directory are read.
const ENTRIES_MAX: usize = 200_000;
/// How many days with rollouts are looked at: 50 years.
const DAYS_MAX: usize = 20_000;

/// The rollouts of one home, each directory listed once.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    home: &'a Path,
    listed: HashMap<PathBuf, Vec<Rollout>>,
    days: Option<Vec<(Date, PathBuf)>>,
    /// What could not be read.
    pub(super) problems: Vec<Problem>,
}

impl<'a> Tree<'a> {
    /// A tree without anything read yet.
    pub(super) fn new(home: &'a Path) -> Self {
        Self {
            home,
            listed: HashMap::new(),
            days: None,
            problems: Vec::new(),
        }
    }

    /// The rollouts whose names contain the id of a thread, in the folder of the thread's
    /// birth date or among the archived rollouts.
    ///
    /// Folders use the local time of the writer: a day before or after ours.
    pub(super) fn near_birth(&mut self, thread: &str) -> Vec<Rollout> {
        let born = thread_id::born_at_ms(thread).and_then(date_of);
        let near = born.map(|born| [born.yesterday().ok(), Some(born), born.tomorrow().ok()]);
        let mut found = Vec::new();
        for date in near.into_iter().flatten().flatten() {
            let day = date.strftime("sessions/%Y/%m/%d").to_string();
            found.extend(self.of_thread(&self.home.join(day), false, thread));
        }
        let archived = self.home.join("archived_sessions");
        found.extend(self.of_thread(&archived, true, thread));
        found
    }

    /// The rollouts whose names have the id of a thread, wherever they lie:
    /// looks through every directory.
    pub(super) fn anywhere(&mut self, thread: &str) -> Vec<Rollout> {
        let mut found = Vec::new();
        for (directory, is_archived) in self.directories() {
            found.extend(self.of_thread(&directory, is_archived, thread));
        }
        found
    }

    /// The rollouts that were begun on `from_ms` (a day of tolerance) or later.
    pub(super) fn since(&mut self, from_ms: i64) -> Vec<Rollout> {
        let from = date_of(from_ms).and_then(|date| date.yesterday().ok());
        let days = self.days().to_vec();
        let mut found = Vec::new();
        for (_, directory) in days.iter().filter(|(date, _)| Some(*date) >= from) {
            found.extend_from_slice(self.list(directory, false));
        }
        found
    }

    /// Every rollout.
    pub(super) fn all(&mut self) -> Vec<Rollout> {
        let mut found = Vec::new();
        for (directory, is_archived) in self.directories() {
            found.extend_from_slice(self.list(&directory, is_archived));
        }
        found
    }

    /// Every directory that may have rollouts, and whether they are archived.
    fn directories(&mut self) -> Vec<(PathBuf, bool)> {
        let days = self.days().iter().map(|(_, path)| (path.clone(), false));
        let mut directories: Vec<_> = days.collect();
        // Early releases had them all in one directory.
        directories.push((self.home.join("sessions"), false));
        directories.push((self.home.join("archived_sessions"), true));
        directories
    }

    /// The days that have a directory, in order.
    fn days(&mut self) -> &[(Date, PathBuf)] {
        if self.days.is_none() {
            let mut days = Vec::new();
            let sessions = self.home.join("sessions");
            for (year, path) in self.numbered(&sessions, 4) {
                for (month, path) in self.numbered(&path, 2) {
                    for (day, path) in self.numbered(&path, 2) {
                        if let Ok(date) = Date::new(year, month, day)
                            && days.len() < DAYS_MAX
                        {
                            days.push((date, path));
                        }
                    }
                }
            }
            days.sort();
            self.days = Some(days);
        }
        self.days.as_deref().unwrap_or_default()
    }

    /// The entries of a directory whose names are numbers of so many digits.
    fn numbered<N: FromStr>(&mut self, directory: &Path, digits: usize) -> Vec<(N, PathBuf)> {
        let names = self.names(directory);
        let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
        let numbers = names.texts().filter(|name| name.len() == digits);
        let numbers = numbers.filter(is_number);
        numbers
            .filter_map(|name| Some((name.parse().ok()?, directory.join(name))))
            .collect()
    }

    fn of_thread(&mut self, directory: &Path, is_archived: bool, thread: &str) -> Vec<Rollout> {
        let all = self.list(directory, is_archived).iter();
        all.filter(|rollout| rollout.may_be_of(thread))
            .cloned()
            .collect()
    }

    /// The rollouts in a directory. If a rollout exists both plain and compressed, the plain
    /// file.
    fn list(&mut self, directory: &Path, is_archived: bool) -> &[Rollout] {
        if !self.listed.contains_key(directory) {
            let names = self.names(directory);
            let all: HashSet<&str> = names.texts().collect();
            let is_best = |name: &&str| {
                let plain = name.strip_suffix(".zst");
                plain.is_none_or(|plain| !all.contains(plain))
            };
            let rollouts = names.texts().filter(is_best);
            let rollouts = rollouts.filter_map(|name| Rollout::of(directory, name, is_archived));
            self.listed.insert(directory.to_owned(), rollouts.collect());
        }
        self.listed.get(directory).map_or(&[], Vec::as_slice)
    }

    /// The names in a directory; each problem is reported once.
    fn names(&mut self, directory: &Path) -> Names {
        list_or_report(directory, ENTRIES_MAX, |why| {
            let problem = Problem::at(&AGENT, directory, why);
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        })
    }
}

fn date_of(at_ms: i64) -> Option<Date> {
    let time = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(TimeZone::UTC.to_datetime(time).date())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    const ID: &str = "01a21ec8-c5bb-78f0-959a-e72776985ddc";
    const EARLY: &str = "5973b6c0-94b8-487b-a530-2aeb6098ae0e";

    fn home(paths: &[String]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for path in paths {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        home
    }

    fn names(home: &tempfile::TempDir, rollouts: &[Rollout]) -> Vec<String> {
        let below = rollouts
            .iter()
            .map(|rollout| rollout.path.strip_prefix(home.path()).unwrap());
        let mut names: Vec<_> = below.map(|path| path.display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_thread_is_found_on_the_days_around_its_birth() {
        for day in ["26", "27", "28"] {
            let path = format!("sessions/2026/11/{day}/rollout-2026-11-{day}T20-53-24-{ID}.jsonl");
            let home = home(std::slice::from_ref(&path));
            let mut tree = Tree::new(home.path());
            assert_eq!(names(&home, &tree.near_birth(ID)), [path]);
            assert!(tree.problems.is_empty());
        }
    }

    #[test]
    fn elsewhere_it_is_found_by_looking_everywhere() {
        let odd = format!("sessions/2026/01/02/rollout-2026-01-02T00-00-00-{ID}.jsonl");
        let early = format!("sessions/2025/05/07/rollout-2025-05-07T17-24-21-{EARLY}.jsonl");
        let home = home(&[odd.clone(), early.clone()]);
        let mut tree = Tree::new(home.path());
        assert!(tree.near_birth(ID).is_empty());
        assert!(tree.near_birth(EARLY).is_empty());
        assert_eq!(names(&home, &tree.anywhere(ID)), [odd]);
        assert_eq!(names(&home, &tree.anywhere(EARLY)), [early]);
    }

    #[test]
    fn every_rollout_is_found_once_plain_compressed_and_archived() {
        let paths = [
            format!("archived_sessions/rollout-{ID}.jsonl"),
            format!("sessions/2025/01/02/rollout-a-{EARLY}.jsonl.zst"),
            format!("sessions/2025/01/03/rollout-b-{EARLY}.jsonl"),
            format!("sessions/rollout-c-{EARLY}.jsonl"),
        ];
        let twin = format!("sessions/2025/01/03/rollout-b-{EARLY}.jsonl.zst");
        let others = [
            "sessions/2025/1/03/x",
            "sessions/2025/13/40/x",
            "sessions/notes/01/01/x",
        ];
        let all: Vec<String> = paths
            .iter()
            .cloned()
            .chain([twin])
            .chain(others.map(str::to_owned))
            .collect();
        let home = home(&all);
        let mut tree = Tree::new(home.path());
        assert_eq!(names(&home, &tree.all()), paths);
        assert!(tree.problems.is_empty(), "{:?}", tree.problems);
    }

    #[test]
    fn only_days_from_a_time_on_are_looked_at() {
        let path = |day: &str| format!("sessions/2026/11/{day}/rollout-x-{ID}.jsonl");
        let home = home(&[path("20"), path("26"), path("27")]);
        let mut tree = Tree::new(home.path());
        let since = tree.since(thread_id::born_at_ms(ID).unwrap());
        assert_eq!(names(&home, &since), [path("26"), path("27")]);
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_a_problem_that_names_it() {
        let home = home(&["sessions/2026/11".to_owned()]);
        let mut tree = Tree::new(home.path());
        assert!(tree.all().is_empty());
        let paths: Vec<_> = tree
            .problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        assert_eq!(paths, [Some(home.path().join("sessions/2026/11"))]);
    }
}
