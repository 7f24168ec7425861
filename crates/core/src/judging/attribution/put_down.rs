//! Records the solver's results in the sessions.

use std::collections::{BTreeMap, BTreeSet};

use whosup_process::{Pid, Process};

use super::solve::{Because, Pair, Solution};
use super::{Drafts, ProcessKey, process_key};
use crate::adapter::claim::{EvidenceKind, SessionKey};
use crate::adapter::{AgentProcess, ClueKind, Unclaimed};
use crate::judging::verdict::{Confidence, LiveBecause, UnknownBecause, Verdict};
use crate::sessions::merge::Draft;

/// Records the results. Returns the processes that have a session now.
pub(super) fn put_down(
    drafts: &mut Drafts,
    part: Unclaimed,
    keys: &[SessionKey],
    seeking: &[&AgentProcess],
    (solution, pairs): (Solution, &[Pair]),
    open: &mut BTreeMap<Pid, BTreeSet<SessionKey>>,
) -> BTreeSet<Pid> {
    let mut served = BTreeSet::new();
    let is_served = |session: usize| {
        solution
            .serves
            .values()
            .any(|(served, _)| *served == session)
    };
    for (left, current) in &solution.left {
        if part == Unclaimed::Owner
            && !is_served(*left)
            && let (Some(left), Some(current)) = (keys.get(*left), keys.get(*current))
            && let Some(draft) = drafts.get_mut(left)
            && !draft.is_live()
        {
            draft.leave_for(&current.session);
        }
    }
    for (process, (session, because)) in &solution.serves {
        let (Some(process), Some(key)) = (seeking.get(*process), keys.get(*session)) else {
            continue;
        };
        served.insert(process.process.pid);
        if part == Unclaimed::Owner {
            hide_provisional(drafts, &process_key(&process.process));
        }
        if let Some(draft) = drafts.get_mut(key) {
            serve(draft, process, part, *because);
        }
    }
    for (at, possible) in solution.open {
        let Some(process) = seeking.get(at) else {
            continue;
        };
        let is_only_shown = |session: usize| {
            let mut pairs = pairs.iter();
            pairs.any(|pair| (pair.process, pair.session) == (at, session) && pair.is_only_shown())
        };
        let possible = possible.into_iter();
        for (session, key) in possible.filter_map(|session| Some((session, keys.get(session)?))) {
            let sessions = open.entry(process.process.pid).or_default();
            sessions.insert(key.clone());
            if let Some(draft) = drafts.get_mut(key) {
                leave_open(draft, &process.process, part, is_only_shown(session));
            }
        }
    }
    served
}

/// A record that an agent makes before it knows which session it serves is none.
fn hide_provisional(drafts: &mut Drafts, process: &ProcessKey) {
    for draft in drafts.values_mut() {
        if draft.sketch.is_provisional {
            draft.supersede(process, None);
        }
    }
}

fn serve(draft: &mut Draft, process: &AgentProcess, part: Unclaimed, because: Because) {
    let (kind, live_because) = match because {
        Because::Arguments => (EvidenceKind::Arguments, LiveBecause::Arguments),
        Because::Launch => (EvidenceKind::Launch, LiveBecause::Launch),
        Because::Run => (EvidenceKind::Log, LiveBecause::Run),
        Because::Terminal | Because::Sole => (EvidenceKind::Terminal, LiveBecause::Terminal),
    };
    let pid = process.process.pid;
    let clue = draft.sketch.clues.iter().find(|clue| {
        clue.pid == pid
            && match because {
                Because::Arguments => clue.kind == ClueKind::Names,
                Because::Run => matches!(clue.kind, ClueKind::Run { .. }),
                Because::Launch | Because::Terminal | Because::Sole => false,
            }
    });
    let how = match (clue, because) {
        (Some(clue), _) => clue.says.clone(),
        (None, Because::Arguments) => format!("the arguments of process {pid} name it"),
        (None, Because::Launch) => {
            format!("it was begun or resumed when process {pid} was launched, and no other")
        }
        (None, Because::Run) => format!("the agent's log shows that process {pid} went on to it"),
        (None, Because::Terminal) => {
            format!("the use or the title of the terminal of process {pid} fits it, and no other")
        }
        (None, Because::Sole) => {
            format!("process {pid} shows a session of this directory, and there is no other")
        }
    };
    let verdict = Verdict::Live(live_because, Confidence::Inferred);
    if part == Unclaimed::Client {
        draft.add_evidence(
            kind,
            format!("client: {how}"),
            verdict,
            Some(&process.process),
        );
        draft.client = Some(Box::new(process.process.clone()));
    } else {
        draft.add_evidence(kind, how, verdict, Some(&process.process));
        draft.serve_by(verdict, &process.process);
    }
}

fn leave_open(draft: &mut Draft, process: &Process, part: Unclaimed, is_only_shown: bool) {
    if part == Unclaimed::Client {
        draft.is_client_ambiguous = true;
        return;
    }
    let pid = process.pid;
    let verdict = Verdict::Unknown(UnknownBecause::MayBeServedBy(pid));
    let (kind, how) = if is_only_shown {
        (EvidenceKind::Terminal, "the title of its terminal names it")
    } else {
        (
            EvidenceKind::Touched,
            "it was used since that process began, in the same directory",
        )
    };
    let says = format!("process {pid} may serve it: {how}");
    draft.add_evidence(kind, says, verdict, Some(process));
    if !draft.is_found_live() {
        draft.find_out(verdict, None);
    }
}
