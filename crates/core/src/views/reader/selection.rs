//! Selects the sessions of a list, and reads no more than needed.
//!
//! There may be very many. Each session is turned into its row as soon as all is known of it,
//! and only the rows are held until the list is complete and can be sorted.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use whosup_sidecar::{AgentId, SessionId};

use super::candidates::Candidates;
use super::condition::Condition;
use super::filter::{Filter, Wish, parent_key, sub_agents_of};
use super::find::{AgentError, parse_agent};
use super::order::{Direction, Order, Place};
use super::{Reach, Reader};
use crate::adapter::claim::SessionKey;
use crate::judging::verdict::Confidence;
use crate::machine::Environment;
use crate::machine::problem::Problem;
use crate::sessions::scan::{Describer, Judged};
use crate::sessions::session::{Session, Snapshot};
use crate::sources::recognize::Users;

/// How many sessions beyond the limit are held before the last of them are dropped.
const SPARE_MAX: usize = 1_024;

/// The request for a list.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// The filters.
    pub wish: Wish,
    /// Only sessions of these agents; all if empty.
    pub agents: BTreeSet<AgentId>,
    /// Whose processes.
    pub users: Users,
    /// In which order.
    pub order: Order,
    /// From which end.
    pub direction: Direction,
    /// At most so many sessions, sub-agents not counted.
    pub limit: Option<usize>,
    /// Whether sub-agents of shown sessions are shown.
    pub sub_agents: SubAgents,
}

/// Whether sub-agents of shown sessions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubAgents {
    /// They are.
    #[default]
    Shown,
    /// They are not.
    Hidden,
}

impl ListQuery {
    /// The same, for agents with these names; for all if there are none.
    ///
    /// # Errors
    ///
    /// [`AgentError`] if a name is no agent.
    pub fn of_agents(
        mut self,
        names: &[String],
        environment: &Environment,
    ) -> Result<Self, AgentError> {
        let agents = names.iter().map(|name| parse_agent(name, environment));
        self.agents = agents.collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The reach of the scan.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach {
            depth: self.wish.depth(),
            agents: (!self.agents.is_empty()).then(|| self.agents.clone()),
            users: self.users,
            is_judged_again: false,
        }
    }
}

/// The row that is held of a session until the list is complete.
pub trait Form {
    /// The row.
    type Row;
    /// It needs [`Chosen::ids`].
    const NEEDS_IDS: bool;
    /// It asks for [`Chosen::judged`].
    const JUDGES_AGAIN: bool = false;

    /// Adds to a session what only this list shows.
    fn prepare(&mut self, _session: &mut Session) {}

    /// Makes the row of a session.
    fn row(&mut self, session: &Session) -> Self::Row;

    /// Whether it needs a session even if the session is not shown.
    fn follows(&self, key: &SessionKey) -> bool {
        let _ = key;
        false
    }

    /// Gets such a session that is not shown.
    fn pass_over(&mut self, session: &Session) {
        let _ = session;
    }
}

/// The contents of a list.
pub struct Chosen<R> {
    /// The sessions, in order.
    pub shown: Vec<Shown<R>>,
    /// The snapshot without its sessions.
    pub rest: Snapshot,
    /// The ids of everything that was found, if the form needs them.
    pub ids: Vec<SessionId>,
    /// What the verdicts were made from, if the form needs that and it is not too much.
    pub judged: Option<Judged>,
}

/// A session of the list.
pub struct Shown<R> {
    place: Place,
    key: SessionKey,
    parent: Option<SessionId>,
    /// Its depth below another session of the list.
    pub depth: usize,
    /// Its condition's rank.
    pub rank: usize,
    /// Its liveness is inferred.
    pub is_inferred: bool,
    /// Its row.
    pub row: R,
}

/// Scans, and selects.
///
/// Files of sessions are read last, and only those of sessions that are shown,
/// unless the filter or the order can't decide without them.
pub(super) fn choose<F: Form>(
    reader: Reader<'_>,
    query: &ListQuery,
    filter: &Filter<'_>,
    form: &mut F,
) -> Chosen<F::Row> {
    let mut selection = Selection {
        reader,
        query,
        filter,
        form,
        ids: Vec::new(),
        shown: Vec::new(),
        waiting: Vec::new(),
        sub_agents: Vec::new(),
        problems: Vec::new(),
    };
    let reach = Reach {
        is_judged_again: F::JUDGES_AGAIN,
        ..query.reach()
    };
    let mut scanned = reader.scan_each(&reach, &mut |session, describer| {
        selection.take(Waiting::new(session), describer);
    });
    let processes = &mut scanned.snapshot.unattributed;
    processes.retain(|one| filter.is_process_shown(one));
    // A candidate of a process is not settled early. Most of what is shown is not, either.
    let candidates = Candidates::of(processes);
    let is_wanted = |session: &Session| {
        candidates.include(session)
            || (query.limit.is_none() && (filter.needs_files(session) || filter.is_shown(session)))
    };
    let is_described: Vec<bool> = scanned.snapshot.sessions.iter().map(is_wanted).collect();
    reader.describe(&mut scanned, is_wanted);
    let sessions = std::mem::take(&mut scanned.snapshot.sessions);
    for (session, is_described) in sessions.into_iter().zip(is_described) {
        let waiting = Waiting {
            is_described,
            ..Waiting::new(session)
        };
        selection.take(waiting, scanned.describer());
    }
    let (shown, ids, problems) = selection.finish(scanned.describer());
    let judged = scanned.judged;
    let mut rest = scanned.snapshot;
    rest.problems.extend(problems);
    rest.problems.sort();
    rest.problems.dedup();
    Chosen {
        shown,
        rest,
        ids,
        judged,
    }
}

