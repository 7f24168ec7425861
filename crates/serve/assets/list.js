// The list: sections by state or by project, each with its rows.

import { element, setAttribute, setChildren, setText } from "./dom.js";
import { STATES, inOrder, keyOf, matches, model, parentOf, projectOf, sharedDirectories, stateOf } from "./model.js";
import { age, directory } from "./words.js";
import { Row } from "./row.js";

const rows = new Map();
const sections = new Map();

/// Shows the sessions that match; returns how many are shown.
export function showList(place, { words, agent, group }, now) {
  const all = inOrder(model.sessions.values());
  const shared = sharedDirectories(all);
  const children = new Map();
  for (const session of all) {
    const parent = parentOf(session);
    if (parent && model.sessions.has(parent)) children.set(parent, [...(children.get(parent) ?? []), session]);
  }
  const isChild = (session) => model.sessions.has(parentOf(session) ?? "");
  const fits = (session) => matches(session, words, agent);
  const tops = all.filter((session) => !isChild(session) && (fits(session) || (children.get(keyOf(session)) ?? []).some(fits)));
  const isGroupedByState = group === "state";
  const show = (session) => rowOf(session, { isGroupedByState, shared, children: children.get(keyOf(session))?.length, now });
  const groups = isGroupedByState ? byState(tops) : byProject(tops);
  const shown = groups.map(([name, label, sessions]) => {
    const made = sectionOf(name);
    setAttribute(made.root, "data-state", isGroupedByState ? name : "project");
    setText(made.title, label);
    setText(made.count, String(sessions.length));
    setChildren(made.list, sessions.map((session) => show(session).root));
    return made.root;
  });
  const processes = agent || words.length ? [] : model.unattributed;
  if (processes.length) shown.push(unattributed(processes, now));
  setChildren(place, shown);
  for (const key of [...rows.keys()]) if (!model.sessions.has(key)) rows.delete(key);
  return tops.length + processes.length;
}

function byState(sessions) {
  const groups = STATES.map(([state, label]) => [state, label, sessions.filter((session) => stateOf(session) === state)]);
  return groups.filter(([, , members]) => members.length);
}

function byProject(sessions) {
  const groups = new Map();
  for (const session of sessions) {
    const project = projectOf(session);
    groups.set(project, [...(groups.get(project) ?? []), session]);
  }
  return [...groups].map(([project, members]) => [`project ${project}`, directory(project) || "No directory", members]);
}

function rowOf(session, shownAs) {
  const key = keyOf(session);
  const row = rows.get(key) ?? new Row(key);
  rows.set(key, row);
  row.update(session, shownAs);
  return row;
}

function sectionOf(name) {
  let made = sections.get(name);
  if (!made) {
    const title = element("span", {});
    const count = element("span", { class: "count" });
    const list = element("ul", { role: "list" });
    const root = element("section", { class: "group" }, element("h2", {}, title, " ", count), list);
    made = { root, title, count, list };
    sections.set(name, made);
  }
  return made;
}

/// Processes of agents without a known session.
function unattributed(processes, now) {
  const made = sectionOf("unattributed");
  setAttribute(made.root, "data-state", "unattributed");
  setText(made.title, "Processes without a known session");
  setText(made.count, String(processes.length));
  const known = new Map([...made.list.children].map((child) => [child.dataset.pid, child]));
  setChildren(made.list, processes.map((one) => {
    const key = `${one.pid} ${one.start_stamp}`;
    const row = known.get(key) ?? element("li", { class: "process", "data-pid": key }, element("span", { class: "age" }), element("span", {}));
    setText(row.firstElementChild, age(one.started_at ? Date.parse(one.started_at) : null, now));
    const candidates = one.candidates?.length ? `may serve ${one.candidates.length === 1 ? "one session" : `one of ${one.candidates.length} sessions`}` : null;
    setText(row.lastElementChild, [one.agent, `PID ${one.pid}`, directory(one.work_dir), candidates, one.reason].filter(Boolean).join(" · "));
    return row;
  }));
  return made.root;
}

/// Updates ages, which change without an event.
export function tick(now) {
  for (const row of rows.values()) if (row.session) row.tick(now);
}

/// The buttons of the visible rows, in order.
export function names() {
  return [...document.querySelectorAll("#list .name")];
}

export function rowAt(target) {
  const root = target?.closest?.(".row");
  return root ? [...rows.values()].find((row) => row.root === root) : undefined;
}
