// Reads a certificate as certificate.schema.json describes it.

import { Json, MalformedError, Numeral } from "./json";
import { Rational, whole } from "./interval";
import { NotCheckedError, Randomizer, Row } from "./laws";

const MOST = 2_000_000_000;
const ENTRIES = 65_536;
const LARGEST_MATRIX = 4096;
const VIEWS = ["multiset", "senders", "sums", "noisy order", "capped multiset"];

export interface Messages {
  trials: number;
  p: Rational;
  own: boolean;
  table: [number, Rational][];
  each: boolean;
}

export interface Release {
  groups: [number, number][];
  targets: number[];
  reports: number;
  view: string;
  honest: number | null;
  messages: Messages | null;
  rounds: number;
  memory: number;
}

export interface Step {
  name: string;
  page: string;
  release: Release;
}

export interface Part {
  release: string;
  n: number;
  dummies: number;
  randomizers: Randomizer[];
  others: [number, number][];
  target: [number, number];
  steps: Step[];
}

export interface Certificate {
  delta: Rational;
  low: Rational;
  high: Rational | null;
  parts: Part[];
}

type Members = Map<string, Json>;

function refuse(name: string, rule: string): never {
  throw new MalformedError(`The certificate is invalid: ${name} must be ${rule}.`);
}

function object(value: Json | undefined, name: string, required: string[], optional: string[] = []): Members {
  if (!(value instanceof Map)) return refuse(name, "an object");
  for (const key of required) if (!value.has(key)) refuse(key, `a key of ${name}`);
  for (const key of value.keys()) if (!required.includes(key) && !optional.includes(key)) refuse("each key", "in the schema");
  return value;
}

function integer(value: Json | undefined, name: string, low: number, high = MOST): number {
  if (!(value instanceof Numeral) || !/^-?[0-9]{1,20}$/.test(value.text)) return refuse(name, "a whole number");
  const number = Number(value.text);
  return number < low || number > high ? refuse(name, `a whole number from ${low} to ${high}`) : number;
}

function list(value: Json | undefined, name: string, fewest = 0): Json[] {
  return Array.isArray(value) && value.length >= fewest && value.length <= ENTRIES ? value : refuse(name, "a list");
}

function number(value: Json | undefined, name: string): Rational {
  if (!(value instanceof Numeral)) return refuse(name, "a number");
  const read = Rational.decimal(value.text);
  return read.compare(whole(1_000_000)) > 0 || read.compare(whole(-1_000_000)) < 0 ? refuse(name, "smaller than a million") : read;
}

function fraction(value: Json | undefined, name: string): Rational {
  if (typeof value !== "string" || !/^[0-9]{1,200}(\/[0-9]{1,199})?$/.test(value)) return refuse(name, "a fraction");
  const [top, bottom = "1"] = value.split("/");
  if (BigInt(bottom) === 0n || BigInt(top) > BigInt(bottom)) refuse(name, "a probability");
  return new Rational(BigInt(top), BigInt(bottom));
}

function distribution(value: Json, name: string, width?: number): Row {
  const entries = list(value, name, 1).map((entry) => number(entry, name));
  const total = entries.reduce((before, entry) => before.plus(entry), whole(0));
  const apart = total.minus(whole(1));
  const far = (sign: bigint): boolean => new Rational(sign * apart.top, apart.bottom).compare(new Rational(1n, 10n ** 9n)) > 0;
  if (entries.some((entry) => entry.top < 0n) || far(1n) || far(-1n)) refuse(name, "probabilities that add up to 1");
  if (width !== undefined && entries.length !== width) refuse(name, "a probability for each report");
  return entries.map((entry) => entry.over(total).interval);
}

const RANDOMIZER = ["values", "truth", "rows", "dummy"];

