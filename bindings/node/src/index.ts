/**
 * Says which process serves which session of a coding agent, and asks it.
 *
 * Writing is plain TypeScript without dependencies and without native code;
 * `docs/sidecar.md` describes the file. Reading needs the native part, which is
 * loaded at the first question.
 */
export type * from "./document.js";
export { ReadError, SidecarError } from "./error.js";
export { Owner, type AgentOptions, type Phase, type Serves, type SessionOptions, type WaitingFor } from "./owner.js";
export { isLive, type IdOptions, type ListOptions, listSessions, session, why } from "./reader.js";
