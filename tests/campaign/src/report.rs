//! What the looks came to: counts, and each wrong answer with its seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One answer in so many may be *unknown* though it could be known.
const UNKNOWN_ONE_IN: u64 = 100;
/// A share of fewer answers than these says nothing.
const COUNTED_MIN: u64 = 2_000;

/// What an answer is, beside the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    Right,
    /// Unknown, and nobody could know it from outside.
    UnknownRightly,
    /// Nobody can say what is right: not counted.
    Arguable,
    /// Unknown, though what decides can be seen.
    UnknownKnowable,
    FalseLive,
    FalseDead,
    WrongOwner,
    /// It is on disk, and no row has it.
    Missing,
    /// Two rows have it.
    Twice,
    /// Two commands say different things about one moment.
    Disagreement,
    /// A command failed, or printed no JSON.
    Crash,
    /// A problem was named where nothing was damaged.
    Problem,
    /// A look changed something on disk.
    Changed,
}

impl Class {
    pub(crate) const ALL: [Self; 13] = [
        Self::Right,
        Self::UnknownRightly,
        Self::Arguable,
        Self::UnknownKnowable,
        Self::FalseLive,
        Self::FalseDead,
        Self::WrongOwner,
        Self::Missing,
        Self::Twice,
        Self::Disagreement,
        Self::Crash,
        Self::Problem,
        Self::Changed,
    ];

    /// Whether the campaign fails by it.
    pub(crate) const fn is_wrong(self) -> bool {
        !matches!(
            self,
            Self::Right | Self::UnknownRightly | Self::Arguable | Self::UnknownKnowable
        )
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::UnknownRightly => "unknown, rightly",
            Self::Arguable => "arguable, not counted",
            Self::UnknownKnowable => "unknown, though it could be known",
            Self::FalseLive => "false live",
            Self::FalseDead => "false dead",
            Self::WrongOwner => "wrong owner",
            Self::Missing => "missing",
            Self::Twice => "listed twice",
            Self::Disagreement => "disagreement",
            Self::Crash => "crash",
            Self::Problem => "problem on healthy files",
            Self::Changed => "changed by looking",
        }
    }
}

/// One kind of answer that is not right, in one world.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Wrong {
    pub(crate) class: Class,
    pub(crate) agent: String,
    /// How often it was given; the rest is of the first time.
    pub(crate) count: u64,
    pub(crate) session: String,
    /// The kind of the step before the look.
    pub(crate) step_kind: String,
    pub(crate) step: usize,
    pub(crate) seed: u64,
    pub(crate) world: u64,
    pub(crate) command: String,
    pub(crate) truth: String,
    pub(crate) answer: String,
    /// The world, the answer and `why`.
    pub(crate) printout: String,
}

/// Counts of one world, or of all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) seed: u64,
    /// The agents that were asked for; all of them if there are none.
    pub(crate) agents: Vec<String>,
    pub(crate) worlds: u64,
    /// How often one session was looked at, at one moment.
    pub(crate) looks: u64,
    /// What was compared: each look is answered by several commands.
    pub(crate) answers: u64,
    pub(crate) steps: u64,
    pub(crate) commands: u64,
    pub(crate) command_ms: u64,
    pub(crate) wall_ms: u64,
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Why worlds could not be made.
    pub(crate) failed: Vec<String>,
    pub(crate) classes: BTreeMap<Class, u64>,
    pub(crate) by_agent: BTreeMap<String, BTreeMap<Class, u64>>,
    pub(crate) by_step: BTreeMap<String, BTreeMap<Class, u64>>,
    pub(crate) wrongs: Vec<Wrong>,
}

impl Tally {
    pub(crate) fn count(&mut self, class: Class, agent: &str, step: &str) {
        self.answers += 1;
        *self.classes.entry(class).or_default() += 1;
        let agent = self.by_agent.entry(agent.to_owned()).or_default();
        *agent.entry(class).or_default() += 1;
        let step = self.by_step.entry(step.to_owned()).or_default();
        *step.entry(class).or_default() += 1;
    }

    /// Counts a wrong answer once more, if the same was given before in this world.
    pub(crate) fn repeat(
        &mut self,
        class: Class,
        agent: &str,
        command: &str,
        answer: &str,
    ) -> bool {
        let same = self.wrongs.iter_mut().find(|wrong| {
            wrong.class == class
                && wrong.agent == agent
                && wrong.command == command
                && wrong.answer == answer
        });
        let is_same = same.is_some();
        if let Some(same) = same {
            same.count += 1;
        }
        is_same
    }

    /// Adds what another world came to.
    pub(crate) fn add(&mut self, other: Self) {
        self.worlds += other.worlds;
        self.looks += other.looks;
        self.answers += other.answers;
        self.steps += other.steps;
        self.commands += other.commands;
        self.command_ms += other.command_ms;
        for (why, count) in other.skipped {
            *self.skipped.entry(why).or_default() += count;
        }
        add(&mut self.classes, &other.classes);
        for (agent, classes) in &other.by_agent {
            add(self.by_agent.entry(agent.clone()).or_default(), classes);
        }
        for (step, classes) in &other.by_step {
            add(self.by_step.entry(step.clone()).or_default(), classes);
        }
        self.wrongs.extend(other.wrongs);
    }

