// Evidence, facts, last messages and actions of one session, requested when they are shown.

import { acts } from "./acts.js";
import { ask, path } from "./connection.js";
import { element, setChildren, setText } from "./dom.js";
import { clock, directory } from "./words.js";

const MESSAGES = 6;
const TEXT_MAX = 4000;

export function details(session) {
  const why = element("div", { class: "why" }, element("p", {}, "Looking…"));
  const messages = element("div", { class: "messages" });
  const facts = element("dl", { class: "all" });
  const actions = acts();
  const root = element(
    "div",
    { class: "details" },
    actions.root,
    element("section", {}, element("h4", {}, "Why"), why),
    element("section", {}, element("h4", {}, "Last messages"), messages),
    element("section", {}, element("h4", {}, "Facts"), facts),
  );
  let shown = "";
  const update = (now) => {
    showFacts(facts, now);
    actions.update(now);
    // With another verdict or phase, evidence and messages are outdated.
    const state = [now.liveness, now.reason, now.phase, now.last_activity_at].join();
    if (state === shown) return;
    shown = state;
    load(why, path(now, "/why"), (answer) => sentences(answer.explanation));
    load(messages, path(now, `/messages?tail=${MESSAGES}`), (answer) => answer.messages.map(message));
  };
  update(session);
  return { root, update };
}

async function load(target, route, shownAs) {
  try {
    const shown = shownAs(await ask(route));
    setChildren(target, shown.length ? shown : [element("p", { class: "none" }, "There are none.")]);
  } catch (error) {
    setChildren(target, [element("p", { class: "failed" }, error.message)]);
  }
}

function sentences(lines) {
  return lines.map((line) => element("p", {}, line));
}

function message({ role, at, text }) {
  const when = at ? element("time", { datetime: at }, clock(Date.parse(at))) : null;
  const cut = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
  return element("div", { class: `message ${role}` }, element("p", { class: "speaker" }, role, " ", when), element("pre", { dir: "auto" }, cut));
}

function showFacts(list, session) {
  const owner = session.owner;
  const pane = session.pane;
  const facts = [
    ["Id", session.session_id],
    ["Answer", [session.liveness, session.reason, session.confidence].filter(Boolean).join(", ")],
    ["Process", owner ? `PID ${owner.pid}${owner.tty ? `, ${owner.tty}` : ""}` : null],
    ["Pane", pane ? [pane.host, pane.session, pane.window, pane.pane].filter(Boolean).join(" ") : null],
    ["Directory", session.work_dir],
    ["Model", session.model],
    ["Version", session.agent_version],
    ["Started", session.started_at],
    ["Last activity", session.last_activity_at],
    ["Transcript", directory(session.files?.transcript)],
    ["Home", session.home],
  ].filter(([, value]) => value);
  const known = new Map([...list.children].map((child) => [child.dataset.name, child]));
  setChildren(list, facts.map(([name, value]) => {
    const row = known.get(name) ?? element("div", { "data-name": name }, element("dt", {}, name), element("dd", {}));
    setText(row.lastElementChild, value);
    return row;
  }));
}
