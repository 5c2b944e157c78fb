// The document of a task, where a message goes, and what stands in it. Same rules as client.py, same bytes.

export type Answers = Record<string, unknown>;
/** Gives so many random bytes; anything but `random` is for test vectors. */
export type Draw = (size: number) => Uint8Array;
export type Bytes = Uint8Array<ArrayBuffer>;
export interface Place { name: string; url: string; key: string }
export interface Column { name: string; groups: { name: string; when: [string, number | string][][] }[] }
export interface Step {
  columns: string[]; sizes: number[]; sigma: number; convention: "uniform" | "exclusive"; only_on_purpose: boolean;
  dummies: number; batch: number; min_batch: number; sources: number; token_key: string; ticket_key: string; targets: Place[];
}
/** Which iteration of a query that asks everybody several times a task is. */
export interface Round {
  number: number; rounds: number; run?: string; former?: string; centroids: number[][]; scaled: boolean;
  norm?: "gaussian" | "laplace"; radius?: number; keys: [string, string][];
}
export interface Document {
  round?: Round;
  version: number; figures: { epsilon?: number; delta: number; issuer?: number }; result: Place; per_person: "all" | "one"; columns: Column[]; values: { name: string; low?: number; high?: number }[];
  steps: Step[]; relay: string; chain: Place[]; issuer: { name: string; url: string }; message: number;
}

/** Bytes that cannot be used; the message shows nothing of what is in them. */
export class PhoneError extends Error {}

const SCALE = 1n << 64n;

export const random: Draw = (size) => crypto.getRandomValues(new Uint8Array(size));
export const utf8 = (text: string): Bytes => Uint8Array.from(new TextEncoder().encode(text));
export const hex = (data: Uint8Array): string => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const unhex = (text: string): Bytes => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const base64 = (text: string): Bytes => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
export const number16 = (value: number): Bytes => Uint8Array.of(value >> 8, value & 255);
export const sha256 = async (data: Bytes): Promise<Bytes> => new Uint8Array(await crypto.subtle.digest("SHA-256", data));

export function joined(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => { whole.set(part, at); return at + part.length; }, 0);
  return whole;
}

/** A task's document; the digest of its bytes is the task's id. */
export class Task {
  private constructor(readonly id: Bytes, readonly document: Document) {}

  /** Reads a document; refuses one that is not the one with the `expected` id (64 hexadecimal digits). */
  static async read(data: Bytes, expected?: string): Promise<Task> {
    const id = await sha256(data);
    if (expected !== undefined && hex(id) !== expected) {
      throw new PhoneError("the task document is not the one with the expected id.");
    }
    let document: Document | undefined;
    try { document = JSON.parse(new TextDecoder().decode(data)) as Document; } catch { /* said below */ }
    if (data.length > 20_000 || document?.version !== 2 || !formed(document)) {
      throw new PhoneError("this is no task document of version 2.");
    }
    return new Task(id, document);
  }

  step(number: number): Step { return this.document.steps[number - 1]!; }
  path(what: string): string { return `/tasks/${hex(this.id)}/${what}`; }
  /** What the seals for a scrambler or target are bound to. */
  info(step: number, name: string): Bytes {
    return joined(utf8("hushuffle onion 1|"), this.id, number16(step), utf8(name));
  }
  /** What a token for a target is for. */
  challenge(step: number, name: string): Promise<Bytes> { return this.tokenFor("token", step, name); }
  /** What a ticket is for: the first scrambler takes it, one for each message of the step. */
  ticketChallenge(step: number): Promise<Bytes> { return this.tokenFor("ticket", step, this.document.chain[0]!.name); }
  private async tokenFor(kind: string, step: number, name: string): Promise<Bytes> {
    const context = await sha256(joined(utf8(`hushuffle ${kind} 1|`), this.id, number16(step), utf8(name)));
    const issuer = utf8(this.document.issuer.name);
    return joined(number16(2), number16(issuer.length), issuer, Uint8Array.of(32), context, number16(0));
  }
}

/** Whether what the owner's limits and the choices of targets rest on has the form that it must have. */
function formed({ steps, chain, figures, round, message }: Document): boolean {
  const whole = (one: number): boolean => Number.isInteger(one) && one > 0 && one <= 1_000_000;
  const once = round === undefined || (typeof round === "object" && round !== null && whole(round.number) && whole(round.rounds));
  const listed = [steps, chain].every((one) => Array.isArray(one) && one.length > 0) && steps.every((one) => Array.isArray(one?.targets) && one.targets.length > 0);
  const small = Number.isInteger(message) && message >= 512 && message <= 16_384;  // else it asks for any amount of memory
  return once && listed && small && (figures === undefined || (typeof figures === "object" && figures !== null));
}

const word = (draw: Draw): bigint => BigInt("0x" + hex(draw(8)));

