//! Converts the results of a scan to the wire form.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use jiff::fmt::temporal::DateTimePrinter;
use whosup_process::{Process, RunState, Tty};

use super::{
    SCHEMA_VERSION, WireCommand, WireContext, WireEvidence, WireFiles, WireHost, WireOtherLive,
    WirePane, WirePaneServer, WireProblem, WireProcess, WireProcessResources, WireResources,
    WireResume, WireSession, WireSnapshot, WireText, WireTreeResources, WireTurn, WireUnattributed,
    WireUsage,
};
use crate::adapter::AccountLimit;
use crate::adapter::claim::EvidenceKind;
use crate::adapter::phase::{Phase, WaitingFor};
use crate::adapter::{Context, Invocation, TurnTokens};
use crate::judging::verdict::Liveness;
use crate::machine::Machine;
use crate::machine::problem::Problem;
use crate::sessions::resources::Resources;
use crate::sessions::session::{JudgedEvidence, OtherLive, Session, Snapshot, Unattributed};
use crate::sources::panes::Pane;
use crate::sources::usage::Usage;
use crate::views::limits::Limits;

/// The wire form of a whole snapshot.
#[must_use]
pub fn snapshot(machine: &Machine, snapshot: &Snapshot) -> WireSnapshot {
    let scope = &snapshot.scope;
    WireSnapshot {
        schema_version: SCHEMA_VERSION,
        taken_at: timestamp(snapshot.taken_at_ms),
        host: WireHost {
            hostname: scope.host.as_ref().ok().map(ToString::to_string),
            boot_id: scope.boot.as_ref().ok().map(ToString::to_string),
            pid_namespace: scope.pid_namespace.as_ref().ok().map(|ns| ns.0),
        },
        sessions: snapshot
            .sessions
            .iter()
            .map(|one| session(machine, one))
            .collect(),
        unattributed: snapshot.unattributed.iter().map(unattributed).collect(),
        problems: snapshot.problems.iter().map(problem).collect(),
    }
}

/// A time in milliseconds since 1970 as RFC 3339 in UTC with milliseconds; `None` if the format
/// can't express it.
#[must_use]
pub fn timestamp(at_ms: i64) -> Option<String> {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
    let at = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    // The printer needs room for the longest date.
    let mut text = String::with_capacity(40);
    PRINTER.print_timestamp(&at, &mut text).ok()?;
    Some(text)
}

/// The wire form of one session.
#[must_use]
pub fn session<'a, T: WireText<'a>>(machine: &Machine, session: &'a Session) -> WireSession<T> {
    let described = &session.description;
    let sketch = &session.sketch;
    let work_dir = session.work_dir();
    let home = (!session.is_default_home).then_some(&*session.key.home);
    let is_live = session.liveness() == Liveness::Live;
    let doing = session.doing();
    WireSession {
        agent: session.key.agent.as_str().into(),
        session_id: session.key.session.as_str().into(),
        liveness: session.liveness().name(),
        reason: session.verdict.reason(),
        confidence: session.verdict.confidence().map(|known| known.name()),
        phase: doing.phase.map(Phase::name),
        phase_since: doing.since_ms.and_then(timestamp),
        phase_at_exit: session.phase_at_exit().map(Phase::name),
        waiting_for: doing.waiting_for.map(WaitingFor::name),
        waiting_on: None,
        phase_word: doing.word.filter(|_| is_live).map(T::from),
        orphan: session.is_orphan(),
        superseded_by: session.superseded_by.as_ref().map(|id| id.as_str().into()),
        parent_session_id: sketch.parent.as_ref().map(|id| id.as_str().into()),
        owner: session.owner.as_ref().map(|owner| process(machine, owner)),
        owner_shared: session.is_owner_shared,
        client: session
            .client
            .as_ref()
            .map(|client| process(machine, client)),
        client_ambiguous: session.is_client_ambiguous,
        other_live: session.other_live.iter().map(other_live).collect(),
        detached: session.is_detached(),
        headless: session.is_headless(),
        work_dir: work_dir.map(text),
        work_dir_bytes: work_dir.and_then(bytes_if_not_text),
        git_branch: described.git_branch.as_deref().map(T::from),
        title: session.title().map(T::from),
        model: described.model.as_deref().map(T::from),
        agent_version: session.agent_version().map(T::from),
        started_at: session.started_at_ms().and_then(timestamp),
        last_activity_at: session.last_activity_at_ms().and_then(timestamp),
        ended_at: sketch.ended_at_ms.filter(|_| !is_live).and_then(timestamp),
        end_cause: sketch
            .end_cause
            .as_deref()
            .filter(|_| !is_live)
            .map(T::from),
        cpu_seconds_at_least: sketch
            .cpu_at_least_ms
            .map(|ms| Duration::from_millis(ms).as_secs_f64()),
        context: described.context.map(context),
        turn: described.turn.map(turn),
        usage: usage_of(session),
        resources: session.resources.as_ref().map(resources),
        pane: session.pane.as_ref().map(pane),
        files: files(session),
        endpoint: sketch.endpoint.as_deref().filter(|_| is_live).map(T::from),
        home: home.map(text),
        home_bytes: home.and_then(bytes_if_not_text),
        dismissed: session.is_dismissed,
        attach: session
            .attach()
            .map(|command| self::command(command, work_dir)),
        resume: resume(session, work_dir),
        evidence: session.evidence.iter().map(evidence).collect(),
    }
}

