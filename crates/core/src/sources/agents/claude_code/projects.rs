//! The project folders, `projects/ENCODED/SESSION.jsonl`: where transcripts are.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;
use whosup_sidecar::file::{Links, facts};

use super::AGENT;
use super::processes::file_name;
use super::subagents::PREFIX;
use super::transcript::{Words, read_opening};
use crate::machine::mounts::Mounts;
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{hyphenated, list_or_report, names_in, names_or_report};
use crate::sources::agents::kit::uuid::is_uuid;

/// How many project folders are looked into.
const PROJECTS_MAX: usize = 100_000;
/// How many entries of one project folder are looked at.
const PROJECT_ENTRIES_MAX: usize = 200_000;
/// How long the name of a folder is before it is cut and a hash put behind it.
/// (Read in Claude Code 2.1.197.)
const ENCODED_CHARS_MAX: usize = 200;
/// How many transcripts of a folder are opened to find out which directory it
/// is of.
const OPENINGS_MAX: usize = 8;

/// How `/.claude/worktrees/` shows in the name of a project folder.
const WORKTREES: &str = "--claude-worktrees-";

/// The suffix of a transcript's name.
pub(super) const TRANSCRIPT_SUFFIX: &str = ".jsonl";

/// The project folders of one home, listed once.
#[derive(Debug)]
pub(super) struct Projects {
    root: PathBuf,
    listed: OnceCell<Found<Vec<PathBuf>>>,
}

/// The files of one project folder.
#[derive(Debug, Default)]
pub(super) struct ProjectFolder {
    /// The folder.
    pub(super) path: PathBuf,
    /// Sessions that have a transcript here.
    pub(super) sessions: Vec<SessionId>,
    /// Those among them that have a folder of their own.
    with_folder: HashSet<SessionId>,
    /// Transcripts of sub-agents, as old versions left them beside the sessions.
    pub(super) sub_agents: Vec<PathBuf>,
}

impl Projects {
    /// The project folders of the home at `home`.
    pub(super) fn new(home: &Path) -> Self {
        Self {
            root: home.join("projects"),
            listed: OnceCell::new(),
        }
    }

    /// Every project folder; a failure to list them is a problem.
    pub(super) fn all(&self, problems: &mut Vec<Problem>) -> &[PathBuf] {
        let listed = self.listed.get_or_init(|| {
            let mut problems = Vec::new();
            let names = list_or_report(&self.root, PROJECTS_MAX, |why| {
                problems.push(Problem::at(&AGENT, &self.root, why));
            });
            let found = names.texts().map(|name| self.root.join(name)).collect();
            Found { found, problems }
        });
        problems.extend_from_slice(&listed.problems);
        &listed.found
    }

    /// Finds the transcript of a session, wherever it is.
    ///
    /// The folder named after the session's directory is tried first. A session that was
    /// moved or resumed elsewhere stays in the folder where it began, and may leave a stub
    /// in another folder. So if a transcript has no messages, all folders are searched. Of
    /// several transcripts one with messages counts, and of these the one written last.
    pub(super) fn find(
        &self,
        session: &SessionId,
        work_dir: Option<&Path>,
    ) -> Found<Option<PathBuf>> {
        let name = format!("{session}{TRANSCRIPT_SUFFIX}");
        let suggested = work_dir.map(|dir| self.root.join(hyphenated(dir)).join(&name));
        let words_in = |path: &Path| read_opening(path).map_or(Words::Unknown, |one| one.words);
        let suggested = suggested.filter(|path| modified_ms(path).is_some());
        let has_words = |path: &PathBuf| words_in(path) == Words::Some;
        if suggested.as_ref().is_some_and(has_words) {
            return Found::clean(suggested);
        }
        let mut problems = Vec::new();
        let there = self.all(&mut problems).iter().filter_map(|folder| {
            let path = folder.join(&name);
            Some((modified_ms(&path)?, path))
        });
        let mut there: Vec<(i64, PathBuf)> = there.collect();
        if there.len() > 1 {
            let most = there.iter().map(|(_, path)| words_in(path)).max();
            there.retain(|(_, path)| Some(words_in(path)) == most);
        } else if suggested.is_some() {
            let found = suggested;
            return Found { found, problems };
        }
        let found = there.into_iter().max().map(|(_, path)| path);
        Found { found, problems }
    }

