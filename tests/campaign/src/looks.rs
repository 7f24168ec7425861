//! Looks at a world with `whosup`, and compares the answers with the truth and
//! with each other.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;

use crate::report::{Class, Tally, Wrong};
use crate::truth::{Life, Truth, truth};
use crate::world::World;

/// How many sessions are asked for one by one at each look.
const SINGLED_OUT: usize = 2;
/// How many kinds of wrong answers of one world are kept with all that belongs to them.
const WRONGS_MAX: usize = 100;
/// How many files are compared before and after.
const FILES_MAX: usize = 100_000;

/// What a command says about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    liveness: String,
    owner: Option<i64>,
    reason: String,
}

impl Answer {
    fn of(row: &Value) -> Self {
        Self {
            liveness: row["liveness"].as_str().unwrap_or_default().to_owned(),
            owner: row["owner"]["pid"].as_i64(),
            reason: row["reason"].as_str().unwrap_or_default().to_owned(),
        }
    }

    fn agrees(&self, other: &Self) -> bool {
        self.liveness == other.liveness && (self.liveness != "live" || self.owner == other.owner)
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} ({})", self.liveness, self.reason)
    }
}

/// When and where a look happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) seed: u64,
    pub(crate) world: u64,
    pub(crate) step: usize,
    pub(crate) step_kind: &'a str,
}

/// One look at everything.
pub(crate) struct Look<'a> {
    world: &'a mut World,
    tally: &'a mut Tally,
    moment: Moment<'a>,
    home: PathBuf,
}

/// Looks at a world after a step.
pub(crate) fn look(world: &mut World, tally: &mut Tally, moment: Moment<'_>) -> anyhow::Result<()> {
    let home = world.home_by_some_name();
    let mut look = Look {
        world,
        tally,
        moment,
        home,
    };
    look.everything()
}