/// A session that may or may not be shown.
struct Waiting {
    session: Session,
    is_described: bool,
    is_prepared: bool,
}

impl Waiting {
    fn new(session: Session) -> Self {
        Self {
            session,
            is_described: false,
            is_prepared: false,
        }
    }
}

type Finished<R> = (Vec<Shown<R>>, Vec<SessionId>, Vec<Problem>);

struct Selection<'a, F: Form> {
    reader: Reader<'a>,
    query: &'a ListQuery,
    filter: &'a Filter<'a>,
    form: &'a mut F,
    ids: Vec<SessionId>,
    shown: Vec<Shown<F::Row>>,
    /// With a limit: the first sessions so far, and some more.
    waiting: Vec<(Place, SessionKey, Waiting)>,
    /// Sub-agents that are shown if their parent is.
    sub_agents: Vec<Waiting>,
    problems: Vec<Problem>,
}

impl<F: Form> Selection<'_, F> {
    fn take(&mut self, mut waiting: Waiting, describer: Describer<'_>) {
        if F::NEEDS_IDS {
            self.ids.push(waiting.session.key.session.clone());
        }
        let order = self.query.order;
        let is_limited = self.query.limit.is_some();
        if self.filter.needs_files(&waiting.session)
            || (is_limited && order.needs_files(&waiting.session))
        {
            self.describe(&mut waiting, describer);
        }
        let is_shown = self.filter.is_shown(&waiting.session);
        let is_sub_agent = waiting.session.sketch.parent.is_some();
        if is_sub_agent && (is_limited || !is_shown) {
            if self.may_show_below() {
                self.sub_agents.push(waiting);
            } else {
                self.pass_over(waiting, describer);
            }
            return;
        }
        // A sub-agent whose parent is filtered out, not just beyond the limit, is shown by itself.
        if !is_shown || (is_sub_agent && !self.may_show_below()) {
            self.pass_over(waiting, describer);
            return;
        }
        let Some(limit) = self.query.limit else {
            self.show(waiting, describer);
            return;
        };
        if order.needs_form() {
            self.prepare(&mut waiting);
        }
        let place = order.place(&waiting.session);
        let key = waiting.session.key.clone();
        self.waiting.push((place, key, waiting));
        if self.waiting.len() >= limit.saturating_mul(2).saturating_add(SPARE_MAX) {
            self.let_go(limit);
        }
    }

    fn pass_over(&mut self, mut waiting: Waiting, describer: Describer<'_>) {
        if self.form.follows(&waiting.session.key) {
            self.describe(&mut waiting, describer);
            self.form.pass_over(&waiting.session);
        }
    }

    fn may_show_below(&self) -> bool {
        self.query.sub_agents == SubAgents::Shown
    }

    /// Keeps only the first of the waiting sessions.
    fn let_go(&mut self, limit: usize) {
        let direction = self.query.direction;
        self.waiting.sort_by(|one, other| {
            let by_place = one.0.cmp(&other.0, direction);
            by_place.then_with(|| one.1.cmp(&other.1))
        });
        self.waiting.truncate(limit);
    }

    fn describe(&mut self, waiting: &mut Waiting, describer: Describer<'_>) {
        if !waiting.is_described {
            self.problems
                .extend(describer.describe(&mut waiting.session));
            self.reader.keep_out(&mut waiting.session);
            waiting.is_described = true;
        }
    }

    fn prepare(&mut self, waiting: &mut Waiting) {
        if !waiting.is_prepared {
            self.form.prepare(&mut waiting.session);
            waiting.is_prepared = true;
        }
    }

    fn show(&mut self, mut waiting: Waiting, describer: Describer<'_>) {
        self.describe(&mut waiting, describer);
        self.prepare(&mut waiting);
        let session = waiting.session;
        self.shown.push(Shown {
            place: self.query.order.place(&session),
            depth: 0,
            rank: Condition::of(&session).rank(),
            is_inferred: session.verdict.confidence() == Some(Confidence::Inferred),
            row: self.form.row(&session),
            parent: session.sketch.parent,
            key: session.key,
        });
    }

    /// The shown sessions in order, the IDs of all, and what could not be read.
    fn finish(mut self, describer: Describer<'_>) -> Finished<F::Row> {
        self.let_go(self.query.limit.unwrap_or(usize::MAX));
        for (_, _, waiting) in std::mem::take(&mut self.waiting) {
            self.show(waiting, describer);
        }
        let sub_agents = std::mem::take(&mut self.sub_agents);
        if !sub_agents.is_empty() {
            let top: HashSet<SessionKey> = self
                .shown
                .iter()
                .filter(|shown| shown.parent.is_none())
                .map(|shown| shown.key.clone())
                .collect();
            let keys: Vec<(SessionKey, Option<SessionKey>)> = self
                .shown
                .iter()
                .filter(|shown| shown.parent.is_some())
                .map(|shown| (shown.key.clone(), shown.parent_key()))
                .collect();
            let of_shown = keys.iter().map(|(key, parent)| (key, parent.clone()));
            let of_waiting = sub_agents
                .iter()
                .map(|one| (&one.session.key, parent_key(&one.session)));
            let below = sub_agents_of(of_shown.chain(of_waiting), &top);
            for waiting in sub_agents {
                if below.contains(&waiting.session.key) {
                    self.show(waiting, describer);
                } else {
                    self.pass_over(waiting, describer);
                }
            }
        }
        let mut shown = self.shown;
        put_in_order(&mut shown, |one, other| {
            let by_place = one.place.cmp(&other.place, self.query.direction);
            by_place.then_with(|| one.key.cmp(&other.key))
        });
        put_below_parents(&mut shown);
        (shown, self.ids, self.problems)
    }
}

