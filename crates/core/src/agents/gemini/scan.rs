//! What a home tells: its projects, their sessions, and whose these may be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use whosup_sidecar::SessionId;

use super::chat::Chat;
use super::lineage::{self, Fate, Server};
use super::project::{self, Project};
use super::prompts::Prompts;
use super::{AGENT, process, subagent};
use crate::agents::folder::{Names, list_folders_or_tell, list_or_tell};
use crate::agents::terminal_use::{
    hardly_shown_until_ms, hardly_typed_until_ms, shown_until_ms, typed_until_ms,
};
use crate::agents::{AgentProcess, AgentScan, Home, Look, PairingRule, Role, Sketch};
use crate::claim::{Claim, SessionKey};
use crate::problem::{Found, Problem};

/// How many projects of a home are looked at.
const PROJECTS_MAX: usize = 100_000;

/// One home's scan while it grows.
pub(super) struct Scanning<'a> {
    pub(super) look: &'a Look<'a>,
    pub(super) home: &'a Home,
    found: AgentScan,
    problems: Vec<Problem>,
}

/// Scans one home.
pub(super) fn scan(look: &Look<'_>, home: &Home) -> Found<AgentScan> {
    let mut scanning = Scanning {
        look,
        home,
        found: AgentScan::default(),
        problems: Vec::new(),
    };
    for (project, servers) in scanning.projects() {
        scanning.read_project(&project, &servers);
    }
    Found {
        found: scanning.found,
        problems: scanning.problems,
    }
}

impl<'a> Scanning<'a> {
    pub(super) fn problem(&mut self, path: &Path, message: impl fmt::Display) {
        self.problems.push(Problem::at(&AGENT, path, message));
    }

    pub(super) fn add_sketch(&mut self, sketch: Sketch) {
        self.found.sketch(sketch);
    }

    pub(super) fn add_claim(&mut self, claim: Claim) {
        self.found.claim(claim);
    }

    pub(super) fn key(&self, session: &SessionId) -> SessionKey {
        SessionKey {
            agent: AGENT,
            session: session.clone(),
            home: self.home.root.clone(),
        }
    }