/// The wire form of what processes use.
#[must_use]
pub fn resources(resources: &Resources) -> WireResources {
    let (owner, tree) = (&resources.owner, &resources.tree);
    let percent = |percent: Option<f64>| Some((percent? * 10.0).round() / 10.0);
    let seconds = |cpu: Option<Duration>| Some(cpu?.as_secs_f64());
    WireResources {
        shared: resources.is_shared,
        owner: Some(WireProcessResources {
            cpu_percent: percent(owner.cpu_percent),
            cpu_seconds: seconds(owner.cpu),
            rss_bytes: owner.rss_bytes,
            pss_bytes: owner.pss_bytes,
            read_bytes: owner.storage.map(|storage| storage.read),
            write_bytes: owner.storage.map(|storage| storage.written),
            threads: Some(owner.threads),
        }),
        tree: tree.map(|tree| WireTreeResources {
            processes: tree.processes,
            cpu_percent: percent(tree.cpu_percent),
            cpu_seconds: seconds(tree.cpu),
            rss_bytes: tree.rss_bytes,
        }),
    }
}

fn usage_of(session: &Session) -> Option<WireUsage> {
    session.usage.as_ref().map(usage)
}

/// The wire form of what was used.
#[must_use]
pub fn usage(usage: &Usage) -> WireUsage {
    let (sums, cost) = (&usage.sums, &usage.cost);
    let known = |tokens: u64| sums.are_tokens_known().then_some(tokens);
    WireUsage {
        input_tokens: known(sums.input),
        cached_input_tokens: known(sums.cached_input),
        cache_write_tokens: known(sums.cache_writes),
        output_tokens: known(sums.output),
        reasoning_tokens: sums.reasoning,
        cost: cost.dollars().map(|amount| super::WireCost {
            amount,
            currency: "USD",
            source: if cost.is_by_agent() {
                "agent"
            } else {
                "prices"
            },
        }),
        tokens_without_price: cost.tokens_without_price,
    }
}

/// The wire form of the limits that hold at an instant.
#[must_use]
pub fn limits(limits: &[Limits], now_ms: i64) -> Vec<super::WireLimit> {
    let one = |of: &Limits, limit: &AccountLimit| super::WireLimit {
        agent: of.agent.to_string(),
        home: of.home.to_string_lossy().into_owned(),
        name: of.record.name.clone(),
        window_minutes: limit.window_minutes,
        used_percent: limit.used_percent,
        resets_at: limit.resets_at_ms.and_then(timestamp),
        recorded_at: timestamp(of.record.recorded_at_ms),
    };
    let each = limits.iter();
    each.flat_map(|of| of.record.current(now_ms).map(move |limit| one(of, limit)))
        .collect()
}

fn context(context: Context) -> WireContext {
    WireContext {
        tokens: context.tokens,
        window: context.window,
        percent: context.percent(),
        window_assumed: context.window.is_some() && context.is_window_assumed,
    }
}

fn turn(turn: TurnTokens) -> WireTurn {
    WireTurn {
        started_at: turn.started_at_ms.and_then(timestamp),
        output_tokens: turn.output_tokens,
    }
}

fn files<'a, T: WireText<'a>>(session: &'a Session) -> WireFiles<T> {
    let described = session.description.transcript.as_deref();
    let transcript = described.or(session.sketch.transcript.as_deref());
    let evidence = session.evidence.iter().map(|judged| &judged.evidence);
    let record = evidence
        .clone()
        .find(|evidence| evidence.kind == EvidenceKind::Record)
        .and_then(|evidence| evidence.path.as_deref());
    WireFiles {
        transcript: transcript.map(text),
        transcript_bytes: transcript.and_then(bytes_if_not_text),
        record: record.map(text),
        record_bytes: record.and_then(bytes_if_not_text),
    }
}

/// A session has a command only if it is certainly not live: a second process on a live session
/// corrupts it. There is no command either if a process still holds the session, or if it has no
/// messages.
fn resume<'a, T: WireText<'a>>(
    session: &Session,
    work_dir: Option<&'a Path>,
) -> Option<WireResume<T>> {
    let invocation = session.invocation();
    let is_free = session.liveness() == Liveness::Exited && session.held_by().is_none();
    let invocation = invocation.filter(|_| is_free)?;
    Some(WireResume {
        command: command(invocation, work_dir),
        trusted: session.is_invocation_ours(),
    })
}

fn process(machine: &Machine, process: &Process) -> WireProcess {
    let details = machine.table().details(process);
    let executable = details.exe.as_deref().ok();
    WireProcess {
        pid: process.pid.get(),
        start_stamp: process.stamp.to_string(),
        start_stamp_kind: process.stamp.kind().name(),
        started_at: process.began_ms().and_then(timestamp),
        executable: executable.map(text),
        executable_bytes: executable.and_then(bytes_if_not_text),
        stopped: process.run_state == RunState::Stopped,
        tty: process.tty.and_then(Tty::name),
    }
}