impl Look<'_> {
    fn everything(&mut self) -> anyhow::Result<()> {
        let is_compared = self.world.chance.percent(25);
        let before = is_compared.then(|| tree(&self.world.root));
        let whole = self.json(&["list", "--all", "--json"])?;
        let default = self.json(&["list", "--json"])?;
        if let (Some(whole), Some(default)) = (&whole, &default) {
            self.compare(whole, default)?;
        }
        if let Some(before) = before {
            self.compare_trees(&before, &tree(&self.world.root));
        }
        if self.world.chance.percent(10) {
            // It may end records, which are its own to change; the next look
            // sees what came of that.
            self.json(&["status", "--json"])?;
        }
        Ok(())
    }

    fn compare(&mut self, whole: &Value, default: &Value) -> anyhow::Result<()> {
        self.problems(whole);
        let mut singled_out: Vec<usize> = (0..self.world.sessions.len()).collect();
        while singled_out.len() > SINGLED_OUT {
            let at = self.world.chance.below(singled_out.len());
            singled_out.swap_remove(at);
        }
        for at in 0..self.world.sessions.len() {
            let Some(session) = self.world.sessions.get(at) else {
                continue;
            };
            if !session.is_on_disk {
                continue;
            }
            self.tally.looks += 1;
            let truth = truth(self.world, at, session);
            let (agent, id) = (session.agent.id(), session.id.clone());
            let rows = rows(whole, agent, &id);
            let Some(row) = rows.first() else {
                self.missing(at, &truth);
                continue;
            };
            if rows.len() > 1 {
                // What else is said of it follows from that.
                self.found(Class::Twice, at, "list --all", &truth, "listed twice");
                continue;
            }
            let answer = Answer::of(row);
            let class = judge(&answer, &truth);
            self.found(class, at, "list --all", &truth, &answer.to_string());
            self.default_view(at, &truth, &answer, default);
            if singled_out.contains(&at) {
                self.one_by_one(at, &truth, &answer)?;
            }
        }
        Ok(())
    }

    /// A session of which nothing is listed. One that lives or could be resumed
    /// has to be.
    fn missing(&mut self, at: usize, truth: &Truth) {
        let is_needed = (matches!(truth.life, Life::Live(_)) && truth.is_knowable)
            || self
                .world
                .sessions
                .get(at)
                .is_some_and(|session| session.prompts > 0);
        let class = match truth.arguable {
            Some(_) => Class::Arguable,
            None if is_needed => Class::Missing,
            None => Class::Right,
        };
        self.found(class, at, "list --all", truth, "nothing");
    }

    /// The default view has everything that lives, and says the same of it.
    fn default_view(&mut self, at: usize, truth: &Truth, whole: &Answer, default: &Value) {
        let Some(session) = self.world.sessions.get(at) else {
            return;
        };
        let rows = rows(default, session.agent.id(), &session.id);
        let (is_same, says) = match rows.first() {
            Some(row) => {
                let answer = Answer::of(row);
                (answer.agrees(whole), answer.to_string())
            }
            None => (whole.liveness != "live", "nothing".to_owned()),
        };
        if is_same {
            self.found(Class::Right, at, "list", truth, &says);
        } else {
            let says = format!("{says}, `list --all` {whole}");
            self.found(Class::Disagreement, at, "list", truth, &says);
        }
    }

    fn one_by_one(&mut self, at: usize, truth: &Truth, whole: &Answer) -> anyhow::Result<()> {
        let session = self.world.sessions.get(at).context("a session")?;
        let (agent, name) = (session.agent.id(), session.id.clone());
        let id = format!("{agent}:{name}");
        let check = self.run(&["check", &id])?;
        let says = match check.status.code() {
            Some(0) => "live".to_owned(),
            Some(1) => "exited".to_owned(),
            Some(3) => "unknown".to_owned(),
            other => format!("exit status {other:?}"),
        };
        self.says(at, "check", truth, whole, says == whole.liveness, &says);
        if let Some(why) = self.json(&["why", "--json", &id])? {
            let rows = rows(&why, agent, &name);
            let answer = rows
                .first()
                .map_or_else(|| Answer::of(&Value::Null), |row| Answer::of(row));
            self.says(
                at,
                "why",
                truth,
                whole,
                answer.agrees(whole),
                &answer.to_string(),
            );
        }
        if whole.liveness == "live" && self.world.chance.percent(30) {
            let pid = self.run(&["pid", &id])?;
            let says = String::from_utf8_lossy(&pid.stdout).trim().to_owned();
            let is_same = says.parse().ok() == whole.owner;
            self.says(at, "pid", truth, whole, is_same, &says);
        }
        Ok(())
    }

    fn says(
        &mut self,
        at: usize,
        command: &str,
        truth: &Truth,
        whole: &Answer,
        is_same: bool,
        says: &str,
    ) {
        if is_same {
            self.found(Class::Right, at, command, truth, says);
        } else {
            let says = format!("{says}, `list --all` {whole}");
            self.found(Class::Disagreement, at, command, truth, &says);
        }
    }

    fn problems(&mut self, whole: &Value) {
        if self.world.is_damaged {
            return;
        }
        let problems = whole["problems"].as_array();
        for problem in problems.into_iter().flatten() {
            let agent = problem["agent"].as_str().unwrap_or("whosup").to_owned();
            let message = problem["message"].as_str().unwrap_or_default().to_owned();
            self.keep(
                Class::Problem,
                &agent,
                "",
                "list --all",
                "nothing is damaged",
                &message,
                &problem.to_string(),
            );
        }
    }

    fn compare_trees(&mut self, before: &Tree, after: &Tree) {
        if before == after {
            return;
        }
        let changed: Vec<String> = before
            .iter()
            .filter(|(path, facts)| after.get(*path) != Some(facts))
            .map(|(path, _)| path.display().to_string())
            .chain(
                after
                    .keys()
                    .filter(|path| !before.contains_key(*path))
                    .map(|path| format!("new: {}", path.display())),
            )
            .collect();
        self.keep(
            Class::Changed,
            "whosup",
            "",
            "list, check, why",
            "nothing changes",
            "changed files",
            &changed.join("\n"),
        );
    }

    /// Counts an answer, and keeps it if it is wrong.
    fn found(&mut self, class: Class, at: usize, command: &str, truth: &Truth, answer: &str) {
        let Some(session) = self.world.sessions.get(at) else {
            return;
        };
        let (agent, id) = (session.agent.id(), session.id.clone());
        if matches!(
            class,
            Class::Right | Class::UnknownRightly | Class::Arguable
        ) {
            self.tally.count(class, agent, self.moment.step_kind);
            return;
        }
        if self.tally.repeat(class, agent, command, answer) {
            self.tally.count(class, agent, self.moment.step_kind);
            return;
        }
        let why = self.why(&format!("{agent}:{id}"));
        let said = match &truth.life {
            Life::Live(_) if truth.is_knowable => "it lives, and that can be known",
            Life::Live(_) => "it lives",
            Life::Dead if truth.is_knowable => "it is over, and that can be known",
            Life::Dead => "it is over",
            Life::Elsewhere => "it is of another host",
        };
        let details = format!("{truth:?}\nanswer: {answer}\n\n{why}");
        self.keep(class, agent, &id, command, said, answer, &details);
    }

    fn why(&mut self, id: &str) -> String {
        let output = self.run(&["why", id]);
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }

    #[allow(clippy::too_many_arguments, reason = "a line of the report")]
    fn keep(
        &mut self,
        class: Class,
        agent: &str,
        session: &str,
        command: &str,
        truth: &str,
        answer: &str,
        details: &str,
    ) {
        self.tally.count(class, agent, self.moment.step_kind);
        if self.tally.repeat(class, agent, command, answer) || self.tally.wrongs.len() >= WRONGS_MAX
        {
            return;
        }
        let printout = format!(
            "{}\n\n{details}\n\n{}",
            self.world.story.join("\n"),
            printout(self.world)
        );
        self.tally.wrongs.push(Wrong {
            class,
            agent: agent.to_owned(),
            count: 1,
            session: session.to_owned(),
            step_kind: self.moment.step_kind.to_owned(),
            step: self.moment.step,
            seed: self.moment.seed,
            world: self.moment.world,
            command: command.to_owned(),
            truth: truth.to_owned(),
            answer: answer.to_owned(),
            printout,
        });
    }

    /// Runs a command that prints JSON; nothing if it doesn't.
    fn json(&mut self, arguments: &[&str]) -> anyhow::Result<Option<Value>> {
        let output = self.run(arguments)?;
        let parsed = serde_json::from_slice(&output.stdout).ok();
        let is_signalled = output.status.code().is_none_or(|code| code > 4);
        if parsed.is_none() || is_signalled {
            let details = format!("{output:?}");
            let answer = format!("{:?}", output.status.code());
            self.keep(
                Class::Crash,
                "whosup",
                "",
                arguments.first().unwrap_or(&"whosup"),
                "it answers",
                &answer,
                &details,
            );
            return Ok(None);
        }
        Ok(parsed)
    }

    fn run(&mut self, arguments: &[&str]) -> anyhow::Result<Output> {
        let began = Instant::now();
        let output = Command::new(&self.world.whosup)
            .args(arguments)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", "/usr/bin:/bin")
            .current_dir(&self.world.root)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.world.whosup.display()))?;
        self.tally.commands += 1;
        self.tally.command_ms += u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
        Ok(output)
    }
}

