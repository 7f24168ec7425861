//! Reads the phase of a session from the title of its terminal.
//!
//! A title is read during the look, so it is as new as the look. It counts only if it
//! contains one of the agent's words or signs: a person may have turned titles off.

use crate::adapter::claim::{Evidence, EvidenceKind};
use crate::adapter::phase::PhaseFact;
use crate::judging::verdict::Liveness;
use crate::sessions::session::{JudgedEvidence, Session};

/// Adds the phase from the terminal's title at `now_ms` to the reported facts of a session.
///
/// Sub-agents run behind their parent's title. A run without a person sets no title: an
/// existing title is that of an earlier program.
pub(crate) fn add(session: &mut Session, now_ms: i64) {
    let has_terminal = session.client.is_some() || session.sketch.is_headless != Some(true);
    if session.liveness() != Liveness::Live || session.sketch.parent.is_some() || !has_terminal {
        return;
    }
    let (Some(adapter), Some(pane)) = (session.adapter, &session.pane) else {
        return;
    };
    let Some(fact) = adapter.phase_in_title(&pane.title) else {
        return;
    };
    session.evidence.extend(evidence_of(session, &fact));
    session.sketch.facts.push(fact.dated(Some(now_ms)));
}

/// The title may contain a prompt, so only the agent's own word is shown.
fn evidence_of(session: &Session, title: &PhaseFact) -> Option<JudgedEvidence> {
    let phase = title.phase?;
    let word = title.word.as_deref().unwrap_or_default();
    let says = format!("the terminal shows `{word}`: {}", phase.name());
    let evidence = Evidence::new(EvidenceKind::Title, None, says);
    let pid = session.terminal_process().map(|process| process.pid);
    Some(JudgedEvidence::new(evidence, session.verdict, pid))
}
