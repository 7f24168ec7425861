//! Writes usage as a table with bars, as JSON, or as comma-separated values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use jiff::tz::TimeZone;
use whosup_core::machine::problem::Problem;
use whosup_core::sources::usage::{Prices, Sums};
use whosup_core::views::limits::Limits;
use whosup_core::views::usage::{By, UsageRow, UsageTable};
use whosup_core::views::wire::{self, timestamp};
use whosup_track::TrackError;

use crate::app::{App, say};
use crate::commands::status::limit_lines;
use crate::json::{PricesDocument, UsageDocument, UsageRowDocument};
use crate::table::{Cell, Header, Shape, Side, write_table};
use crate::text;

/// The width of the longest bar.
const BAR_WIDTH: u64 = 20;
/// How many models without a price are named.
const MODELS_SHOWN_MAX: usize = 5;

/// The answer of `usage`.
pub(crate) struct Answer {
    pub(super) by: Vec<By>,
    pub(super) since_ms: i64,
    pub(super) now_ms: i64,
    pub(super) zone: TimeZone,
    pub(super) table: UsageTable,
    pub(super) prices: Prices,
    pub(super) problems: Vec<Problem>,
    pub(super) limits: Vec<Limits>,
    /// Why the counts could not be saved. They are right nevertheless.
    pub(super) unsaved: Option<TrackError>,
}

type Row<'a> = (&'a Vec<Option<String>>, &'a UsageRow);

impl Answer {
    /// What all of it cost, as far as that is known, in US dollars.
    pub(crate) fn total_dollars(&self) -> f64 {
        let cost = self.table.total.usage.cost.dollars();
        cost.unwrap_or_default()
    }

    /// Days in order; other rows by cost, highest first.
    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = self.table.rows.iter().collect();
        if self.by.first() != Some(&By::Day) {
            let weight = |row: &UsageRow| (row.usage.cost.nano, row.usage.sums.tokens());
            rows.sort_by_key(|(_, row)| Reverse(weight(row)));
        }
        rows
    }

    /// The answer as a JSON document.
    pub(crate) fn document(&self) -> UsageDocument {
        let rows = self.rows().into_iter();
        UsageDocument {
            schema_version: wire::SCHEMA_VERSION,
            taken_at: timestamp(self.now_ms),
            by: self.name(),
            since: timestamp(self.since_ms),
            time_zone: self.zone.iana_name().unwrap_or("local").to_owned(),
            rows: rows
                .map(|(names, row)| {
                    let by = self.by.iter().zip(names);
                    let by = by.map(|(by, name)| (by.name(), name.clone())).collect();
                    row_document(by, row)
                })
                .collect(),
            total: row_document(BTreeMap::new(), &self.table.total),
            last_hour: wire::usage(&self.table.last_hour),
            without_price: self.table.without_price.iter().cloned().collect(),
            limits: wire::limits(&self.limits, self.now_ms),
            prices: PricesDocument {
                source: self.prices.source.clone(),
                date: self.prices.date.clone(),
            },
            problems: self.problems.iter().map(wire::problem).collect(),
        }
    }

    fn name(&self) -> String {
        let names: Vec<&str> = self.by.iter().map(|by| by.name()).collect();
        names.join(",")
    }

    /// Writes a line of headings, and a line for each row.
    pub(super) fn write_csv(&self, app: &mut App<'_>) -> io::Result<()> {
        let by = self.name();
        writeln!(
            app.out,
            "{by},input_tokens,cached_input_tokens,cache_write_tokens,output_tokens,\
             reasoning_tokens,cost_usd,tokens_without_price"
        )?;
        for (names, row) in self.rows() {
            let names = names
                .iter()
                .map(|name| quoted(name.as_deref().unwrap_or_default()));
            let names: Vec<String> = names.collect();
            let (sums, cost) = (&row.usage.sums, &row.usage.cost);
            let reasoning = sums.reasoning.map(|tokens| tokens.to_string());
            let dollars = cost.dollars().map(|dollars| format!("{dollars:.6}"));
            let known = |tokens: u64| sums.are_tokens_known().then(|| tokens.to_string());
            let counts = [
                sums.input,
                sums.cached_input,
                sums.cache_writes,
                sums.output,
            ];
            let counts = counts.map(|tokens| known(tokens).unwrap_or_default());
            writeln!(
                app.out,
                "{},{},{},{},{}",
                names.join(","),
                counts.join(","),
                reasoning.unwrap_or_default(),
                dollars.unwrap_or_default(),
                cost.tokens_without_price,
            )?;
        }
        Ok(())
    }

    /// Writes a table with bars and a total, and remarks.
    pub(super) fn write_table(&self, app: &mut App<'_>) -> io::Result<()> {
        if self.table.rows.is_empty() {
            let since = text::local_time(self.since_ms, &self.zone).unwrap_or_default();
            writeln!(app.out, "no tokens were counted since {since}")?;
            app.out.flush()?;
            say(
                app.err,
                "hint: `--since 30d` counts a longer period; `whosup agents` lists where agents are searched",
            );
            return Ok(());
        }
        let shapes = self.shapes();
        let weight = |row: &UsageRow| match self.table.total.usage.cost.nano {
            0 => row.usage.sums.tokens(),
            _ => row.usage.cost.nano,
        };
        let rows = self.rows();
        let most = rows.iter().map(|(_, row)| weight(row)).max().unwrap_or(0);
        let mut cells: Vec<Vec<Cell>> = Vec::new();
        for (names, row) in rows {
            let names = names
                .iter()
                .map(|name| text::one_line(name.as_deref().unwrap_or("-")));
            cells.push(self.cells(names.collect(), row, &bar(weight(row), most)));
        }
        let mut total = vec![String::new(); self.by.len()];
        if let Some(first) = total.first_mut() {
            "total".clone_into(first);
        }
        cells.push(self.cells(total, &self.table.total, ""));
        write_table(
            app.out,
            &shapes,
            &cells,
            Header::Shown,
            app.face.width,
            app.face.is_coloured,
        )?;
        app.out.flush()?;
        self.say_more(app);
        Ok(())
    }

    fn shapes(&self) -> Vec<Shape> {
        let shape = |heading, side, left_out_at| Shape {
            heading,
            side,
            width_min: (side == Side::Left).then_some(10),
            left_out_at,
        };
        let heading = |by: &By| match by {
            By::Session => "SESSION",
            By::Project => "PROJECT",
            By::Agent => "AGENT",
            By::Model => "MODEL",
            By::Day => "DAY",
            By::Branch => "BRANCH",
        };
        let by = self
            .by
            .iter()
            .map(|by| shape(heading(by), Side::Left, None));
        let numbers = [
            shape("TOKENS", Side::Right, None),
            shape("INPUT", Side::Right, Some(4)),
            shape("CACHED", Side::Right, Some(4)),
            shape("WRITES", Side::Right, Some(4)),
            shape("OUTPUT", Side::Right, Some(3)),
            shape("COST", Side::Right, None),
            shape("", Side::Left, Some(5)),
        ];
        by.chain(numbers).collect()
    }

    fn cells(&self, names: Vec<String>, row: &UsageRow, bar: &str) -> Vec<Cell> {
        let sums = &row.usage.sums;
        let numbers: [fn(&Sums) -> u64; 5] = [
            Sums::tokens,
            |sums| sums.input,
            |sums| sums.cached_input,
            |sums| sums.cache_writes,
            |sums| sums.output,
        ];
        let names = names.into_iter().map(Cell::plain);
        let numbers = numbers.map(|number| {
            let known = text::known_tokens(sums, number);
            Cell::plain(known.unwrap_or_else(|| "-".to_owned()))
        });
        let cost = text::cost(&row.usage).unwrap_or_else(|| "-".to_owned());
        let bar = Cell::plain(bar);
        names
            .chain(numbers)
            .chain([Cell::plain(cost), bar])
            .collect()
    }

    fn say_more(&self, app: &mut App<'_>) {
        for line in limit_lines(&self.limits, self.now_ms) {
            say(app.err, &line);
        }
        let hour = &self.table.last_hour;
        if hour.sums.tokens() > 0 {
            let cost = text::cost(hour).map(|cost| format!(", {cost}"));
            let tokens = text::tokens(hour.sums.tokens());
            let rate = format!("last hour: {tokens} tokens{}", cost.unwrap_or_default());
            say(app.err, &rate);
        }
        let without_price: Vec<String> = {
            let models = self.table.without_price.iter().take(MODELS_SHOWN_MAX);
            models.map(|model| text::one_line(model)).collect()
        };
        if !without_price.is_empty() {
            let more = self.table.without_price.len() - without_price.len();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            say(
                app.err,
                &format!(
                    "no price is known for {}{more}; you can add prices to ~/.config/whosup/prices.toml",
                    without_price.join(", ")
                ),
            );
        }
        if self.table.total.is_day_assumed && self.by.contains(&By::Day) {
            say(
                app.err,
                "some tokens have no date: they count on the last day of their session",
            );
        }
    }
}

