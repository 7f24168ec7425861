//! What a generated world has, in numbers that can be made smaller.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// How many directories there are.
pub const DIRECTORIES: usize = 3;
/// How many homes each agent has.
pub const HOMES: usize = 2;
/// When things happened, in minutes before the look.
const MINUTES_AGO: Range<i64> = 0..3000;

/// The agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    ClaudeCode,
    Codex,
    QwenCode,
    KimiCli,
}

/// A world.
#[derive(Debug, Clone)]
pub struct Spec {
    pub processes: Vec<ProcessSpec>,
    pub sessions: Vec<SessionSpec>,
    /// Since when each home has a log, if its agent writes one for all sessions.
    pub logs_since_minutes_ago: [Option<i64>; HOMES],
}

/// A process.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    pub agent: Agent,
    pub kind: Kind,
    pub home: usize,
    /// The directory that it is in.
    pub directory: usize,
    /// The directory that its sessions are for.
    pub works_in: usize,
    pub began_minutes_ago: i64,
    pub has_terminal: bool,
    /// Its environment can be read.
    pub has_environment: bool,
    /// The session that its arguments name.
    pub names: Option<Index>,
}

/// What a process was started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A person at a terminal.
    Interactive,
    /// One answer.
    OneShot,
    /// The sessions of others, where the agent has that.
    Host,
}

/// A session.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    pub agent: Agent,
    pub home: usize,
    pub directory: usize,
    pub born_minutes_ago: i64,
    /// When something was last said, as a part of the time since its birth in
    /// percent; nothing ever was if `None`.
    pub spoken: Option<i64>,
    pub claims: Vec<ClaimSpec>,
}

/// What some file says about who serves a session.
#[derive(Debug, Clone)]
pub struct ClaimSpec {
    pub form: Form,
    pub who: Who,
    pub at_minutes_ago: i64,
    pub is_other_host: bool,
}

/// The form of a claim, as far as the agent has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Registry,
    Sidecar,
    Lock,
}

/// Who is claimed to serve a session.
#[derive(Debug, Clone)]
pub enum Who {
    /// A process of that agent.
    Process(Index),
    /// One that had the PID before this process.
    Predecessor(Index),
    /// A process that is gone.
    Gone(i32),
}

/// Worlds of one agent, or of all.
pub fn worlds(agents: &'static [Agent]) -> impl Strategy<Value = Spec> {
    let log = || prop::option::of(MINUTES_AGO);
    let parts = (
        vec(process(agents), 0..6),
        vec(session(agents), 0..10),
        [log(), log()],
    );
    parts.prop_map(|(processes, sessions, logs_since_minutes_ago)| Spec {
        processes,
        sessions,
        logs_since_minutes_ago,
    })
}

fn process(agents: &'static [Agent]) -> impl Strategy<Value = ProcessSpec> {
    let kind = prop_oneof![
        4 => Just(Kind::Interactive),
        1 => Just(Kind::OneShot),
        1 => Just(Kind::Host),
    ];
    (
        proptest::sample::select(agents),
        kind,
        0..HOMES,
        0..DIRECTORIES,
        prop::option::weighted(0.3, 0..DIRECTORIES),
        MINUTES_AGO,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.9),
        prop::option::weighted(0.3, any::<Index>()),
    )
        .prop_map(
            |(
                agent,
                kind,
                home,
                directory,
                elsewhere,
                began,
                has_terminal,
                has_environment,
                names,
            )| {
                ProcessSpec {
                    agent,
                    kind,
                    home,
                    directory,
                    works_in: elsewhere.unwrap_or(directory),
                    began_minutes_ago: began,
                    has_terminal,
                    has_environment,
                    names,
                }
            },
        )
}

fn session(agents: &'static [Agent]) -> impl Strategy<Value = SessionSpec> {
    (
        proptest::sample::select(agents),
        0..HOMES,
        0..DIRECTORIES,
        MINUTES_AGO,
        prop::option::weighted(0.85, 0..=100_i64),
        vec(claim(), 0..3),
    )
        .prop_map(
            |(agent, home, directory, born_minutes_ago, spoken, claims)| SessionSpec {
                agent,
                home,
                directory,
                born_minutes_ago,
                spoken,
                claims,
            },
        )
}

fn claim() -> impl Strategy<Value = ClaimSpec> {
    let form = prop_oneof![Just(Form::Registry), Just(Form::Sidecar), Just(Form::Lock)];
    let who = prop_oneof![
        4 => any::<Index>().prop_map(Who::Process),
        1 => any::<Index>().prop_map(Who::Predecessor),
        2 => (40_000..50_000).prop_map(Who::Gone),
    ];
    let is_other_host = prop::bool::weighted(0.1);
    (form, who, MINUTES_AGO, is_other_host).prop_map(
        |(form, who, at_minutes_ago, is_other_host)| ClaimSpec {
            form,
            who,
            at_minutes_ago,
            is_other_host,
        },
    )
}
