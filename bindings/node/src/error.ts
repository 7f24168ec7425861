import type { Candidate } from "./document.js";
import type { ReadErrorCode, SidecarErrorCode } from "./generated.js";

/** A sidecar could not be written. Nothing else is wrong: an agent can go on. */
export class SidecarError extends Error {
  override name = "SidecarError";

  constructor(
    message: string,
    /** The kind of error, for programs. Codes are stable. */
    readonly code: SidecarErrorCode,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A question about sessions has no answer. */
export class ReadError extends Error {
  override name = "ReadError";

  constructor(
    message: string,
    /** The kind of error, for programs. Codes are stable. */
    readonly code: ReadErrorCode,
    /** The sessions that an `ambiguous` id may mean, at most 20 of them. */
    readonly candidates: Candidate[] = [],
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The code of a failure of the system. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