fn row_document(by: BTreeMap<&'static str, Option<String>>, row: &UsageRow) -> UsageRowDocument {
    let cpu_ms = row.cpu_ms.map(std::time::Duration::from_millis);
    UsageRowDocument {
        by,
        usage: wire::usage(&row.usage),
        sessions: row.sessions.len(),
        cpu_seconds: cpu_ms.map(|cpu| cpu.as_secs_f64()),
        hours_live: row
            .live_ms
            .map(|ms| std::time::Duration::from_millis(ms).as_secs_f64() / 3600.0),
        day_assumed: row.is_day_assumed,
    }
}

fn bar(weight: u64, most: u64) -> String {
    let width = u128::from(weight) * u128::from(BAR_WIDTH) / u128::from(most.max(1));
    "█".repeat(usize::try_from(width).unwrap_or(0))
}

/// A value quoted by RFC 4180. What could steer a terminal is written as escapes, new lines
/// too.
fn quoted(text: &str) -> String {
    let text = text::visible(text);
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{bar, quoted};

    #[test]
    fn bars_are_as_long_as_what_they_stand_for() {
        assert_eq!(bar(0, 0), "");
        assert_eq!(bar(5, 10).chars().count(), 10);
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), 20);
    }

    #[test]
    fn values_with_commas_are_quoted() {
        assert_eq!(quoted("a"), "a");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn values_steer_no_terminal() {
        let steering = "\x1b]0;a\x07\u{202e}\x7f\u{9b},\n";
        let expected = r#""\u{1b}]0;a\u{7}\u{202e}\u{7f}\u{9b},\u{a}""#;
        assert_eq!(quoted(steering), expected);
    }
}