    /// The folders of the worktrees that were made below the directory of a
    /// project folder, where sub-agents work that are isolated.
    pub(super) fn of_worktrees(&self, folder: &Path) -> Vec<PathBuf> {
        let name = file_name(folder);
        let Some(name) = name else { return Vec::new() };
        let begins = format!("{name}{WORKTREES}");
        let is_worktree =
            |folder: &&PathBuf| file_name(folder).is_some_and(|name| name.starts_with(&begins));
        let folders = self.all(&mut Vec::new()).iter();
        folders.filter(is_worktree).cloned().collect()
    }

    /// The folders of sessions that work in `directory`.
    ///
    /// By folder name if one matches. Otherwise (a link or another Unicode form may have
    /// been used) by the directories in the transcripts.
    pub(super) fn of_directory(&self, directory: &Path, mounts: &Mounts) -> Found<Vec<PathBuf>> {
        let mut problems = Vec::new();
        let all = self.all(&mut problems).iter();
        let by_name = all.clone().filter(|folder| is_folder_of(folder, directory));
        let mut found: Vec<PathBuf> = by_name.cloned().collect();
        if found.is_empty() {
            let real = mounts.real_path(directory);
            let leads_there = |own: PathBuf| mounts.leads_to(&own, &real);
            let by_content = all.filter(|path| directory_of(path).is_some_and(leads_there));
            found.extend(by_content.cloned());
        }
        Found { found, problems }
    }
}

/// Lists one project folder.
pub(super) fn list(path: &Path) -> Found<ProjectFolder> {
    let mut found = ProjectFolder {
        path: path.to_owned(),
        ..ProjectFolder::default()
    };
    let mut problems = Vec::new();
    let names = match names_in(path, PROJECT_ENTRIES_MAX) {
        // A file among the folders is no project.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Found::clean(found),
        listed => names_or_report(listed, PROJECT_ENTRIES_MAX, |why| {
            problems.push(Problem::at(&AGENT, path, why));
        }),
    };
    for name in names.texts() {
        match name.strip_suffix(TRANSCRIPT_SUFFIX) {
            Some(stem) if stem.starts_with(PREFIX) => found.sub_agents.push(path.join(name)),
            Some(stem) if is_uuid(stem) => found.sessions.extend(SessionId::parse(stem)),
            None if is_uuid(name) => found.with_folder.extend(SessionId::parse(name)),
            _ => {}
        }
    }
    Found { found, problems }
}

impl ProjectFolder {
    /// Returns whether a session has a folder beside its transcript.
    pub(super) fn has_folder_of(&self, session: &SessionId) -> bool {
        self.with_folder.contains(session)
    }

    /// The sessions with their transcripts.
    pub(super) fn transcripts(&self) -> Vec<(SessionId, PathBuf)> {
        let sessions = self.sessions.iter();
        let transcripts = sessions.map(|session| (session.clone(), self.transcript(session)));
        transcripts.collect()
    }

    /// The path of a session's transcript.
    fn transcript(&self, session: &SessionId) -> PathBuf {
        self.path.join(format!("{session}{TRANSCRIPT_SUFFIX}"))
    }
}

/// The directory that the transcripts of a folder name.
fn directory_of(folder: &Path) -> Option<PathBuf> {
    let listed = list(folder).found;
    let mut some = listed.sessions.iter().take(OPENINGS_MAX);
    some.find_map(|session| read_opening(&listed.transcript(session)).ok()?.work_dir)
}

/// When a file was last modified; `None` if there is no regular file.
pub(super) fn modified_ms(path: &Path) -> Option<i64> {
    let facts = facts(path, Links::Follow).ok()?;
    Some(facts.modified_ms.unwrap_or(0))
}

/// Returns whether the name of a project folder may stand for this directory.
pub(super) fn is_folder_of(folder: &Path, directory: &Path) -> bool {
    let encoded = hyphenated(directory);
    let is_cut = encoded.len() > ENCODED_CHARS_MAX;
    let cut = encoded.get(..ENCODED_CHARS_MAX).filter(|_| is_cut);
    let is_cut_so = |name: &str| cut.is_some_and(|cut| name.starts_with(&format!("{cut}-")));
    file_name(folder).is_some_and(|name| name == encoded || is_cut_so(name))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
#[path = "projects_tests.rs"]
mod tests;
