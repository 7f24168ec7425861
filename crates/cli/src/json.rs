//! The JSON of single commands. Sessions in it have the form of the wire format.

pub(crate) mod escaped;
pub(crate) mod reports;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use whosup_core::adapter::Message;
use whosup_core::views::wire::{
    WireHost, WireLimit, WireProblem, WireSession, WireSnapshot, WireUnattributed, WireUsage,
    timestamp,
};

/// One line of `list --ndjson`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Line<'a> {
    /// The first line: it identifies the scan.
    Snapshot {
        /// As in the wire format.
        schema_version: u32,
        /// As in the wire format.
        taken_at: &'a Option<String>,
        /// As in the wire format.
        host: &'a WireHost,
    },
    /// One session.
    Session(&'a WireSession<Cow<'a, str>>),
    /// An agent process without a known session.
    Unattributed(&'a WireUnattributed),
    /// A file or directory that could not be read.
    Problem(&'a WireProblem),
}

/// A snapshot of the sessions that a command is about, with fields of the command.
#[derive(Debug, Serialize)]
pub(crate) struct Answer<'a, T> {
    /// The sessions.
    #[serde(flatten)]
    pub(crate) snapshot: &'a WireSnapshot,
    /// The rest.
    #[serde(flatten)]
    pub(crate) more: T,
}

/// What `usage` answers.
#[derive(Debug, Serialize)]
pub(crate) struct UsageDocument {
    /// As in the wire format.
    pub(crate) schema_version: u32,
    /// When it was counted.
    pub(crate) taken_at: Option<String>,
    /// The keys that rows are grouped by, separated by commas.
    pub(crate) by: String,
    /// Since when it is counted.
    pub(crate) since: Option<String>,
    /// The time zone of days.
    pub(crate) time_zone: String,
    /// The rows.
    pub(crate) rows: Vec<UsageRowDocument>,
    /// The sum of all rows.
    pub(crate) total: UsageRowDocument,
    /// What was used in the last hour.
    pub(crate) last_hour: WireUsage,
    /// The models that have no price.
    pub(crate) without_price: Vec<String>,
    /// The limits of accounts that hold now, as agents recorded them.
    pub(crate) limits: Vec<WireLimit>,
    /// The table of prices that is shipped.
    pub(crate) prices: PricesDocument,
    /// What could not be counted.
    pub(crate) problems: Vec<WireProblem>,
}

/// One row of `usage`.
#[derive(Debug, Serialize)]
pub(crate) struct UsageRowDocument {
    /// The values of the keys in `by`.
    #[serde(flatten)]
    pub(crate) by: BTreeMap<&'static str, Option<String>>,
    /// Tokens and cost.
    #[serde(flatten)]
    pub(crate) usage: WireUsage,
    /// How many sessions used them.
    pub(crate) sessions: usize,
    /// The least processor time that was used for it.
    pub(crate) cpu_seconds: Option<f64>,
    /// How long they were live.
    pub(crate) hours_live: Option<f64>,
    /// Some of it has no date, and is counted on the last day of its session.
    pub(crate) day_assumed: bool,
}

/// Where prices come from.
#[derive(Debug, Serialize)]
pub(crate) struct PricesDocument {
    /// The source.
    pub(crate) source: String,
    /// When they were taken from it.
    pub(crate) date: String,
}

/// What `status` adds.
#[derive(Debug, Serialize)]
pub(crate) struct StatusMore {
    /// The limits of accounts that hold now, as agents recorded them.
    pub(crate) limits: Vec<WireLimit>,
}

/// What `show` adds.
#[derive(Debug, Serialize)]
pub(crate) struct ShowMore {
    /// What it used with its sub-agents; absent if it has none, or nothing was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_with_sub_agents: Option<WireUsage>,
    /// The last messages, oldest first; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<MessageDocument>>,
}

/// What `why` adds.
#[derive(Debug, Serialize)]
pub(crate) struct WhyMore {
    /// The PID that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<i32>,
    /// The sentences.
    pub(crate) explanation: Vec<String>,
}

/// One message of a transcript.
#[derive(Debug, Serialize)]
pub(crate) struct MessageDocument {
    /// `user`, `assistant` or `tool`.
    pub(crate) role: &'static str,
    /// When.
    pub(crate) at: Option<String>,
    /// What was said.
    pub(crate) text: String,
}

impl MessageDocument {
    /// The document of a message.
    pub(crate) fn of(message: Message) -> Self {
        Self {
            role: message.role.name(),
            at: message.at_ms.and_then(timestamp),
            text: message.text,
        }
    }
}

/// The answer of `agents --json`.
#[derive(Debug, Serialize)]
pub(crate) struct AgentsDocument {
    /// The version of this document.
    pub(crate) schema_version: u32,
    /// Every agent that is supported.
    pub(crate) agents: Vec<AgentDocument>,
    /// What could not be read.
    pub(crate) problems: Vec<WireProblem>,
}

/// One agent.
#[derive(Debug, Serialize)]
pub(crate) struct AgentDocument {
    /// Its id, as in `--agent`.
    pub(crate) id: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// How a live session is found.
    pub(crate) detection: &'static str,
    /// The version that this was checked against.
    pub(crate) checked_against: &'static str,
    /// The variables that move its home.
    pub(crate) home_variables: &'static [&'static str],
    /// Where it is looked for here.
    pub(crate) homes: Vec<HomeDocument>,
    /// Its processes.
    pub(crate) processes: Vec<ProcessDocument>,
    /// How many of its sessions are live.
    pub(crate) live_sessions: usize,
    /// How many of its processes have no known session.
    pub(crate) unattributed: usize,
}

/// One home of an agent.
#[derive(Debug, Serialize)]
pub(crate) struct HomeDocument {
    /// Its root.
    pub(crate) path: String,
    /// Whether it exists; null if that is unknown.
    pub(crate) exists: Option<bool>,
    /// It is the default one.
    pub(crate) is_default: bool,
}

/// One process of an agent.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessDocument {
    /// Its PID.
    pub(crate) pid: i32,
    /// Its role for the agent.
    pub(crate) role: &'static str,
}

/// Writes a document, indented by two spaces.
///
/// # Errors
///
/// The [`io::Error`] of the writer.
pub(crate) fn write_document(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    escaped::write_pretty(&mut *out, document)?;
    writeln!(out)
}
