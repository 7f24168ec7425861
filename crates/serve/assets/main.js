// The page: connects the parts.

import { announce, element, setAttribute, setChildren, setText, setTexts } from "./dom.js";
import { listen, setToken, takeToken } from "./connection.js";
import { STATES, apply, model, stateOf } from "./model.js";
import { age } from "./words.js";
import { allow } from "./acts.js";
import { names, rowAt, showList, tick } from "./list.js";
import { loadTimeline, showTimeline } from "./timeline.js";
import { loadUsage } from "./usage.js";

const TICK_MS = 1000;
const TIMELINE_EVERY_MS = 60000;
const USAGE_EVERY_MS = 120000;
const VIEW = "whosup-view";

const at = (id) => document.getElementById(id);
const connection = { state: "connecting", why: "", since: Date.now() };
let isDrawing = false;

/// Draws once for all changes that come together.
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  // A hidden tab gets no animation frames, but its title must be up to date.
  if (document.hidden) setTimeout(draw, 50);
  else requestAnimationFrame(draw);
}

function draw() {
  isDrawing = false;
  const now = Date.now();
  const view = { words: at("search").value.toLowerCase().split(/\s+/).filter(Boolean), agent: at("agent").value, group: at("group").value };
  setText(at("host"), model.host);
  showAgents();
  const shown = showList(at("list"), view, now);
  showSummary();
  showNotice(shown, view);
  showProblems();
  showTimeline(at("timeline"), at("tracks"), Number(at("span").value), now);
  showConnection(now);
}

function showAgents() {
  const select = at("agent");
  const agents = [...new Set([...model.sessions.values()].map((session) => session.agent))].sort();
  const known = new Map([...select.options].map((option) => [option.value, option]));
  if (select.value && !agents.includes(select.value)) agents.push(select.value);
  setChildren(select, [known.get(""), ...agents.map((agent) => known.get(agent) ?? element("option", { value: agent }, agent))]);
}

function showSummary() {
  const counts = new Map();
  for (const session of model.sessions.values()) {
    if (session.parent_session_id) continue;
    counts.set(stateOf(session), (counts.get(stateOf(session)) ?? 0) + 1);
  }
  const place = at("summary");
  const known = new Map([...place.children].map((child) => [child.dataset.state, child]));
  const shown = STATES.filter(([state]) => counts.get(state));
  setChildren(place, shown.map(([state, label]) => {
    const count = known.get(state) ?? element("span", { "data-state": state }, element("b", {}), " ", element("span", {}, label.toLowerCase()));
    setText(count.firstElementChild, String(counts.get(state)));
    return count;
  }));
  showWaiting(counts.get("waiting") ?? 0);
}

/// The title and the icon show how many sessions wait.
function showWaiting(count) {
  const title = [count ? `(${count})` : "", "whosup", model.host].filter(Boolean).join(" ");
  if (document.title !== title) document.title = title;
  const number = count > 9 ? "9+" : String(count);
  const badge = count ? `<circle cx="22" cy="22" r="10" fill="#b3261e"/><text x="22" y="27" font-size="14" font-family="sans-serif" font-weight="bold" text-anchor="middle" fill="#fff">${number}</text>` : "";
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#24507a"/><path d="M7 11l4 10 5-10 5 10 4-10" fill="none" stroke="#fff" stroke-width="3"/>${badge}</svg>`;
  setAttribute(at("icon"), "href", `data:image/svg+xml,${encodeURIComponent(drawing)}`);
}

function showNotice(shown, view) {
  const place = at("notice");
  const isFiltered = view.words.length > 0 || view.agent !== "";
  let key = "none";
  if (connection.state === "refused") key = "refused";
  else if (!model.has) key = connection.state === "lost" ? "unreached" : "none";
  else if (shown === 0) key = isFiltered ? "filtered" : "empty";
  place.hidden = key === "none";
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  setChildren(place, NOTICES[key]?.() ?? []);
}

const code = (text) => element("code", {}, text);
const NOTICES = {
  empty: () => [
    element("h2", {}, "No session is live"),
    element("p", {}, "Start an agent, such as ", code("claude"), " or ", code("codex"), ", in any terminal: it appears here at once. Sessions that died in the last day would be here too."),
    element("p", {}, "To hear of each phase the moment it begins, install hooks: ", code("whosup hooks install"), ". What is on disk: ", code("whosup list --all"), "."),
  ],
  filtered: () => [
    element("h2", {}, "Nothing fits"),
    element("p", {}, "No session has these words in its title, directory, agent or id. ", element("button", { type: "button", onclick: clearFilters }, "Show all sessions")),
  ],
  unreached: () => [
    element("h2", {}, "The server does not answer"),
    element("p", {}, "It may have ended. ", code("whosup serve"), " starts it again; this page connects by itself."),
  ],
  refused: () => [element("h2", {}, "This page needs the token"), element("p", {}, "Run ", code("whosup serve --open"), ", or open the address that ", code("whosup serve --status"), " prints. You can also put the token here:"), tokenForm()],
};

