//! Combinations of several claims, sessions and processes.

use std::path::PathBuf;

use proptest::prelude::*;
use whosup_process::{Pid, Process, RecordedProcess, TerminalUse};
use whosup_sidecar::{AgentId, SessionId};

use super::{Merged, Parts, merge};
use crate::adapter::claim::{
    Claim, ClaimedScope, Evidence, EvidenceKind, Exclusivity, Placement, Serving, SessionKey,
    Subject, TakenUp, Trust,
};
use crate::adapter::{AgentProcess, KnownClient, Role, Sketch, Unclaimed};
use crate::judging::observe::JudgedClaim;
use crate::judging::verdict::{Confidence, ExitedBecause, LiveBecause, UnknownBecause, Verdict};
use crate::sessions::session::Session;

const T: i64 = 1_795_800_000_000;
const LIVE: Verdict = Verdict::Live(LiveBecause::StartStamp, Confidence::Proven);
const LIKELY: Verdict = Verdict::Live(LiveBecause::StartedBeforeClaim, Confidence::Consistent);
const GONE: Verdict = Verdict::Exited(ExitedBecause::NoSuchProcess);
const OTHER: Verdict = Verdict::Unknown(UnknownBecause::OtherHost);

fn key(session: &str) -> SessionKey {
    SessionKey {
        agent: AgentId::parse("codex").unwrap(),
        session: SessionId::parse(session).unwrap(),
        home: PathBuf::from("/h").into(),
    }
}

fn process(pid: i32) -> Process {
    RecordedProcess::new(pid, 1_000, T).process
}

/// A claim of process `pid` on `session`, made `at_s` after the process began.
fn claim(session: &str, pid: i32, at_s: i64, verdict: Verdict) -> JudgedClaim {
    JudgedClaim {
        claim: Box::new(Claim {
            key: key(session),
            subject: Subject::Process(Pid::new(pid.into()).unwrap()),
            scope: ClaimedScope::default(),
            stamp: None,
            dated_at_ms: Some(T + at_s * 1_000),
            modified_at_ms: None,
            taken_up: TakenUp::AsDated,
            ended_by: None,
            is_inferred: false,
            executable: None,
            work_dir: None,
            exclusivity: Exclusivity::Exclusive,
            serving: Serving::One,
            trust: Trust::Trusted,
            placement: Placement::Local,
            evidence: Evidence::new(
                EvidenceKind::Registry,
                Some(PathBuf::from(format!("/h/{session}-{pid}-{at_s}"))),
                format!("pid {pid}"),
            ),
        }),
        verdict,
        process: verdict.confidence().map(|_| Box::new(process(pid))),
        recognition: None,
    }
}

fn agent_process(pid: i32, role: Role) -> AgentProcess {
    let recorded = RecordedProcess::new(pid, 1_000, T).cwd("/w");
    AgentProcess {
        agent: AgentId::parse("codex").unwrap(),
        adapter: &crate::sources::agents::codex::Codex,
        process: recorded.process,
        details: std::sync::Arc::new(recorded.details),
        role,
        homes: Vec::new(),
        launched_in: crate::adapter::LaunchedIn::There,
    }
}

fn boxed<const COUNT: usize>(sketches: [Sketch; COUNT]) -> Vec<Box<Sketch>> {
    sketches.map(Box::new).into()
}

fn sketch(session: &str) -> Sketch {
    Sketch {
        work_dir: Some(PathBuf::from("/w")),
        ..Sketch::new(key(session))
    }
}

fn parts(claims: Vec<JudgedClaim>) -> Parts {
    Parts {
        claims,
        fully_seen_homes: [PathBuf::from("/h")].into(),
        default_homes: [PathBuf::from("/h")].into(),
        adapters: crate::sources::agents::AGENTS,
        ..Parts::default()
    }
}

#[track_caller]
fn session<'a>(merged: &'a Merged, id: &str) -> &'a Session {
    let mut found = merged.sessions.iter().filter(|one| one.key == key(id));
    let session = found
        .next()
        .unwrap_or_else(|| panic!("no {id} in {merged:#?}"));
    assert!(found.next().is_none(), "{id} twice");
    session
}

#[track_caller]
fn owner_of(merged: &Merged, id: &str) -> Option<i32> {
    session(merged, id)
        .owner
        .as_ref()
        .map(|owner| owner.pid.get())
}

