/** The sidecar is not as it should be; nothing else is wrong. */
export class SidecarError extends Error {
  override name = "SidecarError";
}

/** A question about sessions can't be answered, and why. */
export class ReadError extends Error {
  override name = "ReadError";
}

/** The code of a failure of the system. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
