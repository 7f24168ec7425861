/**
 * Says which process serves which session of a coding agent.
 *
 * Plain TypeScript without dependencies and without native code;
 * `docs/sidecar.md` describes the file.
 */
export { SidecarError } from "./error.js";
export { Owner, type AgentOptions, type Phase, type SessionOptions, type WaitingFor } from "./owner.js";
