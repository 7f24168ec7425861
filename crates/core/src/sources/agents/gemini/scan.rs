//! Scans a home: its projects, their sessions, and the candidate processes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::chat::{self, Chat};
use super::lineage::{self, Lineage};
use super::project::{self, Project};
use super::prompts::Prompts;
use super::{AGENT, process, subagent};
use crate::adapter::{
    AgentProcess, AgentScan, Clue, ClueKind, Home, Look, Sketch, Unclaimed, Visit,
};
use crate::machine::problem::Found;
use crate::sources::agents::kit::folder::is_directory;
use crate::sources::agents::kit::one_per_session::OnePerSession;
use crate::sources::agents::kit::scan::Scan;

/// How many projects of a home are looked at.
const PROJECTS_MAX: usize = 100_000;

/// One home's scan while it grows.
pub(super) struct Scanning<'a> {
    pub(super) scan: Scan<'a>,
    pub(super) sketches: OnePerSession,
}

/// Scans one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        scan: Scan::new(AGENT, look, home),
        sketches: OnePerSession::new(chat::said),
    };
    for (project, servers) in scanning.projects() {
        scanning.read_project(&project, &servers);
    }
    scanning.scan.finish(scanning.sketches)
}

impl<'a> Scanning<'a> {
    /// The projects to read, each with the processes that work in its directory.
    fn projects(&mut self) -> BTreeMap<Project, Vec<&'a AgentProcess>> {
        let seekers = self.scan.seekers_by(|work_dir| Some(work_dir.to_owned()));
        let path = self.scan.home.root.join("projects.json");
        let slugs = project::read_slugs(&path).unwrap_or_else(|message| {
            self.scan.problem(&path, message);
            BTreeMap::new()
        });
        let is_all = self.scan.look.depth.is_walk();
        let (look, home) = (self.scan.look, self.scan.home);
        let is_sought = |root: &PathBuf| {
            seekers.contains_key(root) || look.displaced_from(home, Some(root)).is_some()
        };
        let sought = slugs.iter().filter(|(root, _)| is_sought(root));
        let mut slugs_to_read: BTreeSet<String> = sought.map(|(_, slug)| slug.clone()).collect();
        let folders = project::folders_in(&self.scan.home.root);
        // A directory that the list does not have may have a folder all the same.
        let is_in_list = |work_dir: &PathBuf| slugs.contains_key(work_dir);
        if is_all || !seekers.keys().all(is_in_list) || self.hosts_since().is_some() {
            let names = self.scan.folders(&folders, PROJECTS_MAX);
            let found = names.texts().filter(|name| project::is_slug(name));
            slugs_to_read.extend(found.map(str::to_owned));
        }
        let hashed_of_seekers = seekers.keys().filter_map(|root| project::hashed_slug(root));
        slugs_to_read.extend(hashed_of_seekers.filter(|slug| is_directory(&folders.join(slug))));
        // A folder named by a hash may belong to any known path.
        let known = slugs.keys().chain(seekers.keys());
        let hashed = known.filter_map(|root| Some((project::hashed_slug(root)?, root)));
        let listed = slugs.iter().map(|(root, slug)| (slug.clone(), root));
        let roots: BTreeMap<String, &PathBuf> = hashed.chain(listed).collect();
        let read = slugs_to_read
            .iter()
            .map(|slug| self.project(slug, roots.get(slug).copied()));
        let mut read: Vec<Project> = read.collect();
        forget_torn_marks(&mut read, seekers.keys(), &slugs);
        let mut projects = BTreeMap::new();
        for project in read {
            let root = project.root.as_deref();
            let servers = root.and_then(|root| seekers.get(root)).cloned();
            if is_all
                || servers.is_some()
                || look.displaced_from(home, root).is_some()
                || self.may_be_hosted(&project)
            {
                projects.insert(project, servers.unwrap_or_default());
            }
        }
        projects
    }

    /// The folder `slug`, which the list assigns to `root`.
    fn project(&mut self, slug: &str, root: Option<&PathBuf>) -> Project {
        let home = &self.scan.home.root;
        Project::at(home, slug, root.map(PathBuf::as_path)).unwrap_or_else(|message| {
            let folder = project::folders_in(home).join(slug);
            self.scan.problem(&folder.join(".project_root"), message);
            Project {
                folder,
                root: root.cloned(),
            }
        })
    }

    fn read_project(&mut self, project: &Project, seekers: &[&AgentProcess]) {
        let path = project.prompts();
        let prompts = Prompts::read(&path).unwrap_or_else(|message| {
            // Where no process works, nothing depends on it.
            if !seekers.is_empty() {
                self.scan.problem(&path, message);
            }
            None
        });
        let began = |process: &AgentProcess| process.process.began_ms();
        let since = seekers.iter().filter_map(|process| began(process));
        let since = since.chain(self.hosts_since());
        let (look, home) = (self.scan.look, self.scan.home);
        let since = since.chain(look.displaced_from(home, project.root.as_deref()));
        let named = seekers.iter().filter_map(|process| process.named_session());
        let named: Vec<&str> = named.collect();
        let chats = self.chats(project, since.min(), &named, prompts.as_ref());
        // Without the typed prompts, a session that `/clear` made looks like a session that
        // another process was launched with.
        let is_typed_known = seekers.iter().all(|process| {
            let known = prompts.as_ref().zip(began(process));
            is_headless(process) || known.is_some_and(|(all, at_ms)| all.reaches_back_to(at_ms))
        });
        let prompts = prompts.unwrap_or_default();
        let lineage = Lineage {
            chats: &chats,
            prompts: &prompts,
        };
        let paths = chats.iter().map(|chat| (chat, lineage.paths_of(chat)));
        let paths: Vec<(&Chat, Vec<lineage::Path>)> = paths.collect();
        for (chat, own_paths) in &paths {
            let typed_at_ms = lineage.typed_at_ms(chat);
            let latest = [chat.last_at_ms, chat.perhaps_until_ms, chat.born_at_ms()];
            let latest = latest.into_iter().chain([typed_at_ms]).flatten().max();
            let may_serve = |process: &&&AgentProcess| {
                process.had_begun_at(latest.unwrap_or(i64::MIN)) != Some(false)
            };
            let possible: Vec<&AgentProcess> = seekers.iter().filter(may_serve).copied().collect();
            let pids = possible.iter().map(|process| process.process.pid);
            let mut sketch = self.sketch(project, chat, &possible);
            sketch.launched_at_ms.extend(lineage.launches_of(chat));
            sketch.launched_within_ms = lineage.launched_within(chat);
            sketch.prompted_at_ms = typed_at_ms;
            for path in own_paths {
                add_path(&mut sketch, path, &possible);
            }
            for (first, paths) in &paths {
                let visits = paths.iter().flat_map(|path| visits_of(first, path, chat));
                sketch.visits.extend(visits);
            }
            if !is_typed_known {
                let says = "what was typed in its terminal cannot be read";
                sketch
                    .clues
                    .extend(pids.clone().map(|pid| Clue::gap(pid, says)));
            }
            self.sketches.add(sketch, pids);
            self.claim_of_hosts(chat, !possible.is_empty());
            if !possible.is_empty() || self.scan.look.depth.is_walk() {
                subagent::read(self, project, chat);
            }
        }
    }

    fn sketch(&self, project: &Project, chat: &Chat, possible: &[&AgentProcess]) -> Sketch {
        let is_headless =
            !possible.is_empty() && possible.iter().all(|process| is_headless(process));
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
            ..Sketch::new(self.scan.key(&chat.id))
        }
    }
}