function randomizer(given: Members): Randomizer {
  const k = integer(given.get("values"), "values", 2);
  const [truth, rows, dummy, bits] = ["truth", "rows", "dummy", "bits"].map((key) => given.get(key) ?? null);
  if ([truth, rows, bits].filter((each) => each !== null).length !== 1) refuse("truth, rows, bits", "given, one of them");
  if (bits !== null) {
    const [p, q] = list(bits, "bits", 2).map((each) => fraction(each, "bits"));
    return (bits as Json[]).length === 2 && q.compare(p) < 0 ? { k, bits: [p, q] } : refuse("bits", "two probabilities, the larger one first");
  }
  if (truth !== null) {
    const probability = fraction(truth, "truth");
    return probability.times(whole(k)).compare(whole(1)) < 0 ? refuse("truth", "at least 1/values") : { k, truth: probability };
  }
  const matrix = list(rows, "rows", 2);
  if (matrix.length !== k) refuse("rows", "a list for each value");
  const width = list(matrix[0], "rows", 1).length;
  if (k * width > LARGEST_MATRIX) throw new NotCheckedError(`a matrix of more than ${LARGEST_MATRIX} entries`);
  const read = matrix.map((row) => distribution(row, "rows", width));
  return dummy === null ? { k, rows: read } : { k, rows: read, dummy: distribution(dummy, "dummy", width) };
}

function pairs(value: Json | undefined, name: string, high = MOST): [number, bigint][] {
  return list(value, name).map((each) => {
    const pair = list(each, name, 2);
    if (pair.length !== 2) refuse(name, "a list of pairs");
    const second = pair[1];
    if (!(second instanceof Numeral) || !/^[0-9]{1,20}$/.test(second.text)) refuse(name, "whole numbers");
    return [integer(pair[0], name, 0, high), BigInt((second as Numeral).text)];
  });
}

function messages(value: Json | undefined): Messages | null {
  if (value === null) return null;
  const given = object(value, "messages", ["trials", "p", "own", "table"], ["each"]);
  const [own, each] = [given.get("own"), given.get("each") ?? false];
  if (typeof own !== "boolean" || typeof each !== "boolean") return refuse("own, each", "true or false");
  const [trials, p] = [integer(given.get("trials"), "trials", 0), fraction(given.get("p"), "p")];
  const listed = pairs(given.get("table"), "table");
  if (listed.length > 0) {
    const ascending = listed.every(([count, part], at) => part > 0n && (at === 0 || listed[at - 1][0] < count));
    const total = listed.reduce((before, [, part]) => before + part, 0n);
    if (own || each || trials > 0 || p.compare(whole(1)) !== 0 || !ascending || total !== 2n ** 64n) refuse("table", "ascending numbers with parts of 2**64");
  }
  if (each && (own || p.compare(new Rational(1n, 2n)) !== 0)) refuse("each", "fair random bits");
  return { trials, p, own, each, table: listed.map(([count, part]) => [count, new Rational(part, 2n ** 64n)]) };
}

function release(value: Json | undefined, randomizers: number): Release {
  const given = object(value, "release", ["groups", "targets", "reports", "view", "honest", "messages"], ["rounds", "memory"]);
  const groups = pairs(given.get("groups"), "groups").map(([count, place]): [number, number] => [count, Number(place)]);
  const people = groups.reduce((total, [count]) => total + count, 0);
  const targets = list(given.get("targets"), "targets", 1).map((each) => integer(each, "targets", 0));
  const [reports, view] = [integer(given.get("reports"), "reports", 1), given.get("view")];
  const honest = given.get("honest") === null ? null : integer(given.get("honest"), "honest", 1);
  const rounds = given.has("rounds") ? integer(given.get("rounds"), "rounds", 1) : 1;
  const memory = given.has("memory") ? integer(given.get("memory"), "memory", 1) : 0;
  if (typeof view !== "string" || !VIEWS.includes(view)) return refuse("view", `one of ${VIEWS.join(", ")}`);
  if (groups.length === 0 || groups.some(([count, place]) => count === 0 || place >= randomizers) || people > MOST) refuse("groups", "numbers of people with places of randomizers");
  if (new Set(targets).size < targets.length || Math.max(...targets) >= groups.length) refuse("targets", "places of different groups");
  if (Math.max(honest ?? 1, reports) > people || memory > rounds) refuse("honest, reports, memory", "at most the number of people, or of rounds");
  return { groups, targets, reports, view, honest, messages: messages(given.get("messages")), rounds, memory };
}