impl<R> Shown<R> {
    /// The id of the session.
    pub const fn id(&self) -> &SessionId {
        &self.key.session
    }

    /// The agent of the session.
    pub const fn agent(&self) -> &AgentId {
        &self.key.agent
    }

    fn parent_key(&self) -> Option<SessionKey> {
        let session = self.parent.clone()?;
        Some(SessionKey {
            session,
            ..self.key.clone()
        })
    }
}

/// Sorts in place. There may be very many: the indices are sorted, which takes less memory, and
/// runs that are sorted already, home by home, are only merged.
fn put_in_order<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|one, other| match (items.get(*one), items.get(*other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    // Each cycle of the permutation is followed once.
    for start in 0..order.len() {
        let mut at = start;
        while let Some(from) = order.get_mut(at).map(|from| std::mem::replace(from, at))
            && from != start
        {
            items.swap(at, from);
            at = from;
        }
    }
}

/// Puts each sub-agent right below its parent, keeping the order otherwise.
fn put_below_parents<R>(shown: &mut Vec<Shown<R>>) {
    if shown.iter().all(|one| one.parent.is_none()) {
        return;
    }
    let keys: HashSet<SessionKey> = shown.iter().map(|one| one.key.clone()).collect();
    let mut children: HashMap<SessionKey, Vec<Shown<R>>> = HashMap::new();
    let mut roots = Vec::new();
    for one in shown.drain(..) {
        match one.parent_key().filter(|parent| keys.contains(parent)) {
            Some(parent) if parent != one.key => children.entry(parent).or_default().push(one),
            _ => roots.push(one),
        }
    }
    // A stack: the last is taken next.
    let mut waiting: Vec<Shown<R>> = roots.into_iter().rev().collect();
    while let Some(one) = waiting.pop() {
        let below = children.remove(&one.key).unwrap_or_default();
        let depth = one.depth + 1;
        waiting.extend(
            below
                .into_iter()
                .rev()
                .map(|below| Shown { depth, ..below }),
        );
        shown.push(one);
    }
    // Sub-agents that claim each other as parent have no root above them.
    shown.extend(children.into_values().flatten());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::put_in_order;

    proptest! {
        #[test]
        fn what_is_put_in_order_is_sorted_and_equals_stay_as_they_came(
            numbers in prop::collection::vec(0..40_u8, 0..200),
            turned_by in 0..200_usize,
        ) {
            // Two runs in order too, as two homes give them.
            let mut turned = numbers.clone();
            turned.sort_unstable();
            turned.rotate_left(turned_by.checked_rem(numbers.len()).unwrap_or(0));
            for numbers in [numbers, turned] {
                let items: Vec<(u8, usize)> = numbers.into_iter().zip(0..).collect();
                let (mut sorted, mut put) = (items.clone(), items);
                sorted.sort_by_key(|item| item.0);
                put_in_order(&mut put, |one, other| one.0.cmp(&other.0));
                prop_assert_eq!(put, sorted);
            }
        }
    }
}
