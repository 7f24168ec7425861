/** The loader of the native part, which is plain CommonJS and lies beside it. */
declare module "*/native/load.cjs" {
  /** Each question is answered with JSON: `{"answer": …}` or `{"error": …}`. */
  export interface Native {
    listSessions(isAll: boolean, agents: readonly string[], cwd?: string): Promise<string>;
    session(id: string, home?: string): Promise<string>;
    liveness(id: string, home?: string): Promise<string>;
    why(id: string, home?: string): Promise<string>;
    /** `bell` is called when there may be something to read. */
    watch(bell: () => void, agents: readonly string[], cwd?: string): Promise<Live>;
    wait(
      bell: () => void,
      until: string,
      isNext: boolean,
      id: string | undefined,
      home: string | undefined,
      agents: readonly string[],
      cwd?: string,
    ): Promise<Live>;
  }
  /** Something that is watched. */
  export interface Live {
    /** What there is to read, as JSON. */
    take(): string | null;
    close(): void;
  }
  export function load(): Native;
}