#[test]
fn live_beats_unknown_beats_exited_and_everything_said_is_kept() {
    let merged = merge(parts(vec![
        claim("a", 3, 9, GONE),
        claim("a", 2, 8, OTHER),
        claim("a", 1, 1, LIKELY),
        claim("b", 3, 9, GONE),
        claim("b", 2, 1, OTHER),
    ]));
    assert_eq!(session(&merged, "a").verdict, LIKELY);
    assert_eq!(owner_of(&merged, "a"), Some(1));
    assert_eq!(session(&merged, "a").evidence.len(), 3);
    assert_eq!(session(&merged, "b").verdict, OTHER);
    assert_eq!(owner_of(&merged, "b"), None);
}

#[test]
fn a_second_live_claimant_is_shown() {
    let merged = merge(parts(vec![claim("a", 1, 1, LIVE), claim("a", 2, 9, LIVE)]));
    assert_eq!(owner_of(&merged, "a"), Some(2));
    let others: Vec<i32> = session(&merged, "a")
        .other_live_pids()
        .map(Pid::get)
        .collect();
    assert_eq!(others, [1]);
}

#[test]
fn the_newest_of_a_processs_sessions_is_current_and_the_others_are_superseded() {
    let merged = merge(parts(vec![
        claim("a", 1, 1, LIVE),
        claim("b", 1, 2, LIVE),
        claim("c", 2, 0, LIVE),
    ]));
    assert_eq!(session(&merged, "b").verdict, LIVE);
    assert_eq!(session(&merged, "c").verdict, LIVE);
    let left = session(&merged, "a");
    assert_eq!(left.verdict, Verdict::Exited(ExitedBecause::Superseded));
    assert_eq!(left.superseded_by.as_ref().unwrap().as_str(), "b");
    assert!(!left.is_orphan());
    assert!(left.owner.is_none());
}

#[test]
fn a_session_that_one_process_left_lives_on_in_another() {
    let merged = merge(parts(vec![
        claim("a", 1, 1, LIVE),
        claim("a", 2, 1, LIVE),
        claim("b", 1, 2, LIVE),
    ]));
    assert_eq!(session(&merged, "a").verdict, LIVE);
    assert_eq!(owner_of(&merged, "a"), Some(2));
    assert!(session(&merged, "a").superseded_by.is_none());
}

#[test]
fn a_process_that_serves_many_keeps_them_all() {
    let mut claims = vec![claim("a", 1, 1, LIVE), claim("b", 1, 2, LIVE)];
    for claim in &mut claims {
        claim.claim.serving = Serving::Many;
    }
    let merged = merge(parts(claims));
    for id in ["a", "b"] {
        assert_eq!(session(&merged, id).verdict, LIVE);
        assert!(session(&merged, id).is_owner_shared);
        assert!(session(&merged, id).terminal_process().is_none());
        assert!(session(&merged, id).is_detached());
    }
}

#[test]
fn a_sub_agent_lives_as_its_parent_does() {
    for (parent, child) in [
        (
            LIVE,
            Verdict::Live(LiveBecause::Parent, Confidence::Consistent),
        ),
        (GONE, Verdict::Exited(ExitedBecause::Parent)),
        (OTHER, Verdict::Unknown(UnknownBecause::Parent)),
    ] {
        let mut parts = parts(vec![claim("a", 1, 1, parent), claim("kid", 1, 2, LIVE)]);
        let mut kid = sketch("kid");
        kid.parent = Some(SessionId::parse("a").unwrap());
        parts.sketches = boxed([kid]);
        let merged = merge(parts);
        assert_eq!(
            session(&merged, "a").verdict,
            parent,
            "not superseded by its child"
        );
        assert_eq!(session(&merged, "kid").verdict, child);
    }
}

#[test]
fn a_provisional_id_is_no_session_once_its_process_has_exited() {
    let mut provisional = sketch("a");
    provisional.is_provisional = true;
    for (verdict, count) in [(LIVE, 1), (GONE, 0), (OTHER, 1)] {
        let mut parts = parts(vec![claim("a", 1, 1, verdict)]);
        parts.sketches = boxed([provisional.clone()]);
        assert_eq!(merge(parts).sessions.len(), count, "{verdict:?}");
    }
}

#[test]
fn an_unclaimed_session_has_exited_in_a_complete_view() {
    let mut all_seen = parts(Vec::new());
    all_seen.sketches = boxed([sketch("a")]);
    let merged = merge(all_seen);
    assert_eq!(
        session(&merged, "a").verdict,
        Verdict::Exited(ExitedBecause::NoProcess)
    );
    let mut part_seen = parts(Vec::new());
    part_seen.fully_seen_homes.clear();
    part_seen.sketches = boxed([sketch("a")]);
    let merged = merge(part_seen);
    assert_eq!(
        session(&merged, "a").verdict,
        Verdict::Unknown(UnknownBecause::IncompleteView)
    );
}