    /// The projects to read, each with the processes that work in its directory.
    fn projects(&mut self) -> BTreeMap<Project, Vec<&'a AgentProcess>> {
        let mut seekers: BTreeMap<PathBuf, Vec<&'a AgentProcess>> = BTreeMap::new();
        for process in self.look.processes_of(self.home) {
            if process.role == Role::Session
                && let Some(work_dir) = process.work_dir()
            {
                seekers
                    .entry(work_dir.to_owned())
                    .or_default()
                    .push(process);
            }
        }
        let path = self.home.root.join("projects.json");
        let slugs = project::read_slugs(&path).unwrap_or_else(|message| {
            self.problem(&path, message);
            BTreeMap::new()
        });
        let is_all = self.look.depth.is_walk();
        let mut slugs_to_read: BTreeSet<String> = seekers
            .keys()
            .filter_map(|work_dir| slugs.get(work_dir).cloned())
            .collect();
        // A directory that the list does not have may have a folder all the same.
        let is_in_list = |work_dir: &PathBuf| slugs.contains_key(work_dir);
        if is_all || !seekers.keys().all(is_in_list) || self.hosts_since().is_some() {
            let directory = project::folders_in(&self.home.root);
            let names = list_folders_or_tell(&directory, PROJECTS_MAX, |told| {
                self.problem(&directory, told);
            });
            slugs_to_read.extend(
                names
                    .texts()
                    .filter(|name| project::is_slug(name))
                    .map(str::to_owned),
            );
        }
        // Of a folder called by a hash any path that is known may be its.
        let known = slugs.keys().chain(seekers.keys());
        let hashed: BTreeMap<String, &Path> = known
            .filter_map(|root| Some((project::hashed_slug(root)?, root.as_path())))
            .collect();
        let hashed_of_seekers = seekers.keys().filter_map(|root| project::hashed_slug(root));
        let folders = project::folders_in(&self.home.root);
        slugs_to_read.extend(hashed_of_seekers.filter(|slug| folders.join(slug).is_dir()));
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
            let may_be_hosted = || self.may_be_hosted(&project);
            if is_all || servers.is_some() || may_be_hosted() {
                projects.insert(project, servers.unwrap_or_default());
            }
        }
        projects
    }

    /// The folder `slug`, which the list says to be of `root`.
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

    fn read_project(&mut self, project: &Project, seekers: &[&AgentProcess]) {
        let prompts_path = project.prompts();
        let prompts = match Prompts::read(&prompts_path) {
            Ok(prompts) => prompts,
            Err(message) if !seekers.is_empty() => {
                self.problem(&prompts_path, message);
                None
            }
            Err(_) => None,
        };
        let servers: Vec<Server> = seekers
            .iter()
            .filter_map(|process| server_of(process))
            .collect();
        let hosts_since = self.hosts_since();
        let since = servers
            .iter()
            .map(|server| server.began_at_ms)
            .chain(hosts_since)
            .min();
        let chats = self.chats(project, since, &servers, prompts.as_ref());
        // Without what was typed, a session that `/clear` made can't be told
        // from one that another process began with.
        let is_typed_known = servers.iter().all(|server| {
            let is_read = prompts.as_ref();
            server.is_one_shot || is_read.is_some_and(|all| all.reaches_back_to(server.began_at_ms))
        });
        let is_known = is_typed_known && servers.len() == seekers.len();
        let prompts = prompts.unwrap_or_default();
        let mut fates = lineage::fates(&servers, &chats, &prompts);
        let if_noted = seekers.iter().filter_map(|its| if_use_is_noted(its));
        let if_noted: Vec<Server> = if_noted.collect();
        if if_noted != servers {
            let others = lineage::fates(&if_noted, &chats, &prompts);
            for (fate, (_, other)) in fates.values_mut().zip(&others) {
                fate.doubt(other);
            }
        }
        for chat in &chats {
            let fate = fates.get(chat.id.as_str()).filter(|_| is_known);
            self.sketch(project, chat, fate, seekers);
            self.claim_of_hosts(chat, fate);
            if fate.is_none_or(|fate| !fate.owners.is_empty()) || self.look.depth.is_walk() {
                subagent::read(self, project, chat);
            }
        }
    }

    fn sketch(
        &mut self,
        project: &Project,
        chat: &Chat,
        fate: Option<&Fate>,
        seekers: &[&AgentProcess],
    ) {
        let owners = fate.map(|fate| fate.owners.clone());
        let is_one_shot = |pid: &whosup_process::Pid| {
            let its = seekers.iter().find(|seeker| seeker.process.pid == *pid);
            its.is_some_and(|its| process::is_one_shot(&its.program()))
        };
        let is_headless = owners
            .as_ref()
            .is_some_and(|owners| !owners.is_empty() && owners.iter().all(is_one_shot));
        let may_have_owner = owners.as_ref().is_none_or(|owners| !owners.is_empty());
        let sketch = Sketch {
            work_dir: project.root.clone(),
            born_at_ms: chat.born_at_ms(),
            last_record_at_ms: chat.last_at_ms,
            perhaps_until_ms: chat.torn_until_ms,
            transcript: chat.path.clone(),
            pairing: if may_have_owner {
                PairingRule::Owner
            } else {
                PairingRule::Never
            },
            possible_owners: owners,
            doubtful_owners: fate.map(|fate| fate.doubtful.clone()).unwrap_or_default(),
            // Where nothing tells that `/clear` made it, a process may have at its start.
            is_first_of_a_process: fate.is_none_or(|fate| fate.is_first),
            is_headless: is_headless.then_some(true),
            is_resumable: chat.has_conversation && !chat.was_removed(),
            started_at_ms: chat.born_at_ms(),
            ..Sketch::new(self.key(&chat.id))
        };
        self.add_sketch(sketch);
    }

    pub(super) fn names(&mut self, directory: &Path, entries_max: usize) -> Names {
        list_or_tell(directory, entries_max, |told| self.problem(directory, told))
    }
}

/// Of a folder whose mark may be the torn one of a directory that a process works in,
/// which has no other folder, it is not known of which directory it is.
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

/// `None` if it is not known when the process began.
fn server_of(process: &AgentProcess) -> Option<Server> {
    let program = process.program();
    Some(Server {
        pid: process.process.pid,
        began_at_ms: *process.process.began_at_ms.as_ref().ok()?,
        named: process::session_named_by(&program).map(str::to_owned),
        resumes: process::resumes(&program),
        is_one_shot: process::is_one_shot(&program),
        has_first_prompt: process::has_first_prompt(&program),
        typed_until_ms: typed_until_ms(process),
        shown_until_ms: shown_until_ms(process),
    })
}

/// The same, if its kernel notes how its terminal is used, though nothing shows that.
fn if_use_is_noted(process: &AgentProcess) -> Option<Server> {
    Some(Server {
        typed_until_ms: hardly_typed_until_ms(process),
        shown_until_ms: hardly_shown_until_ms(process),
        ..server_of(process)?
    })
}