/// What an answer is, beside the truth.
fn judge(answer: &Answer, truth: &Truth) -> Class {
    if truth.arguable.is_some() {
        return Class::Arguable;
    }
    match (answer.liveness.as_str(), &truth.life) {
        ("live", Life::Live(pids)) => {
            let is_owner = |pid: i64| pids.iter().any(|one| i64::from(*one) == pid);
            if answer.owner.is_none_or(is_owner) {
                Class::Right
            } else {
                Class::WrongOwner
            }
        }
        ("live", Life::Dead | Life::Elsewhere) => Class::FalseLive,
        ("exited", Life::Dead) => Class::Right,
        ("exited", Life::Live(_) | Life::Elsewhere) => Class::FalseDead,
        ("unknown", _) if truth.is_knowable => Class::UnknownKnowable,
        ("unknown", _) => Class::UnknownRightly,
        _ => Class::Crash,
    }
}

fn rows<'a>(list: &'a Value, agent: &str, id: &str) -> Vec<&'a Value> {
    let sessions = list["sessions"].as_array();
    let is_it = |row: &&Value| row["agent"] == agent && row["session_id"] == id;
    sessions.into_iter().flatten().filter(is_it).collect()
}

/// The world, for a reader.
fn printout(world: &World) -> String {
    let mut text = String::new();
    for (at, process) in world.processes.iter().enumerate() {
        text += &format!(
            "process {at}: {} {} {:?} in {}; current {:?}, left {:?}, heard {:?}, named {:?}, headless {}, \
             nested {}, silent {}, settling {}, damaged {}\n",
            process.agent.id(),
            process.pid(),
            process.state,
            process.work_dir.display(),
            process.current,
            process.left,
            process.heard,
            process.named,
            process.is_headless,
            process.is_nested,
            process.is_silent,
            process.is_settling,
            process.is_damaged
        );
    }
    for (at, session) in world.sessions.iter().enumerate() {
        text += &format!(
            "session {at}: {} {} of {}, {} prompts, on disk {}\n",
            session.agent.id(),
            session.id,
            session.work_dir.display(),
            session.prompts,
            session.is_on_disk
        );
    }
    for directory in &world.directories {
        text += &format!("{directory:?}\n");
    }
    text + &format!(
        "hooks: {:?}, homes: {:?} {:?}\n",
        world.hooked, world.home, world.other_homes
    )
}