fn other_live(other: &OtherLive) -> WireOtherLive {
    WireOtherLive {
        pid: other.process.pid.get(),
        start_stamp: other.process.stamp.to_string(),
        pane: other.pane.as_ref().map(pane),
    }
}

fn pane(pane: &Pane) -> WirePane {
    let server = pane.server.as_ref().map(|server| WirePaneServer {
        socket: text(&server.socket),
        socket_bytes: bytes_if_not_text(&server.socket),
        pid: server.pid.map(|pid| pid.get()),
        start_stamp: server.stamp.as_ref().map(ToString::to_string),
    });
    WirePane {
        host: pane.host,
        server,
        session: pane.session.clone(),
        window: pane.window.clone(),
        pane: pane.pane.clone(),
        outer: pane
            .outer
            .as_deref()
            .map(|outer| Box::new(self::pane(outer))),
    }
}

fn command<'a, T: WireText<'a>>(
    invocation: Invocation,
    work_dir: Option<&'a Path>,
) -> WireCommand<T> {
    let own = invocation.directory.as_deref();
    let environment = invocation.environment.iter();
    WireCommand {
        argv: invocation.argv.into_iter().map(T::from).collect(),
        cwd: match own {
            Some(own) => Some(owned_text(own).into()),
            None => work_dir.map(text),
        },
        cwd_bytes: own.or(work_dir).and_then(bytes_if_not_text),
        env: environment
            .clone()
            .map(|(name, value)| (name.clone(), owned_text(value)))
            .collect(),
        env_bytes: environment
            .filter_map(|(name, value)| Some((name.clone(), bytes_if_not_text(value)?)))
            .collect(),
    }
}

fn evidence<'a, T: WireText<'a>>(judged: &'a JudgedEvidence) -> WireEvidence<T> {
    let path = judged.evidence.path.as_deref();
    WireEvidence {
        kind: judged.evidence.kind.name(),
        path: path.map(text),
        path_bytes: path.and_then(bytes_if_not_text),
        says: judged.evidence.says.as_str().into(),
        at: judged.at_ms.and_then(timestamp),
        verdict: judged.verdict.liveness().name(),
        reason: judged.verdict.reason(),
    }
}

fn unattributed(one: &Unattributed) -> WireUnattributed {
    let work_dir = one.process.work_dir();
    WireUnattributed {
        agent: one.process.agent.to_string(),
        pid: one.process.process.pid.get(),
        start_stamp: one.process.process.stamp.to_string(),
        started_at: one.process.process.began_ms().and_then(timestamp),
        work_dir: work_dir.map(text),
        work_dir_bytes: work_dir.and_then(bytes_if_not_text),
        pane: one.pane.as_ref().map(pane),
        candidates: one.candidates.iter().map(ToString::to_string).collect(),
        candidate_titles: {
            let titles = one.candidates.iter().map(|id| one.titles.get(id).cloned());
            titles.collect()
        },
        reason: one.reason.clone(),
    }
}

/// The wire form of a problem.
#[must_use]
pub fn problem(problem: &Problem) -> WireProblem {
    WireProblem {
        agent: problem.agent.as_ref().map(ToString::to_string),
        path: problem.path.as_deref().map(text),
        path_bytes: problem.path.as_deref().and_then(bytes_if_not_text),
        message: problem.message.clone(),
    }
}

/// A path as text, lossy if it is not UTF-8.
fn text<'a, T: WireText<'a>>(path: &'a Path) -> T {
    match path.to_str() {
        Some(text) => text.into(),
        None => owned_text(path).into(),
    }
}

fn owned_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The bytes of a path in base64, if the text is lossy.
fn bytes_if_not_text(path: &Path) -> Option<String> {
    if path.to_str().is_some() {
        return None;
    }
    let bytes = path.as_os_str().as_encoded_bytes();
    Some(base64::engine::general_purpose::STANDARD.encode(bytes))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_that_is_not_utf_8_has_its_bytes_beside_it() {
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/w/\xff"));
        let invocation = || Invocation {
            argv: vec!["agent".to_owned()],
            directory: None,
            environment: vec![("HOME".to_owned(), odd.to_owned())],
        };
        let of =
            |work_dir| serde_json::to_value(command::<String>(invocation(), work_dir)).unwrap();
        let (text, bytes) = ("/w/\u{fffd}", "L3cv/w==");
        assert_eq!(
            of(Some(odd)),
            json!({
                "argv": ["agent"], "cwd": text, "cwd_bytes": bytes,
                "env": { "HOME": text }, "env_bytes": { "HOME": bytes },
            })
        );
        assert_eq!(of(Some(Path::new("/w")))["cwd_bytes"], json!(null));
        let found = problem(&Problem {
            path: Some(odd.to_owned()),
            ..Problem::of_machine("odd")
        });
        assert_eq!(
            serde_json::to_value(found).unwrap(),
            json!({ "agent": null, "path": text, "path_bytes": bytes, "message": "odd" })
        );
    }
}
