//! `whosup list`

mod count;
mod field;
mod format;
mod json;
mod view;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use whosup_core::adapter::phase::Phase;
use whosup_core::judging::verdict::Liveness;
use whosup_core::reader::{Direction, ListQuery, Order, SubAgents, Wish};
use whosup_core::sidecar::AgentId;
use whosup_core::sources::recognize::Users;

use crate::app::{App, World};
use crate::cli::{agent_parser, name_parser};
use crate::column::Column;
use crate::commands::agents::say_unknown_agents;
use crate::config::ListDefaults;
use crate::exit::ExitStatus;
use crate::since::Since;
use crate::table::Header;
use crate::watched::WatchedArgs;

use self::count::Count;
use self::format::{Format, Template};
use self::json::{Lines, Rows};
use self::view::Row;

const EXAMPLES: &str = "\
Examples:
  whosup list --phase waiting            Sessions that wait for you
  whosup list --cwd . --json             Sessions in this directory, as JSON
  whosup list --all --since 2d           Every session of the last two days
  whosup list --columns id,state,model   Other columns
  whosup list --columns id,tokens,cost   What each session used
  whosup list --columns id,cpu,mem,io    What the processes of live sessions use
  whosup list --sort age --reverse       What has been silent for longest first
  whosup list -q --phase idle | while read -r id; do whosup stop \"$id\"; done
  whosup list --format '{id}\\t{state}\\t{owner.pid}'

The default view has live and unknown sessions, and those that died without ending in the last
24 hours, with what they were doing then. The table shows sub-agents only with --all or
--sub-agents; the JSON always includes those of the listed sessions. A state marked `?` is
inferred, not proven. Agent processes without a known session get their own rows, unless
--liveness, --phase or --since filters sessions; the JSON always includes them.

A column about processes shows `shared` where one process serves several sessions. `cpu` looks
twice, 200 ms apart; 100% is one processor. `mem` is resident memory, and both count the processes
that the agent has started. `io` is what the agent's process has read and written.

--ndjson prints one object per line. The field `kind` names it: first `snapshot`, then each
`session`, `unattributed` process and `problem`. Use it for very large homes: sessions are printed
as they are found, and not kept in memory, unless --sort is given.";

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
    /// Only sessions active since: `2h`, `3 days`, `yesterday`, `2026-11-28T10:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<Since>,
    /// Sort by this column [default: state; for --ndjson: as found]
    #[arg(
        long,
        value_name = "COLUMN",
        hide_possible_values = true,
        value_parser = sort_parser()
    )]
    sort: Option<Column>,
    /// Begin with the last of the order
    #[arg(long, short)]
    reverse: bool,
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
    /// Leave out the line of headings
    #[arg(long, conflicts_with_all = ["json", "ndjson"])]
    no_header: bool,
    /// Print IDs only, one per line, as other commands accept them
    #[arg(
        long,
        short,
        conflicts_with_all = ["json", "ndjson", "columns", "problems", "format"]
    )]
    quiet_ids: bool,
    /// Print a line per session: `{id} {state}`; `help` lists the fields
    #[arg(
        long,
        value_name = "TEMPLATE",
        conflicts_with_all = ["json", "ndjson", "columns", "problems"]
    )]
    format: Option<Format>,
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
    /// Count the tokens of each session for the JSON
    #[arg(long)]
    usage: bool,
    /// Measure processor time, memory and storage of live sessions for the JSON
    #[arg(long)]
    resources: bool,
    /// Some filters come from the configuration.
    #[arg(skip)]
    is_filtered_by_config: bool,
    /// Print one JSON object per line, each session as soon as it is found
    #[arg(long)]
    ndjson: bool,
}

/// Lists sessions.
///
/// # Errors
///
/// If the scan or the output failed.
pub(crate) fn run(app: &mut App<'_>, arguments: &ListArgs) -> anyhow::Result<ExitStatus> {
    if let Some(Format::Help) = arguments.format {
        format::write_help(app.out)?;
        return Ok(ExitStatus::Done);
    }
    say_unknown_agents(app, &arguments.agent);
    match arguments.template() {
        Some(template) => write_lines(app, arguments, &template)?,
        None if arguments.json => write_document(app, arguments)?,
        None if arguments.ndjson => write_ndjson(app, arguments)?,
        None => write_table(app, arguments)?,
    }
    Ok(ExitStatus::Done)
}

fn write_lines(app: &mut App<'_>, arguments: &ListArgs, template: &Template) -> anyhow::Result<()> {
    let mut lines = format::Lines {
        machine: app.world.machine(),
        cells: view::cells(&app.world)?,
        count: arguments.count(&app.world, template.columns())?,
        template,
    };
    let query = arguments.query(&app.world);
    let chosen = app.world.reader()?.choose(&query, &mut lines)?;
    let problems = chosen.rest.problems.len() + lines.count.finish(app.err).len();
    format::write(app.out, template, chosen)?;
    app.out.flush()?;
    view::say_problems(app.err, problems);
    Ok(())
}

fn write_document(app: &mut App<'_>, arguments: &ListArgs) -> anyhow::Result<()> {
    let machine = app.world.machine();
    let mut rows = Rows {
        machine,
        count: arguments.count(&app.world, Vec::new())?,
    };
    let query = arguments.query(&app.world);
    let mut chosen = app.world.reader()?.choose(&query, &mut rows)?;
    chosen.rest.problems.extend(rows.count.finish(app.err));
    json::write(app.out, machine, chosen)
}

