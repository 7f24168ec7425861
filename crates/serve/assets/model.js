// The state: a snapshot, updated by each change. It does not use the document, so that it can be
// tested alone.

export const model = {
  host: "",
  asOf: null,
  has: false,
  sessions: new Map(),
  unattributed: [],
  problems: [],
  /// The resources of processes: the last samples of each session.
  resources: new Map(),
};

const SAMPLES_MAX = 60;

export function keyOf(session) {
  return `${session.agent}\u0000${session.session_id}\u0000${session.home ?? ""}`;
}

/// Applies a change; returns a transition for listeners, if there is one.
export function apply(change) {
  if (change.as_of) model.asOf = Date.parse(change.as_of);
  switch (change.kind) {
    case "snapshot":
      model.has = true;
      model.host = change.host?.hostname ?? "";
      model.sessions = new Map(change.sessions.map((session) => [keyOf(session), session]));
      model.unattributed = change.unattributed;
      model.problems = change.problems;
      return null;
    case "added":
      model.sessions.set(keyOf(change.session), change.session);
      return noteworthy(null, change.session);
    case "removed":
      model.sessions.delete(keyOf(change.session));
      return null;
    case "changed": {
      const key = keyOf(change);
      const before = model.sessions.get(key);
      if (!before) return null;
      const after = { ...before };
      for (const [field, { new: value }] of Object.entries(change.changes)) after[field] = value;
      model.sessions.set(key, after);
      return noteworthy(before, after);
    }
    case "unattributed":
    case "problems":
      model[change.kind] = change[change.kind];
      return null;
    case "resources":
      sample(change.sessions);
      return null;
    default:
      return null;
  }
}

function sample(sessions) {
  const kept = new Map();
  for (const session of sessions) {
    const key = keyOf(session);
    // The resources of a daemon that serves several sessions belong to none of them.
    if (!session.resources.tree) continue;
    const { cpu_percent: cpu, rss_bytes: memory } = session.resources.tree;
    const samples = model.resources.get(key) ?? [];
    kept.set(key, [...samples, { cpu, memory }].slice(-SAMPLES_MAX));
  }
  model.resources = kept;
}

function noteworthy(before, after) {
  const state = stateOf(after);
  if (before && stateOf(before) === state) return null;
  const name = nameOf(after);
  if (state === "waiting") return `${name} waits for you`;
  if (state === "died") return `${name} died`;
  return null;
}

/// The states in which sessions are shown, in this order.
export const STATES = [
  ["waiting", "Waiting for you"],
  ["working", "Working"],
  ["idle", "Idle"],
  ["died", "Died"],
  ["unknown", "Unknown"],
  ["ended", "Ended"],
];

export function stateOf(session) {
  if (session.liveness === "unknown") return "unknown";
  if (session.liveness === "exited") return session.orphan ? "died" : "ended";
  if (session.phase === "waiting") return "waiting";
  if (session.phase === "working") return "working";
  return "idle";
}

/// The start of its state, in milliseconds since 1970.
export function sinceOf(session) {
  const state = stateOf(session);
  const dates = {
    died: [session.ended_at, session.last_activity_at],
    ended: [session.ended_at, session.last_activity_at],
    unknown: [session.last_activity_at, session.phase_since],
  }[state] ?? [session.phase_since, session.last_activity_at, session.started_at];
  const date = dates.find(Boolean);
  return date ? Date.parse(date) : null;
}

export function nameOf(session) {
  return session.title || session.session_id.slice(0, 8);
}

export function projectOf(session) {
  return session.work_dir ?? "";
}

/// Sub-agents are shown with the session that started them.
export function parentOf(session) {
  if (!session.parent_session_id) return null;
  return keyOf({ ...session, session_id: session.parent_session_id });
}

/// Live sessions that work in one directory.
export function sharedDirectories(sessions) {
  const seen = new Map();
  for (const session of sessions) {
    if (session.liveness !== "live" || !session.work_dir || session.parent_session_id) continue;
    seen.set(session.work_dir, (seen.get(session.work_dir) ?? 0) + 1);
  }
  return new Set([...seen].filter(([, count]) => count > 1).map(([directory]) => directory));
}

/// Waiting sessions come oldest first, all others newest first.
export function inOrder(sessions) {
  const at = (session) => sinceOf(session) ?? 0;
  return [...sessions].sort((one, other) => {
    const states = STATES.map(([state]) => state);
    const byState = states.indexOf(stateOf(one)) - states.indexOf(stateOf(other));
    if (byState !== 0) return byState;
    const byTime = stateOf(one) === "waiting" ? at(one) - at(other) : at(other) - at(one);
    return byTime || keyOf(one).localeCompare(keyOf(other));
  });
}

export function matches(session, words, agent) {
  if (agent && session.agent !== agent) return false;
  const fields = [session.title, session.work_dir, session.agent, session.session_id, session.model, session.git_branch, session.waiting_on?.text];
  const text = fields.filter(Boolean).join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}
