/** The loader of the native part, which is plain CommonJS and lies beside it. */
declare module "*/native/load.cjs" {
  export function load(): {
    listSessions(isAll: boolean, agents: string[], cwd?: string): Promise<string>;
    session(id: string, home?: string): Promise<string>;
    isLive(id: string, home?: string): Promise<string>;
    why(id: string, home?: string): Promise<string>;
  };
}