fn write_ndjson(app: &mut App<'_>, arguments: &ListArgs) -> anyhow::Result<()> {
    let count = arguments.count(&app.world, Vec::new())?;
    let machine = app.world.machine();
    let mut lines = Lines::new(machine, count, app.out, arguments.is_sorted());
    let query = arguments.query(&app.world);
    let mut chosen = app.world.reader()?.choose(&query, &mut lines)?;
    chosen.rest.problems.extend(lines.count.finish(app.err));
    lines.finish(&chosen)
}

/// Writes the table for people, with the configured defaults.
fn write_table(app: &mut App<'_>, arguments: &ListArgs) -> anyhow::Result<()> {
    let given = arguments;
    let arguments = &given.with_defaults(&app.world.config()?.list);
    if given.agent.is_empty() {
        say_unknown_agents(app, &arguments.agent);
    }
    let columns = arguments.columns();
    let mut form = Row {
        cells: view::cells(&app.world)?,
        count: arguments.count(&app.world, columns.clone())?,
        columns,
    };
    let query = arguments.query(&app.world);
    let mut chosen = app.world.reader()?.choose(&query, &mut form)?;
    chosen.rest.problems.extend(form.count.finish(app.err));
    if arguments.problems {
        view::write_problems(app.out, &chosen.rest.problems)?;
        return Ok(());
    }
    view::write_list(app, arguments, &query.reach(), chosen)
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

    /// The same, with configured defaults for what the command line leaves out. With `--all`
    /// no filter is configured.
    fn with_defaults(&self, defaults: &ListDefaults) -> Self {
        let mut filled = self.clone();
        if self.sort.is_none() {
            filled.sort = defaults.sort;
            filled.reverse |= defaults.reverse;
        }
        or_default(&mut filled.columns, &defaults.columns);
        filled.sub_agents |= defaults.sub_agents;
        if !self.all {
            filled.since = self.since.or(defaults.since);
            filled.is_filtered_by_config = [
                or_default(&mut filled.agent, &defaults.agent),
                or_default(&mut filled.liveness, &defaults.liveness),
                or_default(&mut filled.phase, &defaults.phase),
                self.since.is_none() && defaults.since.is_some(),
            ]
            .contains(&true);
        }
        filled
    }

    /// Counts and measures what these columns and the arguments need.
    fn count<'a>(&self, world: &'a World, mut columns: Vec<Column>) -> anyhow::Result<Count<'a>> {
        columns.extend(self.sort);
        if self.usage {
            columns.push(Column::Tokens);
        }
        if self.resources {
            columns.extend([Column::Cpu, Column::Io]);
        }
        Count::begin(world, &columns, self.users())
    }

    fn users(&self) -> Users {
        if self.all_users {
            Users::All
        } else {
            Users::Own
        }
    }

    fn template(&self) -> Option<Template> {
        match &self.format {
            Some(Format::Lines(template)) => Some(template.clone()),
            _ => self.quiet_ids.then(Template::ids),
        }
    }

    fn query(&self, world: &World) -> ListQuery {
        let now_ms = world.machine().now_ms();
        ListQuery {
            wish: Wish {
                is_all: self.all,
                work_dir: self.cwd.clone(),
                liveness: self.liveness.iter().copied().collect(),
                phases: self.phase.iter().copied().collect(),
                since_ms: self.since.map(|since| since.at_ms(now_ms, world.zone())),
            },
            agents: self.agent.iter().cloned().collect(),
            users: self.users(),
            order: self.order(),
            direction: self.direction(),
            limit: self.limit.and_then(|limit| usize::try_from(limit).ok()),
            sub_agents: if self.has_sub_agents() || self.is_json() {
                SubAgents::Shown
            } else {
                SubAgents::Hidden
            },
        }
    }

    fn order(&self) -> Order {
        self.sort.map(Column::order).unwrap_or_default()
    }

    fn direction(&self) -> Direction {
        if self.reverse {
            Direction::Reversed
        } else {
            Direction::Forward
        }
    }

    fn is_sorted(&self) -> bool {
        self.sort.is_some() || self.reverse
    }

    fn header(&self) -> Header {
        if self.no_header {
            Header::Hidden
        } else {
            Header::Shown
        }
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

    /// The list is filtered by a property of sessions, so that processes without a session
    /// have no place in it.
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

/// Takes the default if nothing is given; returns whether it was taken.
fn or_default<T: Clone>(given: &mut Vec<T>, default: &[T]) -> bool {
    let is_taken = given.is_empty() && !default.is_empty();
    if is_taken {
        given.extend_from_slice(default);
    }
    is_taken
}

/// Parses the name of a column to sort by.
fn sort_parser() -> impl TypedValueParser<Value = Column> {
    let names = Column::ALL.map(Column::name);
    // The former name of `age`.
    let hidden = PossibleValue::new("activity").hide(true);
    let names = names.into_iter().map(PossibleValue::new).chain([hidden]);
    PossibleValuesParser::new(names)
        .try_map(|name| Column::from_sort_name(&name).ok_or("no such column"))
}
