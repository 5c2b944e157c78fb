declare module "node:fs" {
  export function readFileSync(path: string | number, encoding: "utf8"): string;
}
declare const process: { argv: string[]; exit(code: number): never; stdout: { write(text: string): void } };
