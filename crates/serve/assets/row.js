// One session in the list. A row is made once and then updated in place.

import { copyButton, drawn, element, setAttribute, setText, setTexts } from "./dom.js";
import { model, nameOf, sinceOf, stateOf } from "./model.js";
import { age, bytes, directory, question, reason, shellLine, tokens } from "./words.js";
import { details } from "./details.js";

const STATE_WORDS = {
  waiting: "waits", working: "works", idle: "idle", died: "died", unknown: "unknown", ended: "ended",
};

export class Row {
  constructor(key) {
    this.key = key;
    this.session = null;
    this.details = null;
    this.state = element("span", { class: "state" });
    this.age = element("time", { class: "age" });
    this.name = element("button", { type: "button", class: "name", "aria-expanded": "false", onclick: () => this.toggle() });
    this.marks = element("span", { class: "marks" });
    this.ask = element("p", { class: "ask" });
    this.facts = element("p", { class: "facts" });
    this.context = element("span", { class: "context", hidden: true });
    this.bar = element("span", { class: "bar" });
    this.percent = element("span", { class: "percent" });
    this.context.append(element("span", { class: "track" }, this.bar), this.percent);
    this.line = drawn("polyline", { points: "" });
    this.use = element("span", {});
    this.resources = element(
      "span",
      { class: "resources", hidden: true },
      drawn("svg", { viewBox: "0 0 60 20", preserveAspectRatio: "none", "aria-hidden": "true" }, this.line),
      this.use,
    );
    this.command = copyButton("", () => this.commandText, { class: "copy command", hidden: true });
    this.commandText = "";
    this.root = element(
      "li",
      { class: "row" },
      element("div", { class: "when" }, this.state, this.age),
      element("div", { class: "what" }, element("h3", {}, this.name, this.marks), this.ask, this.facts),
      element("div", { class: "gauges" }, this.context, this.resources),
      this.command,
    );
  }

  /// Shows the current session. `shared` are the directories of several live sessions.
  update(session, { isGroupedByState, shared, children, now }) {
    this.session = session;
    const state = stateOf(session);
    setAttribute(this.root, "data-state", state);
    setAttribute(this.root, "data-id", session.session_id);
    this.root.classList.toggle("child", Boolean(session.parent_session_id));
    setText(this.state, isGroupedByState ? "" : STATE_WORDS[state]);
    this.tick(now);
    setText(this.name, nameOf(session));
    setText(this.marks, this.markTexts(session, shared, children).join(" · "));
    const ask = state === "waiting" ? question(session) : state === "unknown" ? reason(session) : "";
    setText(this.ask, ask);
    this.ask.hidden = ask === "";
    const facts = [session.agent, directory(session.work_dir), session.git_branch, session.model, this.turnText(session, state)];
    setTexts(this.facts, facts.filter(Boolean), " · ");
    this.showContext(session);
    this.showResources();
    this.showCommand(session);
    this.details?.update(session);
  }

  markTexts(session, shared, children) {
    const marks = [];
    if (session.confidence === "inferred") marks.push("inferred");
    if (session.headless) marks.push("headless");
    if (session.detached) marks.push("detached");
    if (session.owner?.stopped) marks.push("suspended");
    if (session.other_live?.length) marks.push(`${session.other_live.length + 1} live processes`);
    if (children) marks.push(children === 1 ? "1 sub-agent" : `${children} sub-agents`);
    if (shared.has(session.work_dir) && session.liveness === "live") marks.push("shares its directory");
    return marks;
  }

  turnText(session, state) {
    const count = session.turn?.output_tokens;
    return state === "working" && count ? `${tokens(count)} tokens this turn` : null;
  }

  /// Updates the age, which changes without an event.
  tick(now) {
    const since = sinceOf(this.session);
    setText(this.age, age(since, now));
    setAttribute(this.age, "datetime", since === null ? null : new Date(since).toISOString());
  }

  showContext(session) {
    const percent = session.context?.percent;
    this.context.hidden = percent === null || percent === undefined;
    if (this.context.hidden) return;
    const shown = Math.max(0, Math.min(100, percent));
    this.bar.style.width = `${shown}%`;
    this.context.dataset.level = percent >= 90 ? "full" : percent >= 70 ? "high" : "low";
    setText(this.percent, `${Math.round(percent)} %`);
    const assumed = session.context.window_assumed ? ", window assumed" : "";
    this.context.title = `Context: ${tokens(session.context.tokens)} tokens${assumed}`;
    setAttribute(this.context, "role", "img");
    setAttribute(this.context, "aria-label", `Context ${Math.round(percent)} percent full`);
  }

  /// Processor time and memory, while they are sampled.
  showResources() {
    const samples = model.resources.get(this.key) ?? [];
    const last = samples.at(-1);
    this.resources.hidden = !last || last.cpu === null;
    if (this.resources.hidden) return;
    const top = Math.max(100, ...samples.map(({ cpu }) => cpu ?? 0));
    const points = samples.map(({ cpu }, at) => `${60 - samples.length + at + 1},${(19 - (18 * (cpu ?? 0)) / top).toFixed(1)}`);
    setAttribute(this.line, "points", points.join(" "));
    const memory = last.memory === null ? "" : ` · ${bytes(last.memory)}`;
    setText(this.use, `${Math.round(last.cpu)} %${memory}`);
    this.resources.title = "Processor and memory, with all child processes";
  }

  showCommand(session) {
    const command = session.attach ?? session.resume;
    const label = session.attach ? "Copy attach" : "Copy resume";
    const isTrusted = command !== session.resume || session.resume?.trusted !== false;
    this.commandText = isTrusted ? shellLine(command) : "";
    this.command.hidden = this.commandText === "";
    this.command.dataset.label = label;
    if (!this.command.matches("[data-said]")) setText(this.command, label);
    this.command.title = this.commandText;
    setAttribute(this.command, "aria-label", `${label} command of ${nameOf(session)}`);
  }

  toggle(isOpen = this.details === null) {
    setAttribute(this.name, "aria-expanded", String(isOpen));
    this.root.classList.toggle("open", isOpen);
    if (isOpen && !this.details) {
      this.details = details(this.session);
      this.root.append(this.details.root);
    } else if (!isOpen) {
      this.details?.root.remove();
      this.details = null;
    }
  }
}
