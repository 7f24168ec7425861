//! What a benchmark found, for people and for the report.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::measure::{Measure, Series};

/// What one benchmark found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// What was measured, in a sentence or two.
    pub(crate) about: String,
    pub(crate) series: Vec<Series>,
    pub(crate) goals: Vec<Goal>,
    /// What was left out, and other things worth saying.
    pub(crate) notes: Vec<String>,
    /// The load over the last minute, before and after.
    pub(crate) load: [f64; 2],
}

/// A goal, and what was measured.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) measured: f64,
    pub(crate) bound: Bound,
    pub(crate) unit: &'static str,
}

/// What a goal demands.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    /// So many times as much does a peer take.
    pub(crate) fn times_less(
        text: &str,
        (ours, peer): (&Series, &Series),
        measure: Measure,
        at_least: f64,
    ) -> Self {
        Self {
            text: format!("{text} ({} of {})", measure.name(), peer.name),
            measured: peer.median(measure) / ours.median(measure).max(f64::MIN_POSITIVE),
            bound: Bound::AtLeast(at_least),
            unit: "times",
        }
    }

    pub(crate) fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtLeast(bound) => self.measured >= bound,
            Bound::AtMost(bound) => self.measured <= bound,
        }
    }

    fn demand(&self) -> String {
        match self.bound {
            Bound::AtLeast(bound) => format!("at least {bound}"),
            Bound::AtMost(bound) => format!("at most {bound}"),
        }
    }
}

impl Outcome {
    pub(crate) fn to_json(&self) -> Value {
        let series: Vec<Value> = self.series.iter().map(Series::to_json).collect();
        let goals = self.goals.iter().map(|goal| {
            json!({
                "text": goal.text, "measured": (goal.measured * 100.0).round() / 100.0,
                "demand": goal.demand(), "unit": goal.unit, "met": goal.is_met(),
            })
        });
        json!({
            "name": self.name, "about": self.about, "load": self.load,
            "goals": goals.collect::<Vec<_>>(), "series": series, "notes": self.notes,
        })
    }

    /// As Markdown.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{}\n\n", self.about);
        let [before, after] = self.load;
        writeln!(text, "Load {before:.1} before, {after:.1} after.\n").ok();
        text.push_str("| Run | CPU, median | quarter to three quarters | wall, median | slowest tenth | peak memory | runs |\n");
        text.push_str("|---|---|---|---|---|---|---|\n");
        for series in &self.series {
            let at = |measure, part| series.percentile(measure, part);
            writeln!(
                text,
                "| {} | {:.2} ms | {:.2} – {:.2} ms | {:.2} ms | {:.2} ms | {:.1} MiB | {} |",
                series.name,
                at(Measure::Cpu, 50),
                at(Measure::Cpu, 25),
                at(Measure::Cpu, 75),
                at(Measure::Wall, 50),
                at(Measure::Wall, 90),
                series.peak_kib() as f64 / 1024.0,
                series.samples.len(),
            )
            .ok();
        }
        text.push_str("\n| Goal | Demanded | Measured | |\n|---|---|---|---|\n");
        for goal in &self.goals {
            writeln!(
                text,
                "| {} | {} {} | {:.2} | {} |",
                goal.text,
                goal.demand(),
                goal.unit,
                goal.measured,
                if goal.is_met() { "met" } else { "**missed**" }
            )
            .ok();
        }
        for note in &self.notes {
            write!(text, "\n- {note}").ok();
        }
        text.push('\n');
        text
    }
}