    pub(crate) fn of(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    pub(crate) fn wrong(&self) -> u64 {
        let wrong = self.classes.iter().filter(|(class, _)| class.is_wrong());
        wrong.map(|(_, count)| count).sum()
    }

    /// The agents of which too much is unknown though it could be known.
    pub(crate) fn too_unknown(&self) -> Vec<&str> {
        let is_too_unknown = |classes: &BTreeMap<Class, u64>| {
            let of = |class| classes.get(&class).copied().unwrap_or_default();
            let counted: u64 = classes.values().sum::<u64>() - of(Class::Arguable);
            counted >= COUNTED_MIN && of(Class::UnknownKnowable) * UNKNOWN_ONE_IN > counted
        };
        let agents = self.by_agent.iter();
        let agents = agents.filter(|(_, classes)| is_too_unknown(classes));
        agents.map(|(agent, _)| agent.as_str()).collect()
    }

    /// No answer is wrong, and of no agent is too much unknown.
    pub(crate) fn is_right(&self) -> bool {
        self.wrong() == 0 && self.too_unknown().is_empty()
    }

    /// The kinds of wrong answers, the most frequent first, each with its count
    /// and one that stands for it.
    pub(crate) fn kinds(&self) -> Vec<(u64, &Wrong)> {
        let mut kinds: BTreeMap<(Class, &str, &str, &str), (u64, &Wrong)> = BTreeMap::new();
        for wrong in &self.wrongs {
            let key = (
                wrong.class,
                wrong.agent.as_str(),
                wrong.answer.as_str(),
                wrong.command.as_str(),
            );
            let kind = kinds.entry(key).or_insert((0, wrong));
            kind.0 += wrong.count;
            if wrong.step < kind.1.step {
                kind.1 = wrong;
            }
        }
        let mut kinds: Vec<_> = kinds.into_values().collect();
        kinds.sort_by_key(|(count, wrong)| (std::cmp::Reverse(*count), wrong.world));
        kinds
    }

    /// The whole report, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        self.write_markdown(&mut text).ok();
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "Seed {}: {} looks at sessions of {} worlds, after {} steps; {} answers compared.",
            self.seed, self.looks, self.worlds, self.steps, self.answers
        )?;
        let per_look = self.wall_ms.checked_div(self.looks.max(1)).unwrap_or(0);
        let per_command = self
            .command_ms
            .checked_div(self.commands.max(1))
            .unwrap_or(0);
        writeln!(
            text,
            "{} commands of {per_command} ms each; {per_look} ms for each look, steps included.\n",
            self.commands
        )?;
        let counted = self.answers - self.of(Class::Arguable);
        let percent = |count: u64| {
            let thousandths = count
                .saturating_mul(100_000)
                .checked_div(counted.max(1))
                .unwrap_or(0);
            format!("{}.{:03} %", thousandths / 1000, thousandths % 1000)
        };
        writeln!(text, "| Answer | Count | Share |\n|---|---:|---:|")?;
        for class in Class::ALL {
            let share = if class == Class::Arguable {
                String::new()
            } else {
                percent(self.of(class))
            };
            writeln!(text, "| {} | {} | {share} |", class.title(), self.of(class))?;
        }
        table(text, "Agent", &self.by_agent)?;
        for agent in self.too_unknown() {
            writeln!(
                text,
                "\nMore than 1 % of {agent} is unknown though it could be known."
            )?;
        }
        table(text, "Last step", &self.by_step)?;
        for (why, count) in &self.skipped {
            writeln!(text, "\nSkipped {count} times: {why}.")?;
        }
        if !self.wrongs.is_empty() {
            writeln!(
                text,
                "\n| Count | Kind | Truth | Replay |\n|---:|---|---|---|"
            )?;
        }
        let agents = if self.agents.is_empty() {
            String::new()
        } else {
            format!(" --agents {}", self.agents.join(","))
        };
        for (count, wrong) in self.kinds() {
            writeln!(
                text,
                "| {count} | {}: {}, `{}` says {} | {} | `--seed {}{agents} --world {} --steps {} --keep` ({}) |",
                wrong.agent,
                wrong.class.title(),
                wrong.command,
                wrong.answer,
                wrong.truth,
                wrong.seed,
                wrong.world,
                wrong.step + 1,
                wrong.step_kind
            )?;
        }
        Ok(())
    }
}

fn add(to: &mut BTreeMap<Class, u64>, from: &BTreeMap<Class, u64>) {
    for (class, count) in from {
        *to.entry(*class).or_default() += count;
    }
}

fn table(
    text: &mut String,
    title: &str,
    rows: &BTreeMap<String, BTreeMap<Class, u64>>,
) -> std::fmt::Result {
    writeln!(
        text,
        "\n| {title} | Right | Unknown, rightly | Unknown, knowable | False live | False dead | Wrong owner | Other |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    for (name, classes) in rows {
        let of = |class| classes.get(&class).copied().unwrap_or_default();
        let named = [Class::FalseLive, Class::FalseDead, Class::WrongOwner];
        let other: u64 = classes
            .iter()
            .filter(|(class, _)| class.is_wrong() && !named.contains(class))
            .map(|(_, count)| count)
            .sum();
        writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {other} |",
            of(Class::Right),
            of(Class::UnknownRightly),
            of(Class::UnknownKnowable),
            of(Class::FalseLive),
            of(Class::FalseDead),
            of(Class::WrongOwner)
        )?;
    }
    Ok(())
}
