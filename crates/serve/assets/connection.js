// The connection to the server: one stream of changes, and single requests.

const TOKEN = "whosup-token";
const RETRY_MS = 2000;
const RETRY_MAX_MS = 30000;
/// The server sends a comment every 15 s: without any data for this long, the connection is lost.
const SILENCE_MAX_MS = 40000;

/// The token of this tab. It comes in the address, which is cleared at once, so that the token is
/// in no history and no bookmark.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(TOKEN);
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

function headers(more = {}) {
  return { Authorization: `Bearer ${sessionStorage.getItem(TOKEN) ?? ""}`, ...more };
}

/// The path of a session and of its parts.
export function path(session, rest = "") {
  const name = [session.agent, session.session_id].map(encodeURIComponent).join("/");
  const home = session.home ? `home=${encodeURIComponent(session.home)}` : "";
  const [route, query] = rest.split("?");
  const asked = [query, home].filter(Boolean).join("&");
  return `api/v1/sessions/${name}${route}${asked ? `?${asked}` : ""}`;
}

/// Requests a document.
export async function ask(path, options = {}) {
  const answer = await fetch(path, { cache: "no-store", ...options, headers: headers(options.headers) });
  const document = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(document?.error?.message ?? `The server answered ${answer.status}.`);
  return document;
}

export function post(path, body = {}) {
  return ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
}

/// Reads the stream for ever. `heard` gets each change, `said` the state of the connection:
/// `connecting`, `open` (with what may be done here), `lost`, `refused`. A hidden tab reads on:
/// its title shows how many sessions wait.
export async function listen(heard, said) {
  let last = null;
  let wait = RETRY_MS;
  for (;;) {
    let why = "The server does not answer.";
    const stop = new AbortController();
    let silence = null;
    const alive = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE_MAX_MS);
    };
    try {
      alive();
      const more = last ? { "Last-Event-ID": last } : {};
      const answer = await fetch("api/v1/events?resources=1", { headers: headers(more), cache: "no-store", signal: stop.signal });
      if (answer.status === 401) {
        said("refused");
        return;
      }
      if (!answer.ok) {
        const reply = await answer.json().catch(() => null);
        why = reply?.error?.message ?? `The server answered ${answer.status}.`;
        throw new Error(why);
      }
      said("open", "", answer.headers.get("whosup-actions"));
      wait = RETRY_MS;
      for await (const event of events(answer.body, alive)) {
        if (event.id) last = event.id;
        heard(JSON.parse(event.data));
      }
      why = "The server has ended.";
    } catch (error) {
      if (error instanceof SyntaxError) last = null;
    } finally {
      clearTimeout(silence);
      stop.abort();
    }
    said("lost", why);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      addEventListener("online", () => (clearTimeout(timer), resolve()), { once: true });
    });
    wait = Math.min(wait * 1.5, RETRY_MAX_MS);
  }
}

/// The events of a response body.
async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let event = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    text += value;
    let end;
    while ((end = text.indexOf("\n")) >= 0) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (line === "") {
        if (event.data !== undefined) yield event;
        event = {};
      } else if (!line.startsWith(":")) {
        const at = line.indexOf(": ");
        event[line.slice(0, at)] = line.slice(at + 2);
      }
    }
  }
}
