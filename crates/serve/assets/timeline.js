// The last hours, from the event logs of hooks, and from the changes since this page was opened.

import { drawn, element, setChildren, setText } from "./dom.js";
import { ask } from "./connection.js";
import { model, nameOf, stateOf, keyOf } from "./model.js";
import { age, clock, directory } from "./words.js";

const HOUR_MS = 3600000;
const WIDTH = 1000;
const TRACKS_MAX = 20;
/// Sessions that cover less than this part of the time get no track.
const PART_MIN = 1 / 300;

let logged = [];

/// Requests the logs again.
export async function loadTimeline(hours) {
  try {
    logged = (await ask(`api/v1/timeline?since=${hours}h`)).sessions;
  } catch {
    logged = [];
  }
}

/// Draws one track for each session.
export function showTimeline(section, place, hours, now) {
  const from = now - hours * HOUR_MS;
  const tracks = tracksOf(from, now).slice(0, TRACKS_MAX);
  section.hidden = tracks.length === 0;
  if (section.hidden) return;
  const known = new Map([...place.children].map((child) => [child.dataset.key, child]));
  const shown = tracks.map((track) => {
    const row = known.get(track.key) ?? element("div", { class: "track-row", "data-key": track.key }, element("span", { class: "label" }), drawn("svg", { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img" }));
    setText(row.firstElementChild, track.name);
    row.firstElementChild.title = track.title;
    const drawing = row.lastElementChild;
    drawing.setAttribute("aria-label", `${track.name}: ${spoken(track.spans, from, now)}`);
    drawing.replaceChildren(...track.spans.map((span) => bar(span, from, now)));
    return row;
  });
  const axis = known.get("axis") ?? element("div", { class: "axis", "data-key": "axis" }, element("span", {}), element("span", {}), element("span", {}));
  [from, (from + now) / 2, now].forEach((at, index) => setText(axis.children[index], index === 2 ? "now" : clock(at)));
  setChildren(place, [...shown, axis]);
}

function tracksOf(from, now) {
  const sessions = new Map([...model.sessions.values()].map((session) => [`${session.agent} ${session.session_id}`, session]));
  const tracks = new Map();
  for (const one of logged) {
    const key = `${one.agent} ${one.session_id}`;
    const session = sessions.get(key);
    const spans = one.spans.map((span) => ({ phase: span.phase, from: Date.parse(span.from), until: span.until ? Date.parse(span.until) : null }));
    tracks.set(key, { key, spans, name: session ? nameOf(session) : one.session_id.slice(0, 8), title: directory(one.work_dir) });
  }
  for (const [key, session] of sessions) {
    if (session.parent_session_id) continue;
    const since = session.phase_since ? Date.parse(session.phase_since) : null;
    if (session.liveness !== "live" || since === null) continue;
    const track = tracks.get(key) ?? { key, spans: [], name: nameOf(session), title: directory(session.work_dir) };
    // The session itself knows the current state best.
    track.spans = track.spans.filter((span) => span.from < since).map((span) => ({ ...span, until: Math.min(span.until ?? since, since) }));
    track.spans.push({ phase: session.phase, from: since, until: null });
    tracks.set(key, track);
  }
  for (const track of tracks.values()) {
    const session = sessions.get(track.key);
    const last = track.spans.at(-1);
    // After the last report, nothing is known of a session that is not live.
    if (last && last.until === null && (!session || session.liveness !== "live")) last.until = last.phase === "ended" ? last.from : Math.min(now, session?.last_activity_at ? Math.max(last.from, Date.parse(session.last_activity_at)) : last.from);
    track.spans = track.spans.filter((span) => (span.until ?? now) > from && span.phase !== "ended");
  }
  const latest = (track) => Math.max(...track.spans.map((span) => span.until ?? now));
  const known = (track) => track.spans.reduce((sum, span) => sum + (span.until ?? now) - Math.max(span.from, from), 0);
  return [...tracks.values()].filter((track) => known(track) >= (now - from) * PART_MIN).sort((one, other) => latest(other) - latest(one) || one.name.localeCompare(other.name));
}

function bar(span, from, now) {
  const x = (at) => ((Math.max(at, from) - from) / (now - from)) * WIDTH;
  const start = x(span.from);
  const width = Math.max(2, x(span.until ?? now) - start);
  const title = drawn("title", {}, `${span.phase} from ${clock(span.from)}, ${age(span.from, span.until ?? now)}`);
  return drawn("rect", { x: start.toFixed(1), y: 0, width: width.toFixed(1), height: 10, class: span.phase }, title);
}

function spoken(spans, from, now) {
  const totals = new Map();
  for (const span of spans) totals.set(span.phase, (totals.get(span.phase) ?? 0) + (span.until ?? now) - Math.max(span.from, from));
  return [...totals].map(([phase, ms]) => `${phase} ${age(now - ms, now)}`).join(", ");
}
