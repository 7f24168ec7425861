/** The loader of the native part, which is plain CommonJS and lies beside it. */
declare module "*/native/load.cjs" {
  /** Each question is answered with JSON: `{"answer": …}` or `{"error": …}`. */
  export interface Native {
    listSessions(isAll: boolean, agents: readonly string[], cwd?: string): Promise<string>;
    session(id: string, home?: string): Promise<string>;
    liveness(id: string, home?: string): Promise<string>;
    why(id: string, home?: string): Promise<string>;
  }
  export function load(): Native;
}
