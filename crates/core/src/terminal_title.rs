//! What the title of a session's own terminal says of its phase.
//!
//! A title is read as the look is taken, so it wins over what was told before:
//! some hooks tell that leave is asked for, and that it was given only once the
//! tool has run. It says something only where the agent put a word or a sign of
//! its own there: a person may have turned titles off.

use crate::agents::{self, Published};
use crate::claim::{Evidence, EvidenceKind, Serving};
use crate::session::{JudgedEvidence, Session};
use crate::verdict::Liveness;

/// Lets the title of its terminal refine what a live session is doing.
///
/// Sub-agents run behind their parent's title, and a run without a person sets
/// none: the one that is there is of the program before.
pub(crate) fn refine(session: &mut Session) {
    let has_terminal = session.client.is_some() || session.sketch.is_headless != Some(true);
    if session.liveness() != Liveness::Live || session.sketch.parent.is_some() || !has_terminal {
        return;
    }
    let adapter = agents::adapter(&session.key.agent);
    let (Some(adapter), Some(pane)) = (adapter, &session.pane) else {
        return;
    };
    let Some(title) = adapter.phase_in_title(&pane.title) else {
        return;
    };
    session.evidence.push(evidence_of(session, &title));
    let told = session.sketch.published.take();
    session.sketch.published = Some(told_now(told, title));
}

/// The title itself may hold a prompt, so that only the agent's own word is shown.
fn evidence_of(session: &Session, title: &Published) -> JudgedEvidence {
    let phase = title.phase.map_or("nothing known", |phase| phase.name());
    JudgedEvidence {
        evidence: Evidence {
            kind: EvidenceKind::Title,
            path: None,
            says: format!("its terminal shows now `{}`: {phase}", title.word),
        },
        verdict: session.verdict,
        at_ms: None,
        pid: session.terminal_process().map(|process| process.pid),
        serving: Serving::One,
    }
}

/// What was told of a phase, by what its terminal's title says of now. What was
/// told of the same phase may tell more of it.
fn told_now(told: Option<Published>, title: Published) -> Published {
    match told {
        Some(told) if told.phase == title.phase => told,
        Some(told) => Published {
            at_ms: told.at_ms,
            ..title
        },
        None => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::{Phase, WaitingFor};

    fn published(phase: Phase, at_ms: Option<i64>) -> Published {
        Published {
            phase: Some(phase),
            waiting_for: None,
            word: phase.name().to_owned(),
            at_ms,
        }
    }

    #[test]
    fn a_title_says_what_is_so_now_whatever_was_told_before() {
        for title in Phase::ALL {
            for told in Phase::ALL {
                let now = told_now(Some(published(told, Some(7))), published(title, None));
                assert_eq!((now.phase, now.at_ms), (Some(title), Some(7)), "{told:?}");
            }
            let now = told_now(None, published(title, None));
            assert_eq!((now.phase, now.at_ms), (Some(title), None));
        }
    }

    #[test]
    fn what_was_told_of_the_same_phase_is_kept_with_what_it_tells_more() {
        let asking = Published {
            waiting_for: Some(WaitingFor::Permission),
            ..published(Phase::Waiting, Some(7))
        };
        let now = told_now(Some(asking.clone()), published(Phase::Waiting, None));
        assert_eq!(now, asking);
    }
}
