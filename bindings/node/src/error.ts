/** The sidecar is not as it should be; nothing else is wrong. */
export class SidecarError extends Error {
  override name = "SidecarError";
}

/** The code of a failure of the system. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