/** A uniform number from 0 to high - 1. */
export function below(high: number, draw: Draw): number {
  const bits = high > 1 ? (high - 1).toString(2).length : 0;
  for (;;) {
    const number = Number(word(draw) >> BigInt(64 - bits));
    if (number < high) return number;
  }
}

/** A number between 0 and 1 as an exact fraction. */
function ratio(value: number): [bigint, bigint] {
  let under = 1n;
  while (!Number.isInteger(value)) { value *= 2; under *= 2n; }
  return [BigInt(value), under];
}

/** The target of a message, and whether it carries data; `own`: the answer's target, null for no answer. */
export function choose(step: Pick<Step, "sigma" | "convention" | "only_on_purpose">, targets: number, own: number | null, draw: Draw): [number, boolean] {
  if (own === null) return [below(targets, draw), false];
  const [above, under] = ratio(step.sigma), others = step.convention === "exclusive";
  let threshold = (SCALE * (under - above)) / under;
  if (others && threshold * BigInt(targets) < SCALE) threshold = (SCALE + BigInt(targets) - 1n) / BigInt(targets);
  let meant = word(draw) < threshold, target = own;
  if (!meant) target = others ? (own + 1 + below(targets - 1, draw)) % targets : below(targets, draw);
  if (others && meant) {
    const weight = threshold * BigInt(targets - 1);
    meant = word(draw) < (SCALE * (weight - (SCALE - threshold))) / weight;
  }
  return [target, target === own && (meant || !step.only_on_purpose)];
}

const asNumber = (answer: unknown): number | null => (typeof answer === "number" && Math.abs(answer) < 2 ** 53 ? answer : null);

function holds(answer: unknown, comparison: string, value: number | string): boolean {
  const number = asNumber(answer);
  const left = typeof value === "number" ? number : typeof answer === "string" ? answer : number === null ? null : String(number);
  if (left === null) return false;
  switch (comparison) {
    case "==": return left === value;
    case "!=": return left !== value;
    case "<": return left < value;
    case "<=": return left <= value;
    case ">": return left > value;
    case ">=": return left >= value;
    default: throw new PhoneError("a group of the task compares in a way that is not known.");
  }
}

/** The number of the group that an answer is in; null if it is in none, or in several. */
export function groupOf(column: Column, answer: unknown): number | null {
  const found = column.groups.flatMap((group, number) =>
    group.when.some((clauses) => clauses.every(([comparison, value]) => holds(answer, comparison, value))) ? [number] : []);
  return found.length === 1 ? found[0]! : null;
}

/** The number of the centroid that is nearest to a point, and the point's record; null for no answer. */
export function pointOf(about: Round, values: Document["values"], answers: Answers): { own: number; record: Bytes } | null {
  const given = values.map((column) => asNumber(answers[column.name]));
  if (given.includes(null)) return null;
  let point = given.map((value, at) => {
    const { low, high } = values[at]!;
    return about.scaled ? Math.min(Math.max((2 * (value! - low!)) / (high! - low!) - 1, -1), 1) : value!;
  });
  if (about.norm !== undefined) {
    const length = about.norm === "gaussian" ? Math.hypot(...point) : point.reduce((sum, value) => sum + Math.abs(value), 0);
    if (length > about.radius! * (1 - 1e-9)) point = point.map((value) => value * (about.radius! / length) * (1 - 1e-6));
  }
  const far = about.centroids.map((centroid) => centroid.reduce((sum, c, at) => sum + c * (c / 2 - point[at]!), 0));
  const record = new DataView(new ArrayBuffer(8 * point.length));
  point.forEach((value, at) => record.setFloat64(8 * at, value, true));
  return { own: far.indexOf(Math.min(...far)), record: new Uint8Array(record.buffer) };
}

/** An answer's own target in a step, and its record; null for no answer. */
export function recordOf(document: Document, step: Step, answers: Answers): { own: number; record: Bytes } | null {
  if (document.round !== undefined) return pointOf(document.round, document.values, answers);
  const groups = step.columns.map((name) => groupOf(document.columns.find((column) => column.name === name)!, answers[name]));
  const values = document.values.map((column) => asNumber(answers[column.name]));
  if (groups.includes(null) || values.includes(null)) return null;
  const record = new DataView(new ArrayBuffer(4 * groups.length + 8 * values.length));
  groups.forEach((group, at) => record.setInt32(4 * at, group!, true));
  values.forEach((value, at) => {
    const { low = -Infinity, high = Infinity } = document.values[at]!;
    record.setFloat64(4 * groups.length + 8 * at, Math.min(Math.max(value!, low), high), true);
  });
  const code = groups.reduce<number>((whole, group, at) => whole * step.sizes[at]! + group!, 0);
  const own = Math.floor((code * step.targets.length) / step.sizes.reduce((a, b) => a * b, 1));
  return { own, record: new Uint8Array(record.buffer) };
}
