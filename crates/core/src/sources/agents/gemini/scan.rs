//! Scans a home: its projects, their sessions, and the candidate processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use super::chat::{self, Chat};
use super::lineage::{self, Lineage};
use super::project::{self, Project};
use super::prompts::Prompts;
use super::{AGENT, process, subagent};
use crate::adapter::claim::{CLOCK_SLACK_MS, Claim, SessionKey};
use crate::adapter::{
    AgentProcess, AgentScan, Clue, Home, Look, Lost, Program, Role, Sketch, Unclaimed, Visit,
};
use crate::machine::problem::{Found, Problem};
use crate::sources::agents::kit::folder::{
    Names, is_directory, list_folders_or_report, list_or_report,
};
use crate::sources::agents::kit::one_per_session::OnePerSession;

/// How many projects of a home are looked at.
const PROJECTS_MAX: usize = 100_000;

/// One home's scan while it grows.
pub(super) struct Scanning<'a> {
    pub(super) look: &'a Look<'a>,
    pub(super) home: &'a Home,
    pub(super) sketches: OnePerSession,
    claims: Vec<Box<Claim>>,
    problems: Vec<Problem>,
}

/// Scans one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        look,
        home,
        sketches: OnePerSession::new(chat::said),
        claims: Vec::new(),
        problems: Vec::new(),
    };
    for (project, servers) in scanning.projects() {
        scanning.read_project(&project, &servers);
    }
    Found {
        found: scanning.sketches.into_scan(scanning.claims),
        problems: scanning.problems,
    }
}

impl<'a> Scanning<'a> {
    pub(super) fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    pub(super) fn add_claim(&mut self, claim: Claim) {
        self.claims.push(Box::new(claim));
    }

