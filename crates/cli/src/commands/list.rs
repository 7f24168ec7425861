//! `whosup list`

mod json;
mod view;

use std::path::PathBuf;

use clap::Args;
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::reader::{ListQuery, Order, SubAgents, Wish};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::recognize::Users;

use crate::app::App;
use crate::cli::{agent_parser, name_parser};
use crate::column::Column;
use crate::exit::ExitStatus;
use crate::since::Since;
use crate::watched::WatchedArgs;

use self::json::{Lines, Rows};
use self::view::Row;

const EXAMPLES: &str = "\
Examples:
  whosup list --phase waiting            Sessions that wait for you
  whosup list --cwd . --json             Sessions in this directory, as JSON
  whosup list --all --since 2d           Every session of the last two days
  whosup list --columns id,state,model   Other columns

The default view has live and unknown sessions, and those that died without ending in the last
24 hours, with what they were doing then. The table shows sub-agents only with --all or
--sub-agents; the JSON always includes those of the listed sessions. A state marked `?` is
inferred, not proven. Agent processes without a known session get their own rows, unless
--liveness, --phase or --since filters sessions; the JSON always includes them.

--ndjson prints one object per line. The field `kind` names it: first `snapshot`, then each
`session`, `unattributed` process and `problem`. Use it for very large homes: sessions are printed
as they are found, and not kept in memory, unless --sort is given.";

// What `list` is asked for.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// List every session on disk
    #[arg(long, short)]
    all: bool,
    /// Only sessions of these agents
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    agent: Vec<AgentId>,
    /// Only sessions in this directory or below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Only sessions with this answer; `exited` reads every session on disk
    #[arg(
        long,
        value_name = "LIVENESS",
        value_delimiter = ',',
        value_parser = name_parser(Liveness::ALL.map(Liveness::name), Liveness::from_name)
    )]
    liveness: Vec<Liveness>,
    /// Only sessions in this phase
    #[arg(
        long,
        value_name = "PHASE",
        value_delimiter = ',',
        value_parser = name_parser(Phase::ALL.map(Phase::name), Phase::from_name)
    )]
    phase: Vec<Phase>,
    /// Only sessions active since: `90m`, `2d`, `2026-11-27T09:00:00Z`
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// Sort by this key [default: state; for --ndjson: as found]
    #[arg(
        long,
        value_name = "KEY",
        value_parser = name_parser(Order::ALL.map(Order::name), Order::from_name)
    )]
    sort: Option<Order>,
    /// List at most this many sessions, sub-agents not counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Columns of the table
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        value_parser = name_parser(Column::ALL.map(Column::name), Column::from_name),
        conflicts_with_all = ["json", "ndjson"]
    )]
    columns: Vec<Column>,
    /// Include sub-agents in the table
    #[arg(long)]
    sub_agents: bool,
    /// Include processes of all users (useful for root)
    #[arg(long)]
    all_users: bool,
    /// Show what could not be read, instead of sessions
    #[arg(long, conflicts_with_all = ["json", "ndjson"])]
    problems: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "ndjson")]
    json: bool,
    /// Print one JSON object per line, each session as soon as it is found
    #[arg(long)]
    ndjson: bool,
}

/// Lists.
///
/// # Errors
///
/// Whatever kept it from answering.
pub(crate) fn run(app: &mut App<'_>, arguments: &ListArgs) -> anyhow::Result<ExitStatus> {
    let query = arguments.query(app.world.machine().now_ms());
    let machine = app.world.machine();
    if arguments.json {
        let chosen = app.world.reader()?.choose(&query, &mut Rows { machine })?;
        json::write(app.out, machine, chosen)?;
        return Ok(ExitStatus::Done);
    }
    if arguments.ndjson {
        let mut lines = Lines::new(machine, app.out, arguments.sort.is_some());
        let chosen = app.world.reader()?.choose(&query, &mut lines)?;
        lines.finish(&chosen)?;
        return Ok(ExitStatus::Done);
    }
    let columns = arguments.columns();
    let mut form = Row {
        cells: view::cells(&app.world, &columns)?,
        columns,
    };
    let chosen = app.world.reader()?.choose(&query, &mut form)?;
    if arguments.problems {
        view::write_problems(app.out, &chosen.rest.problems)?;
    } else {
        view::write_list(app, arguments, &query.reach(), chosen)?;
    }
    Ok(ExitStatus::Done)
}

impl ListArgs {
    /// The list that `watch` shows.
    pub(super) fn watched(watched: &WatchedArgs) -> Self {
        Self {
            agent: watched.agent.clone(),
            cwd: watched.cwd.clone(),
            liveness: watched.liveness.clone(),
            phase: watched.phase.clone(),
            ..Self::default()
        }
    }

    fn query(&self, now_ms: i64) -> ListQuery {
        ListQuery {
            wish: Wish {
                is_all: self.all,
                work_dir: self.cwd.clone(),
                liveness: self.liveness.iter().copied().collect(),
                phases: self.phase.iter().copied().collect(),
                since_ms: self.since.map(|since| since.at_ms(now_ms)),
            },
            agents: self.agent.iter().cloned().collect(),
            users: if self.all_users {
                Users::All
            } else {
                Users::Own
            },
            order: self.order(),
            limit: self.limit.and_then(|limit| usize::try_from(limit).ok()),
            sub_agents: if self.has_sub_agents() || self.is_json() {
                SubAgents::Shown
            } else {
                SubAgents::Hidden
            },
        }
    }

    fn order(&self) -> Order {
        self.sort.unwrap_or_default()
    }

    fn has_sub_agents(&self) -> bool {
        self.all || self.sub_agents
    }

    fn is_json(&self) -> bool {
        self.json || self.ndjson
    }

    fn is_narrowed(&self) -> bool {
        self.cwd.is_some() || !self.agent.is_empty() || self.is_about_conversations()
    }

    /// A list of sessions of some kind only: processes without a session have
    /// no place in a table of them.
    fn is_about_conversations(&self) -> bool {
        !self.liveness.is_empty() || !self.phase.is_empty() || self.since.is_some()
    }

    fn columns(&self) -> Vec<Column> {
        if self.columns.is_empty() {
            Column::DEFAULT.to_vec()
        } else {
            self.columns.clone()
        }
    }
}
