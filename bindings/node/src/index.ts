/**
 * Says which process serves which session of a coding agent, and asks it.
 *
 * Writing is plain TypeScript without dependencies and without native code;
 * `docs/sidecar.md` describes the file. Reading needs the native part, which is
 * loaded at the first question.
 */
export type * from "./document.js";
export { ReadError, SidecarError } from "./error.js";
export type * from "./generated.js";
export { version } from "./generated.js";
export { type AbortSignalLike, type WaitOptions, type WatchOptions, wait, watch } from "./live.js";
export { Owner, type AgentOptions, type SessionOptions } from "./owner.js";
export { type IdOptions, type ListOptions, listSessions, liveness, session, why } from "./reader.js";