    pub(super) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// The processes that may serve a session, by the directories that they work in.
    fn seekers(&self) -> BTreeMap<PathBuf, Vec<&'a AgentProcess>> {
        let mut seekers: BTreeMap<PathBuf, Vec<&'a AgentProcess>> = BTreeMap::new();
        let processes = self.look.processes_of(self.home);
        for process in processes.filter(|process| process.role == Role::Session) {
            for work_dir in process.work_dirs() {
                let seekers = seekers.entry(work_dir.to_owned()).or_default();
                seekers.push(process);
            }
        }
        seekers
    }

    /// The projects to read, each with the processes that work in its directory.
    fn projects(&mut self) -> BTreeMap<Project, Vec<&'a AgentProcess>> {
        let seekers = self.seekers();
        let path = self.home.root.join("projects.json");
        let slugs = project::read_slugs(&path).unwrap_or_else(|message| {
            self.problem(&path, message);
            BTreeMap::new()
        });
        let is_all = self.look.depth.is_walk();
        let of_seekers = seekers.keys().filter_map(|work_dir| slugs.get(work_dir));
        let gone = slugs
            .iter()
            .filter(|(root, _)| self.displaced_since(root).is_some());
        let mut slugs_to_read: BTreeSet<String> = of_seekers
            .chain(gone.map(|(_, slug)| slug))
            .cloned()
            .collect();
        // A directory that the list does not have may have a folder all the same.
        let is_in_list = |work_dir: &PathBuf| slugs.contains_key(work_dir);
        if is_all || !seekers.keys().all(is_in_list) || self.hosts_since().is_some() {
            let directory = project::folders_in(&self.home.root);
            let names = list_folders_or_report(&directory, PROJECTS_MAX, |message| {
                self.problem(&directory, message);
            });
            slugs_to_read.extend(
                names
                    .texts()
                    .filter(|name| project::is_slug(name))
                    .map(str::to_owned),
            );
        }
        // A folder named by a hash may belong to any known path.
        let known = slugs.keys().chain(seekers.keys());
        let hashed: BTreeMap<String, &Path> = known
            .filter_map(|root| Some((project::hashed_slug(root)?, root.as_path())))
            .collect();
        let hashed_of_seekers = seekers.keys().filter_map(|root| project::hashed_slug(root));
        let folders = project::folders_in(&self.home.root);
        slugs_to_read.extend(hashed_of_seekers.filter(|slug| is_directory(&folders.join(slug))));
        let listed = slugs
            .iter()
            .map(|(root, slug)| (slug.as_str(), root.as_path()));
        let hashed = hashed.iter().map(|(slug, root)| (slug.as_str(), *root));
        let roots: BTreeMap<&str, &Path> = hashed.chain(listed).collect();
        let read = slugs_to_read.iter().map(|slug| {
            let root = roots.get(slug.as_str()).copied();
            self.project(slug, root)
        });
        let mut read: Vec<Project> = read.collect();
        forget_torn_marks(&mut read, seekers.keys().map(PathBuf::as_path), &slugs);
        let mut projects: BTreeMap<Project, Vec<&'a AgentProcess>> = BTreeMap::new();
        for project in read {
            let servers = project
                .root
                .as_ref()
                .and_then(|root| seekers.get(root))
                .cloned();
            let root = project.root.as_deref();
            let displaced_since = || root.and_then(|root| self.displaced_since(root));
            if is_all
                || servers.is_some()
                || displaced_since().is_some()
                || self.may_be_hosted(&project)
            {
                projects.insert(project, servers.unwrap_or_default());
            }
        }
        projects
    }

    /// Since when processes run that may have been started in `root`, which is gone.
    fn displaced_since(&self, root: &Path) -> Option<i64> {
        let since = self.look.displaced_since(self.home)?;
        self.look.may_be_gone(root).then_some(since)
    }

    /// The folder `slug`, which the list assigns to `root`.
    fn project(&mut self, slug: &str, root: Option<&Path>) -> Project {
        Project::at(&self.home.root, slug, root).unwrap_or_else(|message| {
            let folder = project::folders_in(&self.home.root).join(slug);
            self.problem(&folder.join(".project_root"), message);
            Project {
                folder,
                root: root.map(Path::to_owned),
            }
        })
    }

    /// Reads what was typed in a project. A failure is a problem only where a process works.
    fn read_prompts(&mut self, project: &Project, has_processes: bool) -> Option<Prompts> {
        let path = project.prompts();
        Prompts::read(&path).unwrap_or_else(|message| {
            if has_processes {
                self.problem(&path, message);
            }
            None
        })
    }

    fn read_project(&mut self, project: &Project, seekers: &[&AgentProcess]) {
        let prompts = self.read_prompts(project, !seekers.is_empty());
        let began = |process: &AgentProcess| process.process.began_at_ms.clone().ok();
        let oldest = seekers.iter().filter_map(|process| began(process)).min();
        let root = project.root.as_deref();
        let displaced_since = root.and_then(|root| self.displaced_since(root));
        let since = oldest.into_iter().chain(self.hosts_since());
        let since = since.chain(displaced_since).min();
        let programs: Vec<Program<'_>> = seekers.iter().map(|process| process.program()).collect();
        let named: Vec<&str> = programs
            .iter()
            .filter_map(|program| process::PROGRAMS.session(program))
            .collect();
        let chats = self.chats(project, since, &named, prompts.as_ref());
        // Without the typed prompts, a session that `/clear` made looks like a session that
        // another process was launched with.
        let is_typed_known = seekers.iter().all(|process| {
            let all = prompts.as_ref();
            process::PROGRAMS.is_headless(&process.program())
                || began(process).is_some_and(|at| all.is_some_and(|all| all.reaches_back_to(at)))
        });
        let prompts = prompts.unwrap_or_default();
        let lineage = Lineage {
            chats: &chats,
            prompts: &prompts,
        };
        let paths: Vec<(&Chat, Vec<lineage::Path>)> = chats
            .iter()
            .map(|chat| (chat, lineage.paths_of(chat)))
            .collect();
        for (chat, own_paths) in &paths {
            let typed_at_ms = lineage.typed_at_ms(chat);
            let latest = chat
                .last_at_ms
                .max(chat.perhaps_until_ms)
                .max(chat.born_at_ms());
            let latest = latest.max(typed_at_ms);
            let may_serve = |process: &&&AgentProcess| {
                began(process).is_none_or(|began| {
                    latest.is_some_and(|at| at >= began.saturating_sub(CLOCK_SLACK_MS))
                })
            };
            let possible: Vec<&AgentProcess> = seekers.iter().filter(may_serve).copied().collect();
            let mut sketch = self.sketch(project, chat, &possible);
            sketch.launched_at_ms.extend(lineage.launches_of(chat));
            sketch.launched_within_ms = lineage.launched_within(chat);
            sketch.prompted_at_ms = typed_at_ms;
            for path in own_paths {
                add_path(&mut sketch, path, &possible);
            }
            let all = paths
                .iter()
                .flat_map(|(first, paths)| paths.iter().map(move |path| (*first, path)));
            sketch.visits = all
                .flat_map(|(first, path)| visits_of(first, path, chat))
                .collect();
            if !is_typed_known {
                let says = "what was typed in its terminal cannot be read";
                let gaps = possible
                    .iter()
                    .map(|process| Clue::gap(process.process.pid, says));
                sketch.clues.extend(gaps);
            }
            self.sketches
                .add(sketch, possible.iter().map(|process| process.process.pid));
            self.claim_of_hosts(chat, !possible.is_empty());
            if !possible.is_empty() || self.look.depth.is_walk() {
                subagent::read(self, project, chat);
            }
        }
    }

    fn sketch(&self, project: &Project, chat: &Chat, possible: &[&AgentProcess]) -> Sketch {
        let is_one_shot =
            |process: &&AgentProcess| process::PROGRAMS.is_headless(&process.program());
        let is_headless = !possible.is_empty() && possible.iter().all(is_one_shot);
        Sketch {
            work_dir: project.root.clone(),
            born_at_ms: chat.born_at_ms(),
            last_record_at_ms: chat.last_at_ms,
            perhaps_until_ms: chat.torn_until_ms,
            transcript: chat.path.clone(),
            unclaimed: Unclaimed::Owner,
            is_headless: is_headless.then_some(true),
            is_resumable: chat.has_conversation && !chat.was_removed(),
            started_at_ms: chat.born_at_ms(),
            ..Sketch::new(self.key(&chat.id))
        }
    }

    pub(super) fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_report(directory, entries_max, |message| {
            self.problem(directory, message)
        })
    }
}

