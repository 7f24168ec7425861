//! What was found in one home, in batches that are small enough to be judged in memory.

use std::collections::HashMap;

use whosup_sidecar::SessionId;

use crate::adapter::claim::{Claim, SessionKey};
use crate::adapter::{AgentScan, Sketch};

/// How many sketches or claims are taken at a time, as far as families allow.
const BATCH: usize = 1_024;
/// How deep sub-agents are followed.
const DEPTH_MAX: usize = 64;

/// Portions of what was found in one home. Everything about a session, its sub-agents
/// and its parent is in the same portion.
pub(super) struct Batches {
    sketches: Vec<Box<Sketch>>,
    claims: Vec<Box<Claim>>,
    parents: HashMap<SessionId, SessionId>,
}

impl Batches {
    pub(super) fn of(found: AgentScan) -> Self {
        let AgentScan {
            mut sketches,
            mut claims,
        } = found;
        let parents = sketches
            .iter()
            .filter_map(|sketch| Some((sketch.key.session.clone(), sketch.parent.clone()?)))
            .collect();
        let compare = |one: &SessionKey, other: &SessionKey| {
            head_of(&parents, &other.session).cmp(head_of(&parents, &one.session))
        };
        sketches.sort_by(|one, other| compare(&one.key, &other.key));
        claims.sort_by(|one, other| compare(&one.key, &other.key));
        Self {
            sketches,
            claims,
            parents,
        }
    }
}

/// The head of a family of sessions: the topmost parent of a sub-agent.
fn head_of<'a>(
    parents: &'a HashMap<SessionId, SessionId>,
    session: &'a SessionId,
) -> &'a SessionId {
    let mut head = session;
    // A cycle of parents ends at one of its members.
    for _ in 0..parents.len().min(DEPTH_MAX) {
        match parents.get(head) {
            Some(parent) => head = parent,
            None => break,
        }
    }
    head
}

impl Batches {
    /// The next family: each list ends with its first member.
    fn next_family(&self) -> Option<SessionId> {
        let of_sketch = self.sketches.last().map(|next| &next.key);
        let of_claim = self.claims.last().map(|next| &next.key);
        let next = of_sketch.into_iter().chain(of_claim);
        let families = next.map(|key| head_of(&self.parents, &key.session));
        families.min().cloned()
    }
}

impl Iterator for Batches {
    type Item = AgentScan;

    fn next(&mut self) -> Option<AgentScan> {
        let mut batch = AgentScan::default();
        while batch.sketches.len().max(batch.claims.len()) < BATCH {
            let Some(next) = self.next_family() else {
                break;
            };
            let parents = &self.parents;
            let is_of_it = |key: &SessionKey| *head_of(parents, &key.session) == next;
            while let Some(sketch) = self.sketches.pop_if(|one| is_of_it(&one.key)) {
                batch.sketches.push(sketch);
            }
            while let Some(claim) = self.claims.pop_if(|one| is_of_it(&one.key)) {
                batch.claims.push(claim);
            }
        }
        let is_empty = batch.sketches.is_empty() && batch.claims.is_empty();
        (!is_empty).then_some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, Batches};
    use crate::adapter::claim::SessionKey;
    use crate::adapter::{AgentScan, Sketch};

    fn sketch(session: &str, parent: Option<&str>) -> Box<Sketch> {
        Box::new(Sketch {
            parent: parent.map(|parent| parent.parse().unwrap()),
            ..Sketch::new(SessionKey {
                agent: "codex".parse().unwrap(),
                session: session.parse().unwrap(),
                home: std::path::Path::new("/home/dev/.codex").into(),
            })
        })
    }

    #[test]
    fn every_session_is_in_one_batch_with_those_below_it() {
        let mut sketches = Vec::new();
        for at in 0..3 * BATCH {
            let (top, below) = (format!("top-{at}"), format!("a-{at}"));
            sketches.push(sketch(&top, None));
            sketches.push(sketch(&below, Some(&top)));
            sketches.push(sketch(&format!("z-{at}"), Some(&below)));
        }
        let total = sketches.len();
        let batches: Vec<AgentScan> = Batches::of(AgentScan {
            sketches,
            claims: Vec::new(),
        })
        .collect();
        assert!(batches.len() > 2);
        let mut seen = 0;
        for batch in &batches {
            assert!(batch.sketches.len() < BATCH + 3);
            let number = |one: &Sketch| {
                one.key
                    .session
                    .as_str()
                    .rsplit('-')
                    .next()
                    .map(str::to_owned)
            };
            let tops = batch.sketches.iter().filter(|one| one.parent.is_none());
            let tops: Vec<_> = tops.map(|top| number(top)).collect();
            assert_eq!(batch.sketches.len(), 3 * tops.len());
            assert!(batch.sketches.iter().all(|one| tops.contains(&number(one))));
            seen += batch.sketches.len();
        }
        assert_eq!(seen, total);
    }

    #[test]
    fn those_that_name_each_other_as_parent_come_out_all_the_same() {
        let sketches = vec![
            sketch("a", Some("b")),
            sketch("b", Some("a")),
            sketch("c", Some("c")),
        ];
        let batches = Batches::of(AgentScan {
            sketches,
            claims: Vec::new(),
        });
        assert_eq!(batches.map(|batch| batch.sketches.len()).sum::<usize>(), 3);
    }
}