/// What lies below a directory: nothing of it may change by looking.
type Tree = BTreeMap<PathBuf, (u64, u64, i64, i64, i64, i64, u32)>;

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(facts) = fs::symlink_metadata(&path) else {
                continue;
            };
            if found.len() >= FILES_MAX {
                return found;
            }
            if facts.is_dir() {
                folders.push(path.clone());
            }
            let facts = (
                facts.ino(),
                facts.size(),
                facts.mtime(),
                facts.mtime_nsec(),
                facts.ctime(),
                facts.ctime_nsec(),
                facts.mode(),
            );
            found.insert(path, facts);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Answer, judge};
    use crate::report::Class;
    use crate::truth::{Life, Truth};

    fn class(liveness: &str, owner: Option<i64>, life: Life, is_knowable: bool) -> Class {
        let answer = Answer {
            liveness: liveness.to_owned(),
            owner,
            reason: String::new(),
        };
        judge(
            &answer,
            &Truth {
                life,
                is_knowable,
                arguable: None,
            },
        )
    }

    #[test]
    fn each_answer_is_held_against_the_truth() {
        let live = || Life::Live(vec![7, 8]);
        assert_eq!(class("live", Some(8), live(), true), Class::Right);
        assert_eq!(class("live", Some(9), live(), true), Class::WrongOwner);
        assert_eq!(class("live", Some(9), Life::Dead, true), Class::FalseLive);
        assert_eq!(
            class("live", Some(9), Life::Elsewhere, false),
            Class::FalseLive
        );
        assert_eq!(class("exited", None, live(), false), Class::FalseDead);
        assert_eq!(
            class("exited", None, Life::Elsewhere, false),
            Class::FalseDead
        );
        assert_eq!(class("exited", None, Life::Dead, false), Class::Right);
        assert_eq!(
            class("unknown", None, Life::Dead, true),
            Class::UnknownKnowable
        );
        assert_eq!(class("unknown", None, live(), false), Class::UnknownRightly);
    }

    #[test]
    fn an_arguable_world_is_not_counted() {
        let answer = Answer {
            liveness: "exited".to_owned(),
            owner: None,
            reason: String::new(),
        };
        let truth = Truth {
            life: Life::Live(vec![7]),
            is_knowable: true,
            arguable: Some("so"),
        };
        assert_eq!(judge(&answer, &truth), Class::Arguable);
    }
}