function tokenForm() {
  const field = element("input", { type: "password", name: "token", autocomplete: "off", required: true, "aria-label": "Token" });
  const form = element("form", {}, field, " ", element("button", { type: "submit" }, "Connect"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(field.value.trim().replace(/^.*token=/, ""));
    at("notice").dataset.key = "";
    start();
  });
  return form;
}

function showProblems() {
  const place = at("problems");
  place.hidden = model.problems.length === 0;
  if (place.hidden) return;
  const list = place.querySelector("ul") ?? element("ul", {});
  const summary = place.querySelector("summary") ?? element("summary", {});
  if (!place.firstElementChild) place.append(element("details", {}, summary, list));
  const count = model.problems.length;
  setText(summary, count === 1 ? "1 thing could not be read" : `${count} things could not be read`);
  while (list.children.length > count) list.lastElementChild.remove();
  for (const [at, { agent, path, message }] of model.problems.entries()) {
    const line = list.children[at] ?? list.appendChild(element("li", {}));
    setTexts(line, [agent, path, message].filter(Boolean), ": ");
  }
}

function showConnection(now) {
  const isStale = connection.state !== "open" && model.has;
  const words = { connecting: "Connecting…", open: "Live", lost: "Reconnecting", refused: "Not permitted" }[connection.state];
  const place = at("connection");
  setAttribute(place, "data-state", connection.state);
  // Announced once, not every second.
  setAttribute(place, "aria-live", isStale ? "off" : "polite");
  setText(place, isStale ? `${words}; what is shown is ${age(connection.since, now)} old` : words);
  place.title = connection.why;
  document.body.classList.toggle("stale", isStale);
}

function start() {
  connection.state = "connecting";
  listen(
    (change) => {
      const said = apply(change);
      if (said) announce(said);
      drawSoon();
    },
    (state, why = "", actions = "") => {
      if (state === "open") allow(actions);
      // What is shown is as old as the last moment that the stream was open.
      if ((state === "open") !== (connection.state === "open")) connection.since = Date.now();
      if (state === "lost" && connection.state === "open") announce("The connection is lost. Reconnecting.");
      if (state === "refused" && model.has) announce("The token is not valid any more. What is shown is old; enter the new token.");
      Object.assign(connection, { state, why });
      if (state === "open") loadTimeline(Number(at("span").value)).then(drawSoon);
      drawSoon();
    },
  );
}

function clearFilters() {
  at("search").value = "";
  at("agent").value = "";
  keepView();
  drawSoon();
  at("search").focus();
}

/// The choices are kept for this tab.
function keepView() {
  sessionStorage.setItem(VIEW, JSON.stringify({ group: at("group").value, span: at("span").value }));
}

function moveFocus(step) {
  const shown = names();
  const now = shown.indexOf(document.activeElement?.closest?.(".row")?.querySelector(".name"));
  const next = now < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.max(0, Math.min(shown.length - 1, now + step));
  shown[next]?.focus();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches?.("input, select, textarea");
  if (event.key === "Escape") {
    if (event.target === at("search")) event.target.blur();
    else rowAt(event.target)?.toggle(false);
  } else if (isTyping) return;
  else if (event.key === "/") {
    event.preventDefault();
    at("search").focus();
  } else if (event.key === "j" || event.key === "ArrowDown") moveWith(event, 1);
  else if (event.key === "k" || event.key === "ArrowUp") moveWith(event, -1);
  else if (event.key === "c") rowAt(event.target)?.command.click();
}

function moveWith(event, step) {
  if (event.key.startsWith("Arrow") && !event.target.matches?.(".name")) return;
  event.preventDefault();
  moveFocus(step);
}

try {
  const view = JSON.parse(sessionStorage.getItem(VIEW) ?? "{}");
  for (const id of ["group", "span"]) if (view[id]) at(id).value = view[id];
} catch {
  sessionStorage.removeItem(VIEW);
}
at("filters").addEventListener("submit", (event) => event.preventDefault());
at("filters").addEventListener("input", () => (keepView(), drawSoon()));
at("span").addEventListener("change", () => (keepView(), loadTimeline(Number(at("span").value)).then(drawSoon)));
document.addEventListener("keydown", key);
document.addEventListener("visibilitychange", drawSoon);
addEventListener("hashchange", () => {
  if (takeToken()) location.reload();
});
setInterval(() => {
  if (document.hidden || !model.has) return;
  tick(Date.now());
  showConnection(Date.now());
}, TICK_MS);
setInterval(() => {
  if (!document.hidden && connection.state === "open") loadTimeline(Number(at("span").value)).then(drawSoon);
}, TIMELINE_EVERY_MS);
function countUsage() {
  const isOpen = at("usage").firstElementChild.open;
  if (isOpen && !document.hidden && connection.state === "open") loadUsage(at("sums"), at("usage-by").value);
}
at("usage").firstElementChild.addEventListener("toggle", countUsage);
at("usage-by").addEventListener("change", countUsage);
setInterval(countUsage, USAGE_EVERY_MS);
takeToken();
start();
