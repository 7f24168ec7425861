import { SidecarError } from "./error.js";

/** How long a session's id may be, in bytes. */
const ID_BYTES_MAX = 128;
const AGENT = /^[a-z][a-z0-9-]{0,63}$/;
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])$/i;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** Characters that are not seen, and letters that are invisible. */
const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
const HALF_A_CHARACTER = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Why a text can't be a session's id, as the end of "must not …". */
export function whyNoSession(id: unknown): string | undefined {
  if (typeof id !== "string" || id === "") return "be empty";
  if (HALF_A_CHARACTER.test(id)) return "have half a character";
  const bytes = Buffer.byteLength(id);
  if (bytes > ID_BYTES_MAX) return `be longer than ${ID_BYTES_MAX} bytes, this one has ${bytes}`;
  if (/[/\\]/.test(id)) return "contain what separates the parts of a path";
  if (/[<>:"|?*]/.test(id)) return "contain what Windows refuses in file names";
  if (CONTROL.test(id)) return "contain a control character";
  if (INVISIBLE.test(id)) return "contain a character that can't be seen";
  if (/^\.+$/.test(id)) return "be made of dots alone";
  if (id !== id.trim()) return "begin or end with a space";
  if (id.endsWith(".")) return "end with a dot, which Windows drops";
  if (id.startsWith("-")) return "begin with a hyphen, as options do";
  if (DEVICE.test((id.split(".")[0] ?? "").trimEnd())) return "be the name of a Windows device";
  return undefined;
}

/** Refuses what can't be a session's id. */
export function checkSession(id: string): void {
  const reason = whyNoSession(id);
  if (reason !== undefined) {
    throw refused(`a session id must not ${reason}`);
  }
}

/** Refuses what can't be an agent's name. */
export function checkAgent(name: string): void {
  if (typeof name !== "string" || !AGENT.test(name) || name === "schema") {
    throw new SidecarError(
      "cannot announce an agent: its name must have lower-case letters, digits and hyphens, " +
        `a letter first, and must not be \`schema\`: ${JSON.stringify(name)}`,
      "bad_argument",
    );
  }
}

/** What can't be announced. */
export function refused(why: string): SidecarError {
  return new SidecarError(`cannot announce a session: ${why}`, "bad_argument");
}
