// Words for times, numbers, commands and reasons.

const MINUTE = 60, HOUR = 3600, DAY = 86400;

/// The age in short form.
export function age(ms, now = Date.now()) {
  if (ms === null || ms === undefined) return "";
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < MINUTE) return `${seconds}s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)}h ${Math.floor((seconds % HOUR) / MINUTE)}m`;
  return `${Math.floor(seconds / DAY)}d`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function tokens(count) {
  if (count < 1000) return String(count);
  if (count < 1e6) return `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

export function bytes(count) {
  return count < 1e9 ? `${Math.round(count / 1048576)} MiB` : `${(count / 1073741824).toFixed(1)} GiB`;
}

/// A command for a shell, with the directory that it needs.
export function shellLine(command) {
  if (!command) return "";
  const variables = Object.entries(command.env ?? {}).map(([name, value]) => `${name}=${quoted(value)}`);
  const line = [...variables, ...command.argv.map(quoted)].join(" ");
  return command.cwd ? `cd ${quoted(command.cwd)} && ${line}` : line;
}

function quoted(word) {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/// A directory, with `~` for the home.
export function directory(path) {
  if (!path) return "";
  const home = path.match(/^(\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/)?.[0];
  return home ? `~${path.slice(home.length)}` : path;
}

/// What a waiting session asks.
export function question(session) {
  const on = session.waiting_on;
  const kinds = { permission: "Wants permission", question: "Asks a question", auth: "Wants a login", prompt: "Wants a prompt" };
  const kind = kinds[session.waiting_for] ?? "Wants an answer";
  if (!on) return kind;
  return [on.tool ? `${kind}: ${on.tool}` : kind, on.text].filter(Boolean).join(" — ");
}

const REASONS = {
  "may-be-served-by": "a process that runs may be serving it",
  "other-host": "it belongs to another host",
  "other-pid-namespace": "its process is in another container",
  "bare-pid": "only a PID is known, and no start of the process",
  "probe-failed": "its process could not be looked at",
  hidden: "the system hides its process",
  "untrusted-claim": "another user may have written its file",
  "owner-not-found": "the process that serves it was not found",
  "program-changed": "its process runs another program now",
  "unrecognized-program": "its process runs a program that is not recognized",
  "younger-than-claim": "its process began after the record of it",
  "incomplete-view": "not every process can be seen from here",
  ambiguous: "several processes may be meant",
};

export function reason(session) {
  return REASONS[session.reason] ?? (session.reason ?? "").replaceAll("-", " ");
}