fn is_headless(process: &AgentProcess) -> bool {
    process::PROGRAMS.is_headless(&process.program())
}

/// Marks the directory of a folder as unknown if its mark may be the torn path of a
/// directory in which a process works and which has no other folder.
fn forget_torn_marks<'a>(
    projects: &mut [Project],
    work_dirs: impl Iterator<Item = &'a PathBuf>,
    slugs: &BTreeMap<PathBuf, String>,
) {
    let has_folder = |work_dir: &PathBuf| {
        let mut projects = projects.iter();
        projects.any(|project| project.root.as_ref() == Some(work_dir))
    };
    let without = work_dirs.filter(|work_dir| !has_folder(work_dir));
    let without: Vec<&PathBuf> = without.collect();
    for project in projects {
        let slug = project.root.as_ref().and_then(|root| slugs.get(root));
        let is_sure = slug.is_some_and(|slug| project.folder.file_name() == Some(slug.as_ref()));
        if !is_sure && without.iter().any(|work_dir| project.may_be_of(work_dir)) {
            project.root = None;
        }
    }
}

/// Adds the log's facts about a process that was launched with a session.
fn add_path(sketch: &mut Sketch, path: &lineage::Path, possible: &[&AgentProcess]) {
    let lost = path.lost_at_ms.map(|_| path.launched_at_ms);
    sketch.lost_launches_ms.extend(lost);
    let Some(quit_at_ms) = path.quit_at_ms else {
        return;
    };
    let before = possible.iter().filter(|process| {
        let began = process.process.began_ms();
        began.is_some_and(|began| began <= quit_at_ms)
    });
    sketch.clues.extend(before.map(|seeker| {
        let pid = seeker.process.pid;
        let says = format!("the process that had it has quit, and {pid} runs");
        Clue::new(pid, ClueKind::Untouched, says)
    }));
}

/// When a process that was launched with `first` was in the session `chat`.
fn visits_of<'a>(
    first: &'a Chat,
    path: &'a lineage::Path,
    chat: &'a Chat,
) -> impl Iterator<Item = Visit> + 'a {
    let visits = path.visits.iter();
    let visits = visits.filter(|(session, _)| *session == chat.id);
    visits.map(|(_, at_ms)| Visit {
        launched_with: first.id.clone(),
        launched_at_ms: path.launched_at_ms,
        at_ms: *at_ms,
    })
}