const PART = ["release", "n", "dummies", ...RANDOMIZER, "others", "target", "randomizers", "steps"];

function part(given: Members): Part {
  const kind = given.get("release");
  if (typeof kind !== "string" || !["shuffled", "senders", "sums"].includes(kind)) return refuse("release", "shuffled, senders or sums");
  const [n, dummies] = [integer(given.get("n"), "n", 1), integer(given.get("dummies"), "dummies", 0)];
  const own = randomizer(given);
  if ((own.bits !== undefined) !== (kind === "sums")) refuse("bits", "given for sums of one-hot reports, and only for these");
  if (dummies > 0 && own.rows !== undefined && own.dummy === undefined) refuse("dummy", "a probability for each report");
  const further = list(given.get("randomizers"), "randomizers").map((each) => randomizer(object(each, "randomizers", RANDOMIZER, ["bits"])));
  const steps = list(given.get("steps"), "steps", 1).map((each): Step => {
    const step = object(each, "steps", ["name", "page", "release"]);
    const [name, page] = [step.get("name"), step.get("page")];
    if (typeof name !== "string" || typeof page !== "string") return refuse("steps", "rules and laws with their pages");
    return { name, page, release: release(step.get("release"), 1 + further.length) };
  });
  const others = list(given.get("others"), "others").map((each) => integer(each, "others", 0));
  const target = list(given.get("target"), "target", 2).map((each) => integer(each, "target", 0));
  const counted = others.reduce((total, count) => total + count, 0);
  const several = steps.some((step) => step.release.reports > 1 || step.name === "some groups revealed");
  if (others.length > own.k || (!several && counted !== n - 1)) refuse("others", "counts of n - 1 people by value");
  if (target.length !== 2 || Math.max(...target) >= own.k || target[0] === target[1]) refuse("target", "two different values");
  const held = others.map((count, value): [number, number] => [value, count]).filter(([, count]) => count > 0);
  return { release: kind, n, dummies, randomizers: [own, ...further], others: held, target: [target[0], target[1]], steps };
}

export function certificate(value: Json): Certificate {
  if (!(value instanceof Map)) return refuse("certificate", "an object");
  const version = value.get("version");
  const [second, third] = ["2", "3"].map((text) => version instanceof Numeral && version.text === text);
  if (!second && !third) throw new NotCheckedError("a certificate of another version");
  const given = object(value, "certificate", ["version", "delta", "kind", "epsilon", ...PART], ["bits", "further"]);
  const delta = number(given.get("delta"), "delta");
  if (delta.top <= 0n || delta.compare(whole(1)) >= 0) refuse("delta", "between 0 and 1");
  const kind = given.get("kind");
  if (typeof kind !== "string" || !["exact", "bracket", "upper", "lower"].includes(kind)) refuse("kind", "exact, bracket, upper or lower");
  const ends = list(given.get("epsilon"), "epsilon", 2);
  const low = number(ends[0], "epsilon");
  const high = ends[1] === "infinity" ? null : number(ends[1], "epsilon");
  if (ends.length !== 2 || low.top < 0n || (high !== null && high.compare(low) < 0)) refuse("epsilon", "a lower and an upper bound, in order");
  const further = list(given.get("further") ?? [], "further").map((each) => part(object(each, "further", PART, ["bits"])));
  const parts = [part(given), ...further];
  const needed = parts.length > 1 || parts.some((each) => each.release === "sums" || each.steps.some((step) => step.release.reports > 1 || step.release.memory > 0 || step.name === "some groups revealed"));
  if (needed !== third) refuse("version", "3 for such a release, and only then");
  // An epsilon that is exact up to rounding is widened by one part in 10**9.
  const hair = (sign: bigint): Rational => new Rational(10n ** 9n + (kind === "exact" ? sign : 0n), 10n ** 9n);
  return { delta, low: low.times(hair(-1n)), high: high === null ? null : high.times(hair(1n)), parts };
}

