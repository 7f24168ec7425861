//! `whosup list`

mod json;
mod view;

use std::path::PathBuf;

use clap::Args;
use whosup_core::phase::Phase;
use whosup_core::reader::{ListQuery, Order, SubAgents, Wish};
use whosup_core::recognize::Users;
use whosup_core::sidecar::AgentId;
use whosup_core::verdict::Liveness;

use crate::app::App;
use crate::cli::{agent_parser, name_parser};
use crate::column::Column;
use crate::exit::ExitStatus;
use crate::since::Since;

use self::json::{Lines, Rows};
use self::view::Row;

const EXAMPLES: &str = "\
Examples:
  whosup list --phase waiting            Who waits for me
  whosup list --cwd . --json             What runs in this directory, for a program
  whosup list --all --since 2d           Every session of the last two days
  whosup list --columns id,state,model   Other columns

By default: sessions that are live or unknown, and those that died without an end in the last
day, with what they were doing then. Sub-agents are in the table only with --all or --sub-agents; the JSON always has those of
the sessions that are shown. A state that is marked `?` is inferred, not proven. Processes that no
session is known of are rows of their own, unless --liveness, --phase or --since asks for sessions
of some kind; in the JSON they stay.

--ndjson prints one object a line, told apart by its field `kind`: first `snapshot`, then each
`session`, `unattributed` process and `problem`. Use it for very large homes: it holds no session
in memory, unless --sort asks for an order.";

// What `list` is asked for.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Every session on disk
    #[arg(long, short)]
    all: bool,
    /// Sessions of these agents only
    #[arg(long, value_name = "AGENT", value_delimiter = ',', value_parser = agent_parser())]
    agent: Vec<AgentId>,
    /// Sessions in this directory or below it only
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Sessions with this answer only; `exited` looks at every session on disk
    #[arg(
        long,
        value_name = "LIVENESS",
        value_delimiter = ',',
        value_parser = name_parser(Liveness::ALL.map(Liveness::name), Liveness::from_name)
    )]
    liveness: Vec<Liveness>,
    /// Sessions in this phase only
    #[arg(
        long,
        value_name = "PHASE",
        value_delimiter = ',',
        value_parser = name_parser(Phase::ALL.map(Phase::name), Phase::from_name)
    )]
    phase: Vec<Phase>,
    /// Sessions in which something happened since: `90m`, `2d`, `2026-11-27T09:00:00Z`
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// The order [default: state; of --ndjson: as found]
    #[arg(
        long,
        value_name = "KEY",
        value_parser = name_parser(Order::ALL.map(Order::name), Order::from_name)
    )]
    sort: Option<Order>,
    /// No more than so many sessions, sub-agents not counted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// The columns of the table
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        value_parser = name_parser(Column::ALL.map(Column::name), Column::from_name),
        conflicts_with_all = ["json", "ndjson"]
    )]
    columns: Vec<Column>,
    /// Sub-agents too
    #[arg(long)]
    sub_agents: bool,
    /// Processes of every user, as far as they can be seen (of use to root)
    #[arg(long)]
    all_users: bool,
    /// Shows what could not be read instead of the sessions
    #[arg(long, conflicts_with_all = ["json", "ndjson"])]
    problems: bool,
    /// Prints one JSON document
    #[arg(long, conflicts_with = "ndjson")]
    json: bool,
    /// Prints one JSON object a line, each session as soon as it is found
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