#[test]
fn a_process_without_a_session_keeps_the_dead_of_its_directory_open() {
    let stale = |exclusivity| {
        let mut stale = claim("a", 9, 1, GONE);
        stale.claim.exclusivity = exclusivity;
        let mut parts = parts(vec![stale]);
        parts.sketches = boxed([sketch("a"), sketch("unclaimed")]);
        parts.processes = vec![agent_process(7, Role::Session)];
        merge(parts)
    };
    let may = Verdict::Unknown(UnknownBecause::MayBeServedBy(Pid::new(7).unwrap()));
    let shared = stale(Exclusivity::Shared);
    assert_eq!(session(&shared, "a").verdict, may);
    assert_eq!(session(&shared, "unclaimed").verdict, may);
    assert_eq!(shared.unattributed.len(), 1);
    let exclusive = stale(Exclusivity::Exclusive);
    assert_eq!(session(&exclusive, "a").verdict, GONE);
}

#[test]
fn what_one_process_left_a_process_without_a_session_may_have_resumed() {
    let with = |others: &[i32]| {
        let mut claims = vec![claim("a", 1, 1, LIVE), claim("b", 1, 2, LIVE)];
        for claim in &mut claims {
            claim.claim.exclusivity = Exclusivity::Shared;
        }
        let mut parts = parts(claims);
        parts.sketches = boxed([sketch("a"), sketch("b")]);
        let pids = [1].iter().chain(others);
        parts.processes = pids.map(|pid| agent_process(*pid, Role::Session)).collect();
        merge(parts)
    };
    let may = Verdict::Unknown(UnknownBecause::MayBeServedBy(Pid::new(7).unwrap()));
    let both = with(&[7]);
    assert_eq!(session(&both, "a").verdict, may);
    assert!(session(&both, "a").superseded_by.is_none());
    assert_eq!(session(&both, "b").verdict, LIVE);
    let alone = with(&[]);
    let superseded = Verdict::Exited(ExitedBecause::Superseded);
    assert_eq!(session(&alone, "a").verdict, superseded);
    // What a process left it does not get back when its later session ends.
    let mut ended = claim("b", 1, 2, Verdict::Exited(ExitedBecause::Released));
    ended.claim.subject = Subject::Released;
    ended.claim.ended_by = Pid::new(1).ok();
    let mut left = claim("a", 1, 1, LIVE);
    left.claim.exclusivity = Exclusivity::Shared;
    let mut parts = parts(vec![left, ended]);
    parts.sketches = boxed([sketch("a"), sketch("b")]);
    parts.processes = vec![agent_process(1, Role::Session)];
    assert_eq!(session(&merge(parts), "a").verdict, superseded);
}

#[test]
fn launchers_hosts_and_auxiliaries_are_no_processes_without_a_session() {
    let mut parts = parts(Vec::new());
    parts.sketches = boxed([sketch("a")]);
    parts.processes = vec![
        agent_process(7, Role::Launcher),
        agent_process(8, Role::Host),
        agent_process(9, Role::Auxiliary),
    ];
    parts.now_ms = T + 60_000;
    let merged = merge(parts);
    assert!(merged.unattributed.is_empty());
    assert_eq!(
        session(&merged, "a").verdict,
        Verdict::Exited(ExitedBecause::NoProcess)
    );
}

#[test]
fn until_a_launcher_has_started_the_agent_that_may_serve_what_was_resumed() {
    let at = |since_ms: i64, below: &[AgentProcess]| {
        let mut parts = parts(vec![claim("locked", 9, 1, GONE)]);
        parts.sketches = boxed([sketch("a"), sketch("locked")]);
        parts.processes = vec![agent_process(7, Role::Launcher)];
        parts.processes.extend_from_slice(below);
        parts.now_ms = T + since_ms;
        let merged = merge(parts);
        assert!(merged.unattributed.is_empty());
        ["a", "locked"].map(|id| session(&merged, id).verdict)
    };
    let may = Verdict::Unknown(UnknownBecause::MayBeServedBy(Pid::new(7).unwrap()));
    let none = Verdict::Exited(ExitedBecause::NoProcess);
    // An exclusive claim that is stale excludes all but what its arguments name.
    assert_eq!(at(300, &[]), [may, GONE]);
    assert_eq!(at(60_000, &[]), [none, GONE]);
    let mut started = agent_process(8, Role::Host);
    started.process.ppid = Pid::new(7).ok();
    assert_eq!(at(300, &[started]), [none, GONE]);
}

