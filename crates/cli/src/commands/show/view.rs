//! Writes one session for a person.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use whosup_core::adapter::{Context, Message, TurnTokens};
use whosup_core::judging::verdict::Liveness;
use whosup_core::machine::problem::Problem;
use whosup_core::process::{Process, Tty};
use whosup_core::sessions::resources::{ProcessUse, Resources};
use whosup_core::sessions::session::{JudgedEvidence, Session};
use whosup_core::sources::usage::Usage;
use whosup_core::views::explain::sentence;
use whosup_core::views::wire::{self, WireCommand, WireResume};

use crate::app::{App, World, say};
use crate::cell::{pane_words, place, tty_of};
use crate::colour::paint;
use crate::condition::{Condition, Wording, words_of};
use crate::directory::{gone_to_resume_in, is_gone};
use crate::shell::{line, readable};
use crate::text;
use whosup_core::reader::Single;

/// The width of the names of facts.
const NAME_WIDTH: usize = 12;

/// How many problems are shown in full.
const PROBLEMS_SHOWN_MAX: usize = 3;

/// Names and values, one pair per line.
struct Facts(Vec<(&'static str, String)>);

impl Facts {
    fn add(&mut self, name: &'static str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.push((name, value));
        }
    }
}

/// Writes all that is known of a session.
pub(super) fn write_session(
    app: &mut App<'_>,
    shown: &Single,
    with_sub_agents: Option<&Usage>,
) -> anyhow::Result<()> {
    let session = &shown.session;
    let style = app.world.config()?.style(Condition::of(session));
    let words = paint(
        &words_of(session, Wording::Full),
        style,
        app.face.is_coloured,
    );
    let id = text::visible(session.key.session.as_str());
    writeln!(app.out, "{} {id}: {words}", session.key.agent)?;
    if let Some(title) = session.title().map(text::one_line) {
        let title = paint(&title, Style::new().bold(), app.face.is_coloured);
        writeln!(app.out, "{title}")?;
    }
    writeln!(app.out)?;
    let facts = facts(&app.world, shown, with_sub_agents);
    for (name, value) in &facts.0 {
        writeln!(app.out, "  {name:NAME_WIDTH$}  {value}")?;
    }
    for (at, judged) in session.evidence.iter().enumerate() {
        let name = if at == 0 { "evidence" } else { "" };
        let piece = evidence(judged, app.world.home());
        writeln!(app.out, "  {name:NAME_WIDTH$}  {piece}")?;
    }
    Ok(())
}

fn facts(world: &World, shown: &Single, with_sub_agents: Option<&Usage>) -> Facts {
    let session = &shown.session;
    let home = world.home();
    let now_ms = shown.snapshot.taken_at_ms;
    let described = &session.description;
    let foreign = |text: Option<&str>| text.map(text::one_line);
    let shown_path = |path: Option<&Path>| path.map(|path| text::path(path, home));
    let date = |at_ms: Option<i64>| date(world, now_ms, at_ms?);
    let transcript = described.transcript.as_deref();
    let transcript = transcript.or(session.sketch.transcript.as_deref());
    let wire = wire::snapshot(world.machine(), &shown.snapshot);
    let (attach, resume) = match wire.sessions.into_iter().next() {
        Some(session) => (session.attach, session.resume),
        None => (None, None),
    };
    let mut facts = Facts(Vec::new());
    facts.add("answer", Some(answer(session)));
    facts.add("phase", phase(session));
    let directory = session.work_dir();
    facts.add(
        "directory",
        shown_path(directory).map(|shown| match directory {
            Some(path) if is_gone(world.machine().mounts(), path) => {
                format!("{shown} (no longer there)")
            }
            _ => shown,
        }),
    );
    facts.add("branch", foreign(described.git_branch.as_deref()));
    facts.add("model", foreign(described.model.as_deref()));
    facts.add("version", foreign(session.agent_version()));
    facts.add("started", date(session.started_at_ms()));
    facts.add("last active", date(session.last_activity_at_ms()));
    facts.add("ended", date(ended(session)));
    facts.add("end cause", end_cause(session));
    facts.add("cpu time", cpu_time(session));
    facts.add("context", described.context.map(context));
    facts.add("turn", described.turn.map(|turn| self::turn(now_ms, turn)));
    facts.add("tokens", session.usage.as_ref().map(tokens));
    facts.add("process", process(world, session.owner.as_deref()));
    facts.add("uses", session.resources.as_ref().map(uses));
    facts.add("client", process(world, session.client.as_deref()));
    facts.add("also claimed", other_pids(session));
    facts.add("terminal", tty_of(session).and_then(Tty::name));
    facts.add("pane", place_in_full(session));
    facts.add("attach", attach.map(|command| command_line(&command, home)));
    facts.add("resume", resume.map(|resume| resume_line(resume, home)));
    let gone = gone_to_resume_in(world.machine(), session);
    let gone = gone.filter(|_| session.liveness() == Liveness::Exited);
    let gone = gone.as_deref().filter(|gone| Some(*gone) != directory);
    facts.add(
        "",
        shown_path(gone).map(|shown| format!("(`{shown}` is no longer there)")),
    );
    facts.add(
        "dismissed",
        session
            .is_dismissed
            .then(|| "kept out of default views".to_owned()),
    );
    facts.add("went on to", id(session.superseded_by.as_ref()));
    facts.add("sub-agent of", id(session.sketch.parent.as_ref()));
    let sub_agents = (shown.sub_agents > 0).then(|| shown.sub_agents.to_string());
    facts.add("sub-agents", sub_agents);
    let with_them = with_sub_agents.map(|usage| format!("(tokens with them: {})", tokens(usage)));
    facts.add("", with_them);
    facts.add("endpoint", foreign(session.sketch.endpoint.as_deref()));
    facts.add("transcript", shown_path(transcript));
    facts.add("home", shown_path(Some(&session.key.home)));
    facts
}

fn date(world: &World, now_ms: i64, at_ms: i64) -> Option<String> {
    let shown = world.local_time(at_ms)?;
    Some(format!("{shown} ({})", ago(now_ms, at_ms)))
}

fn ended(session: &Session) -> Option<i64> {
    let is_live = session.liveness() == Liveness::Live;
    session.sketch.ended_at_ms.filter(|_| !is_live)
}

fn end_cause(session: &Session) -> Option<String> {
    ended(session)?;
    session.sketch.end_cause.as_deref().map(text::one_line)
}

fn cpu_time(session: &Session) -> Option<String> {
    let spent = Duration::from_millis(session.sketch.cpu_at_least_ms?);
    Some(format!(
        "at least {:.1} s, as far as hooks reported",
        spent.as_secs_f64()
    ))
}

/// `51.2k of 200k tokens (25.6 %)`
fn context(context: Context) -> String {
    let tokens = text::tokens(context.tokens);
    let Some((window, percent)) = context.window.zip(context.percent()) else {
        return format!("{tokens} tokens");
    };
    let assumed = if context.is_window_assumed {
        ", window assumed by the model"
    } else {
        ""
    };
    let window = text::tokens(window);
    format!("{tokens} of {window} tokens ({percent} %{assumed})")
}

/// `1.29k (234 input, 1k cached, 56 output), $0.02`
fn tokens(usage: &Usage) -> String {
    let sums = &usage.sums;
    if !sums.are_tokens_known() {
        let cost = text::cost(usage).unwrap_or_default();
        return format!("{cost}; the agent sums up no tokens");
    }
    let kinds = [
        (sums.input, "input"),
        (sums.cached_input, "cached"),
        (sums.cache_writes, "cache writes"),
        (sums.output, "output"),
    ];
    let kinds = kinds.into_iter().filter(|(tokens, _)| *tokens > 0);
    let kinds = kinds.map(|(tokens, kind)| format!("{} {kind}", text::tokens(tokens)));
    let kinds: Vec<String> = kinds.collect();
    let all = text::tokens(sums.tokens());
    let cost = match text::cost(usage) {
        Some(cost) => cost,
        None => "no price is known".to_owned(),
    };
    match kinds.is_empty() {
        true => all,
        false => format!("{all} ({}), {cost}", kinds.join(", ")),
    }
}

fn turn(now_ms: i64, turn: TurnTokens) -> String {
    let began = turn
        .started_at_ms
        .map(|at| format!("began {}", ago(now_ms, at)));
    let output = turn.output_tokens;
    let output = output.map(|tokens| format!("{} output tokens", text::tokens(tokens)));
    let parts: Vec<String> = began.into_iter().chain(output).collect();
    parts.join(", ")
}

fn answer(session: &Session) -> String {
    let liveness = session.liveness().name();
    let known = session.verdict.confidence();
    let known = known.map(|known| format!(", {}", known.name()));
    format!(
        "{liveness} ({}{}): {}",
        session.verdict.reason(),
        known.unwrap_or_default(),
        sentence(session.verdict)
    )
}

/// The phase, with the agent's own word if it differs.
fn phase(session: &Session) -> Option<String> {
    let doing = session.doing();
    let word = doing
        .word
        .filter(|word| !word.is_empty() && session.liveness() == Liveness::Live)
        .map(|word| text::one_line(&word));
    match (doing.phase.map(|phase| phase.name()), word) {
        (Some(phase), Some(word)) if word != phase => {
            Some(format!("{phase} (the agent says `{word}`)"))
        }
        (Some(phase), _) => Some(phase.to_owned()),
        (None, word) => word.map(|word| format!("not known (the agent says `{word}`)")),
    }
}

fn process(world: &World, process: Option<&Process>) -> Option<String> {
    let process = process?;
    let details = world.machine().table().details(process);
    let exe = details.exe.as_deref().ok();
    let exe = exe.map(|exe| text::path(exe, world.home()));
    Some(match exe {
        Some(exe) => format!("{}  {exe}", process.pid),
        None => process.pid.to_string(),
    })
}

/// The resources of the owner and all processes below it.
fn uses(resources: &Resources) -> String {
    let ProcessUse {
        cpu,
        rss_bytes,
        pss_bytes,
        storage,
        threads,
        ..
    } = resources.owner;
    let parts = [
        cpu.map(|cpu| format!("{:.1} s of cpu", cpu.as_secs_f64())),
        rss_bytes.map(|bytes| format!("{} of memory", text::bytes(bytes))),
        pss_bytes.map(|bytes| format!("{} without shared parts", text::bytes(bytes))),
        Some(text::count(threads as usize, "thread", "threads")),
        storage.map(|storage| {
            let (read, written) = (text::bytes(storage.read), text::bytes(storage.written));
            format!("{read} read, {written} written")
        }),
        resources
            .is_shared
            .then(|| "shared by several sessions".to_owned()),
    ];
    let own: Vec<String> = parts.into_iter().flatten().collect();
    let tree = resources
        .tree
        .filter(|tree| tree.processes > 1)
        .map(|tree| {
            let memory = tree
                .rss_bytes
                .map(|bytes| format!(", {}", text::bytes(bytes)));
            format!(
                "; with {} processes{}",
                tree.processes,
                memory.unwrap_or_default()
            )
        });
    format!("{}{}", own.join(", "), tree.unwrap_or_default())
}

fn other_pids(session: &Session) -> Option<String> {
    let others = session.other_live.iter().map(|other| {
        let pane = other.pane.as_ref();
        let place = pane.map(|pane| format!(" in {}", pane_words(pane)));
        format!("{}{}", other.process.pid, place.unwrap_or_default())
    });
    let others: Vec<String> = others.collect();
    (!others.is_empty()).then(|| format!("by {}", others.join(", ")))
}

/// The pane with its id, and the panes of other hosts around it.
fn place_in_full(session: &Session) -> Option<String> {
    let is_live = session.liveness() == Liveness::Live;
    let Some(pane) = session.pane.as_ref().filter(|_| is_live) else {
        let is_terminal = tty_of(session).is_some() && !session.is_headless();
        return place(session).filter(|_| !is_terminal);
    };
    let around = std::iter::successors(Some(pane), |pane| pane.outer.as_deref());
    let words = around.map(|pane| match &pane.pane {
        Some(id) => format!("{} ({})", pane_words(pane), text::visible(id)),
        None => pane_words(pane),
    });
    Some(words.collect::<Vec<_>>().join(", in "))
}

fn id(id: Option<&whosup_core::sidecar::SessionId>) -> Option<String> {
    id.map(|id| text::visible(id.as_str()))
}

/// The command that resumes a session, and whether it is trusted.
fn resume_line(resume: WireResume, home: Option<&Path>) -> String {
    let WireResume { command, trusted } = resume;
    let line = command_line(&command, home);
    if trusted {
        line
    } else {
        format!("{line}  (not trusted: any program may have written this command)")
    }
}

/// A command in the form that a person can type into a shell.
fn command_line(command: &WireCommand, home: Option<&Path>) -> String {
    let variables = command.env.iter();
    line(
        command.argv.iter().map(String::as_str),
        command.cwd.as_deref(),
        variables.map(|(name, value)| (name.as_str(), value.as_str())),
        |word| readable(word, home),
    )
}

fn evidence(judged: &JudgedEvidence, home: Option<&Path>) -> String {
    let place = judged.evidence.path.as_deref();
    let place = place.map(|path| format!(" {}", text::path(path, home)));
    format!(
        "{}{}: {} -> {} ({})",
        judged.evidence.kind.name(),
        place.unwrap_or_default(),
        text::one_line(&judged.evidence.says),
        judged.verdict.liveness().name(),
        judged.verdict.reason()
    )
}

fn ago(now_ms: i64, at_ms: i64) -> String {
    match text::age(now_ms, at_ms).as_str() {
        "now" => "now".to_owned(),
        age => format!("{age} ago"),
    }
}

/// Writes the last messages, each below its speaker.
pub(super) fn write_messages(
    app: &mut App<'_>,
    session: &Session,
    messages: Option<&[Message]>,
) -> io::Result<()> {
    let Some(messages) = messages else {
        return Ok(());
    };
    if messages.is_empty() {
        let has_transcript =
            session.description.transcript.is_some() || session.sketch.transcript.is_some();
        let why = if has_transcript {
            "Its transcript has no messages that could be read."
        } else {
            "It has no transcript that is known."
        };
        return writeln!(app.out, "\n{why}");
    }
    for message in messages {
        let at = message.at_ms.and_then(|at_ms| app.world.local_time(at_ms));
        let at = at.unwrap_or_default();
        let speaker = format!("{} {at}", message.role.name());
        let speaker = paint(
            speaker.trim_end(),
            Style::new().bold(),
            app.face.is_coloured,
        );
        writeln!(app.out, "\n{speaker}")?;
        for line in text::lines(&message.text) {
            writeln!(app.out, "  {line}")?;
        }
    }
    Ok(())
}

/// Reports what could not be read; the first few in full.
pub(in crate::commands) fn say_problems(err: &mut dyn Write, problems: &[Problem]) {
    for problem in problems.iter().take(PROBLEMS_SHOWN_MAX) {
        say(
            err,
            &format!("warning: {}", text::visible(&problem.to_string())),
        );
    }
    let more = problems.len().saturating_sub(PROBLEMS_SHOWN_MAX);
    if more > 0 {
        say(
            err,
            &format!("warning: and {more} more; `whosup list --problems` shows them"),
        );
    }
}
