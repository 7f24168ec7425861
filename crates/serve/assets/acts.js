// The actions on a session: commands to copy, and actions that the server allows.

import { path, post } from "./connection.js";
import { announce, copyButton, element, setChildren } from "./dom.js";
import { stateOf } from "./model.js";
import { shellLine } from "./words.js";

/// The actions that the server allows on this page.
let allowed = [];

export function allow(actions) {
  allowed = (actions ?? "").split(", ");
}

/// The buttons. They are made once, so that an unfinished text stays when the session changes.
export function acts() {
  const root = element("div", { class: "actions" });
  const answer = element("p", { class: "answer", hidden: true });
  let session = null;
  let key = null;

  async function act(action, body, button) {
    button.disabled = true;
    answer.hidden = true;
    try {
      const { done, command } = await post(path(session, `/${action}`), body);
      announce(done);
      if (command) show("In a terminal: ", element("code", {}, command), " ", copyButton("Copy", command));
      return true;
    } catch (error) {
      announce(error.message);
      show(element("span", { class: "failed" }, error.message));
      return false;
    } finally {
      button.disabled = false;
    }
  }

  function show(...children) {
    answer.replaceChildren(...children);
    answer.hidden = false;
  }

  function button(action, label) {
    const made = element("button", { type: "button", class: "act", onclick: () => act(action, {}, made) }, label);
    return made;
  }

  const attach = button("attach", "Show pane");
  const dismiss = button("dismiss", "Dismiss");
  const end = button("end", "End");
  const send = sender(act);
  const stop = stopper(act);

  function update(now) {
    session = now;
    const state = stateOf(now);
    const isServed = now.liveness === "live" && !now.parent_session_id;
    const shown = [now.session_id, state, shellLine(now.attach), shellLine(now.resume), now.owner?.pid, now.pane?.pane, allowed].join();
    if (shown === key) return;
    key = shown;
    const can = (action, element, is) => (is && allowed.includes(action) ? [element] : []);
    setChildren(root, [
      ...copies(now),
      ...can("attach", attach, isServed && now.attach),
      ...can("dismiss", dismiss, state === "died" || state === "ended"),
      ...can("end", end, state === "unknown"),
      ...can("stop", stop, isServed && now.owner),
      ...can("send", send, isServed && now.pane?.pane),
      answer,
    ]);
  }
  return { root, update };
}

function copies(session) {
  const made = [copyButton("Copy id", session.session_id)];
  if (session.attach) made.unshift(copyButton("Copy attach", shellLine(session.attach)));
  if (session.resume) {
    const line = shellLine(session.resume);
    made.unshift(copyButton("Copy resume", line));
    if (session.resume.trusted === false) {
      made.push(element("span", { class: "warning" }, "The resume command stands in a file of the agent's: read it before you run it. ", element("code", {}, line)));
    }
  }
  return made;
}

/// Types a text into the session's pane, and presses Enter.
function sender(act) {
  const field = element("input", { type: "text", autocomplete: "off", placeholder: "Type to this session", "aria-label": "Text for the session" });
  const button = element("button", { type: "submit", class: "act" }, "Send");
  const form = element("form", { class: "send" }, field, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value;
    if (text && (await act("send", { text, enter: true }, button)) && field.value === text) field.value = "";
  });
  return form;
}

/// Ends the process of a session, after a confirmation.
function stopper(act) {
  const place = element("span", { class: "stop" });
  const first = element("button", { type: "button", class: "act", onclick: () => ask(true) }, "Stop…");
  const yes = element("button", { type: "button", class: "act", onclick: async () => (await act("stop", {}, yes), ask(false)) }, "Stop the process");
  const no = element("button", { type: "button", class: "act", onclick: () => ask(false) }, "Keep it");
  function ask(isAsked) {
    place.replaceChildren(...(isAsked ? [yes, no] : [first]));
    if (isAsked) no.focus();
    else if (place.isConnected) first.focus();
  }
  ask(false);
  return place;
}