fn born(session: &str, at_s: i64) -> Sketch {
    Sketch {
        unclaimed: Unclaimed::Owner,
        born_at_ms: Some(T + at_s * 1_000),
        ..sketch(session)
    }
}

/// A process of pi, in a terminal that was last used `used_s` after it began.
fn pi_process(pid: i32, used_s: Option<i64>) -> AgentProcess {
    let mut recorded = RecordedProcess::new(pid, 1_000, T).cwd("/w").tty(136, 3);
    if let Some(used_s) = used_s {
        recorded = recorded.terminal_use(TerminalUse {
            no_input_since_ms: T + used_s * 1_000,
            no_output_since_ms: T + used_s * 1_000,
            is_noted: true,
        });
    }
    AgentProcess {
        process: recorded.process,
        details: std::sync::Arc::new(recorded.details),
        ..agent_process(pid, Role::Session)
    }
}

fn serves(merged: &Merged, id: &str) -> (&'static str, Option<i32>) {
    (session(merged, id).verdict.reason(), owner_of(merged, id))
}

#[test]
fn a_session_that_was_touched_is_live_only_where_the_terminal_was_used_since() {
    let with = |used_s| {
        let mut parts = parts(Vec::new());
        parts.sketches = boxed([born("a", 60)]);
        parts.processes = vec![pi_process(7, used_s)];
        merge(parts)
    };
    assert_eq!(serves(&with(Some(70)), "a"), ("terminal", Some(7)));
    let unknown = with(None);
    assert_eq!(serves(&unknown, "a"), ("may-be-served-by", None));
    assert_eq!(unknown.unattributed[0].candidates.len(), 1);
    assert_eq!(serves(&with(Some(20)), "a"), ("may-be-served-by", None));
}

#[test]
fn of_two_processes_in_one_directory_none_gets_the_session_of_the_other() {
    let mut parts = parts(Vec::new());
    parts.sketches = boxed([born("a", 60), born("b", 70)]);
    parts.processes = vec![pi_process(7, Some(80)), pi_process(8, Some(80))];
    let both = merge(parts);
    for id in ["a", "b"] {
        assert_eq!(serves(&both, id), ("may-be-served-by", None));
    }
    assert_eq!(both.unattributed.len(), 2);
}

#[test]
fn a_session_that_arguments_name_is_live_also_where_an_earlier_process_died_in_it() {
    const ID: &str = "01a21ed1-196e-751e-8935-aa73eac20001";
    let mut parts = parts(vec![claim(ID, 3, -900, GONE)]);
    parts.sketches = boxed([sketch(ID)]);
    let recorded = RecordedProcess::new(7, 1_000, T)
        .cwd("/w")
        .exe("/opt/codex")
        .argv(&["codex", "resume", ID]);
    parts.processes = vec![AgentProcess {
        process: recorded.process,
        details: std::sync::Arc::new(recorded.details),
        ..agent_process(7, Role::Session)
    }];
    parts.now_ms = T + 5_000;
    assert_eq!(serves(&merge(parts), ID), ("arguments", Some(7)));
}

#[test]
fn a_shared_hosts_session_gets_the_only_client_or_says_that_several_are_possible() {
    let held = || {
        let mut held = claim("a", 1, 1, LIVE);
        held.claim.serving = Serving::Many;
        let mut parts = parts(vec![held]);
        let mut born = sketch("a");
        born.unclaimed = Unclaimed::Client;
        born.born_at_ms = Some(T + 1_000);
        parts.sketches = boxed([born]);
        parts
    };
    let mut one = held();
    one.processes = vec![agent_process(7, Role::Session)];
    let merged = merge(one);
    let shown = session(&merged, "a");
    assert_eq!(shown.client.as_ref().unwrap().pid.get(), 7);
    assert_eq!(shown.verdict, LIVE);
    assert!(!shown.is_detached());
    let mut two = held();
    two.processes = vec![
        agent_process(7, Role::Session),
        agent_process(8, Role::Session),
    ];
    let merged = merge(two);
    let open = session(&merged, "a");
    assert!(open.client.is_none() && open.is_client_ambiguous && !open.is_detached());
    assert_eq!(merged.unattributed.len(), 2);
    assert_eq!(
        merged.unattributed[0].candidates,
        std::slice::from_ref(&open.key.session)
    );
}