/// Marks the directory of a folder as unknown if its mark may be the torn path of a
/// directory in which a process works and which has no other folder.
fn forget_torn_marks<'a>(
    projects: &mut [Project],
    work_dirs: impl Iterator<Item = &'a Path>,
    slugs: &BTreeMap<PathBuf, String>,
) {
    let has_folder = |work_dir: &Path| {
        let mut projects = projects.iter();
        projects.any(|project| project.root.as_deref() == Some(work_dir))
    };
    let without: Vec<&Path> = work_dirs.filter(|work_dir| !has_folder(work_dir)).collect();
    for project in projects {
        let is_listed = |root: &PathBuf| {
            let slug = slugs.get(root).map(String::as_str);
            slug.is_some() && slug == project.folder.file_name().and_then(|name| name.to_str())
        };
        let is_sure = project.root.as_ref().is_some_and(is_listed);
        if !is_sure && without.iter().any(|work_dir| project.may_be_of(work_dir)) {
            project.root = None;
        }
    }
}

/// Adds the log's facts about a process that was launched with a session.
fn add_path(sketch: &mut Sketch, path: &lineage::Path, possible: &[&AgentProcess]) {
    sketch.lost.extend(path.lost_at_ms.map(|at_ms| Lost {
        launched_at_ms: path.launched_at_ms,
        at_ms,
    }));
    let Some(quit_at_ms) = path.quit_at_ms else {
        return;
    };
    let before = possible.iter().filter(|process| {
        let began = process.process.began_at_ms.as_ref();
        began.is_ok_and(|began| *began <= quit_at_ms)
    });
    sketch.clues.extend(before.map(|seeker| {
        let pid = seeker.process.pid;
        Clue::untouched(
            pid,
            format!("the process that had it has quit, and {pid} runs"),
        )
    }));
}

/// When a process that was launched with `first` was in the session `chat`.
fn visits_of<'a>(
    first: &'a Chat,
    path: &'a lineage::Path,
    chat: &'a Chat,
) -> impl Iterator<Item = Visit> + 'a {
    let visits = path
        .visits
        .iter()
        .filter(|(session, _)| *session == chat.id);
    visits.map(|(_, at_ms)| Visit {
        launched_with: first.id.clone(),
        launched_at_ms: path.launched_at_ms,
        at_ms: *at_ms,
    })
}
