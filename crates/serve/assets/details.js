// Evidence, facts, last messages and actions of one session, asked for when they are shown.

import { announce, copyButton, element, setChildren, setText } from "./dom.js";
import { ask, post } from "./connection.js";
import { stateOf } from "./model.js";
import { clock, directory, shellLine } from "./words.js";

const MESSAGES = 6;
const TEXT_MAX = 4000;

/// What the server lets this page do.
let allowed = [];

export function allow(actions) {
  allowed = (actions ?? "").split(", ");
}

function path(session, rest = "") {
  const name = [session.agent, session.session_id].map(encodeURIComponent).join("/");
  const home = session.home ? `home=${encodeURIComponent(session.home)}` : "";
  const [route, query] = rest.split("?");
  const asked = [query, home].filter(Boolean).join("&");
  return `api/v1/sessions/${name}${route}${asked ? `?${asked}` : ""}`;
}

export function details(session) {
  const why = element("div", { class: "why" }, element("p", {}, "Looking…"));
  const messages = element("div", { class: "messages" });
  const facts = element("dl", { class: "all" });
  const actions = element("p", { class: "actions" });
  const root = element(
    "div",
    { class: "details" },
    actions,
    element("section", {}, element("h4", {}, "Why"), why),
    element("section", {}, element("h4", {}, "Last messages"), messages),
    element("section", {}, element("h4", {}, "Facts"), facts),
  );
  let shown = "";
  const update = (now) => {
    showFacts(facts, now);
    showActions(actions, now);
    // The verdict or the phase is another one: so are the evidence and the messages.
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

function showActions(place, session) {
  const key = [session.liveness, shellLine(session.attach), shellLine(session.resume)].join();
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const buttons = [copyButton("Copy id", session.session_id)];
  if (session.attach) buttons.unshift(copyButton("Copy attach", shellLine(session.attach)));
  if (session.resume) {
    const line = shellLine(session.resume);
    buttons.unshift(copyButton("Copy resume", line));
    if (session.resume.trusted === false) {
      buttons.push(element("span", { class: "warning" }, "The resume command stands in a file of the agent's: read it before you run it. ", element("code", {}, line)));
    }
  }
  const state = stateOf(session);
  if (state === "died" || state === "ended") act(buttons, session, "dismiss", "Dismiss");
  if (state === "unknown") act(buttons, session, "end", "End");
  setChildren(place, buttons);
}

function act(buttons, session, action, label) {
  if (!allowed.includes(action)) return;
  const button = element("button", { type: "button", class: "act" }, label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      announce((await post(path(session, `/${action}`))).done);
    } catch (error) {
      announce(error.message);
      button.after(element("span", { class: "failed" }, error.message));
      button.disabled = false;
    }
  });
  buttons.push(button);
}