#[test]
fn a_session_in_a_terminal_of_its_own_gets_no_client() {
    let mut owned = claim("a", 1, 1, LIVE);
    let recorded = RecordedProcess::new(1, 1_000, T).tty(136, 3);
    owned.process = Some(Box::new(recorded.process));
    let mut parts = parts(vec![owned]);
    let mut born = sketch("a");
    born.unclaimed = Unclaimed::Client;
    born.born_at_ms = Some(T + 1_000);
    parts.sketches = boxed([born]);
    parts.processes = vec![agent_process(7, Role::Session)];
    let merged = merge(parts);
    assert!(session(&merged, "a").client.is_none());
    assert_eq!(merged.unattributed.len(), 1);
}

/// Process 8 serves the session, and is a child of process 7, in a terminal.
fn shown_by_parent(verdict: Verdict, client: RecordedProcess) -> Parts {
    let mut parts = parts(vec![claim("a", 8, 1, verdict)]);
    let mut shown = sketch("a");
    shown.client = Some(Box::new(KnownClient {
        process: client.process,
        evidence: Evidence::new(
            EvidenceKind::Lock,
            None,
            "client: process 7 started it".to_owned(),
        ),
    }));
    parts.sketches = boxed([shown]);
    parts.processes = vec![agent_process(7, Role::Client), agent_process(8, Role::Host)];
    parts
}

#[test]
fn a_client_that_is_known_for_certain_shows_the_session_while_that_is_live() {
    let client = || RecordedProcess::new(7, 1_000, T).tty(136, 3);
    let merged = merge(shown_by_parent(LIVE, client()));
    let shown = session(&merged, "a");
    assert_eq!(shown.verdict, LIVE);
    assert_eq!(owner_of(&merged, "a"), Some(8));
    assert_eq!(shown.client.as_ref().unwrap().pid.get(), 7);
    assert_eq!(shown.terminal_process().unwrap().pid.get(), 7);
    assert!(!shown.is_detached());
    assert_eq!(shown.evidence.len(), 2);
    // It has a session, so it needs none.
    assert!(merged.unattributed.is_empty());
}

#[test]
fn the_client_of_a_session_that_is_gone_is_a_process_without_a_session() {
    let merged = merge(shown_by_parent(GONE, RecordedProcess::new(7, 1_000, T)));
    let gone = session(&merged, "a");
    assert_eq!(gone.verdict, GONE);
    assert!(gone.client.is_none());
    assert_eq!(merged.unattributed.len(), 1);
    assert_eq!(merged.unattributed[0].process.process.pid.get(), 7);
}

#[test]
fn a_client_that_has_exited_or_is_the_owner_is_none() {
    let mut zombie = RecordedProcess::new(7, 1_000, T);
    zombie.process.is_exited = true;
    assert!(
        session(&merge(shown_by_parent(LIVE, zombie)), "a")
            .client
            .is_none()
    );
    let owner = RecordedProcess::new(8, 1_000, T);
    assert!(
        session(&merge(shown_by_parent(LIVE, owner)), "a")
            .client
            .is_none()
    );
}

fn any_claim() -> impl Strategy<Value = JudgedClaim> {
    let verdict = prop::sample::select(vec![LIVE, LIKELY, GONE, OTHER]);
    (
        prop::sample::select(vec!["a", "b", "c"]),
        1..4_i32,
        0..4_i64,
        verdict,
    )
        .prop_map(|(session, pid, at_s, verdict)| claim(session, pid, at_s, verdict))
}

proptest! {
    #[test]
    fn the_order_of_claims_does_not_matter(
        claims in prop::collection::vec(any_claim(), 0..8)
    ) {
        let mut turned = claims.clone();
        turned.reverse();
        let forward = merge(parts(claims));
        let backward = merge(parts(turned));
        prop_assert_eq!(format!("{forward:?}"), format!("{backward:?}"));
    }

    #[test]
    fn a_process_that_serves_one_has_one_live_session(
        claims in prop::collection::vec(any_claim(), 0..8)
    ) {
        let merged = merge(parts(claims));
        let mut owners: Vec<_> = merged
            .sessions
            .iter()
            .filter_map(|session| session.owner.as_ref())
            .map(|owner| owner.pid)
            .collect();
        let count = owners.len();
        owners.sort_unstable();
        owners.dedup();
        prop_assert_eq!(count, owners.len());
    }
}
