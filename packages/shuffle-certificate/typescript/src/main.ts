// node dist/check.js FILE: checks a certificate, a list of certificates, or a result of hushuffle.

import { readFileSync } from "node:fs";

import { certificate } from "./certificate";
import { prepare } from "./counts";
import { Rational, exponential, whole } from "./interval";
import { Json, MalformedError, Numeral, parse } from "./json";
import { Bounds, NotCheckedError } from "./laws";
import { WrongStepError, replay } from "./replay";

const WORDS = ["contradicted", "not shown", "agrees", "not checked"] as const;
type Word = (typeof WORDS)[number];

interface Row {
  place: string;
  verdict: Word;
  reason: string;
}

const LARGEST = whole(700);
/** The part of delta that the steps of tables of losses may cost: docs/how-to/verify.md. */
const LOST = 0.1;

function end(bounds: Bounds, epsilon: Rational, delta: Rational, upper: boolean): [Word, string] {
  if (epsilon.compare(LARGEST) > 0) return ["not checked", "an epsilon above 700"];
  const growth = exponential(epsilon);
  const level = delta.interval;
  const side = upper ? "upper bound" : "lower bound";
  const most = (): number => bounds.most(growth).high;
  const least = (): number => bounds.least(growth).low;
  const value = upper ? most() : least();
  if (upper ? value <= level.low : value >= level.high) return ["agrees", ""];
  if (upper ? least() > level.high : most() < level.low) return ["contradicted", `${side}: delta is ${upper ? "larger" : "smaller"} there`];
  const share = value / level.middle;
  if (bounds.composed && upper && share < 1 + LOST) return ["not checked", "the tables of losses are too coarse to decide"];
  if (bounds.composed && !upper && share > 1 - LOST) return ["agrees", `attained up to the step of the tables, with ${(100 * share).toFixed(1)} % of delta`];
  return ["not shown", `${side}: ${upper ? "no available theorem proves it" : "the named pair does not attain it"}`];
}

function check(given: Json, place: string): Row {
  try {
    const claim = certificate(given);
    prepare(claim.delta.interval.middle);
    const bounds = replay(claim, claim.delta.interval.middle);
    const lower = claim.low.top === 0n ? (["agrees", ""] as [Word, string]) : end(bounds, claim.low, claim.delta, false);
    const upper = claim.high === null ? (["agrees", ""] as [Word, string]) : end(bounds, claim.high, claim.delta, true);
    const order: Word[] = ["contradicted", "not shown", "not checked", "agrees"];
    const verdict = order.find((word) => word === lower[0] || word === upper[0])!;
    return { place, verdict, reason: [lower[1], upper[1]].filter((reason) => reason !== "").join("; ") };
  } catch (error) {
    if (error instanceof NotCheckedError) return { place, verdict: "not checked", reason: error.message };
    if (error instanceof WrongStepError) return { place, verdict: "contradicted", reason: error.message };
    throw error;
  }
}

const members = (value: Json | undefined): Map<string, Json> => (value instanceof Map ? value : new Map());
const entries = (value: Json | undefined): Map<string, Json>[] => (Array.isArray(value) ? value.map(members) : []);
const plain = (value: Json | undefined): string => (value instanceof Numeral ? value.text : JSON.stringify(value ?? null));
const size = (value: Json | undefined): number | null =>
  value instanceof Numeral ? Number(value.text) : value === "infinity" ? Infinity : null;

function finding(given: Map<string, Json>): Row {
  const place = plain(given.get("question"));
  const [claim, bound] = [given.get("certificate"), members(given.get("bound"))];
  if (claim === null || claim === undefined) return { place, verdict: "not checked", reason: "no certificate is written for this figure" };
  if (!(claim instanceof Map)) throw new MalformedError("A certificate must be an object.");
  const ends = claim.get("epsilon");
  const stated = Array.isArray(ends) ? ends.map(plain) : [];
  const repeated = [bound, ...(given.get("shown") instanceof Map ? [members(given.get("shown"))] : [])];
  const same = repeated.every((each) => plain(each.get("lower")) === stated[0] && plain(each.get("upper")) === stated[1]);
  if (!same || plain(bound.get("kind")) !== plain(claim.get("kind"))) {
    return { place, verdict: "contradicted", reason: "the figure is not the one that its certificate is about" };
  }
  return check(claim, place);
}

/** Pass or fail of a target follows from its figure and limit. */
function target(given: Map<string, Json>): Row | null {
  const place = `target ${plain(given.get("key"))}`;
  const [figure, rule, limit] = [given.get("got"), given.get("rule"), size(given.get("asked"))];
  const stated = `${plain(given.get("met"))} ${plain(given.get("word"))}`;
  let follows = `null "not known"`;
  if (figure instanceof Map) {
    const [lower, upper] = [size(figure.get("lower")), size(figure.get("upper"))];
    if (lower === null || upper === null || limit === null) return { place, verdict: "contradicted", reason: "its figure or limit is no number" };
    const met = rule === "at least" ? lower >= limit : upper < limit || (rule === "at most" && upper === limit);
    const open = rule === "at least" ? upper >= limit : lower <= limit;
    follows = `${met} "${met ? "pass" : open && lower < upper ? "not shown" : "fail"}"`;
  }
  return stated === follows ? null : { place, verdict: "contradicted", reason: "pass or fail does not follow from the figure and the limit" };
}

function rowsOf(document: Json): Row[] {
  const result = members(document);
  const given = result.has("epsilon") && !result.has("findings") ? [document] : document;
  if (Array.isArray(given)) return given.map((each, at) => check(each, `certificate ${at}`));
  const findings = result.get("findings");
  if (!Array.isArray(findings) || findings.some((each) => !(each instanceof Map))) {
    throw new MalformedError("This is no result of hushuffle: it has no list of findings.");
  }
  const verdict = members(result.get("verdict"));
  const targets = entries(verdict.get("targets"));
  const rows = [...entries(findings).map(finding), ...targets.map(target).filter((row) => row !== null)];
  if (targets.length > 0 && verdict.get("met") !== targets.every((each) => each.get("met") === true)) {
    rows.push({ place: "verdict", verdict: "contradicted", reason: "it does not follow from its targets" });
  }
  return rows;
}

/** Return the lines to print and the exit code. */
function checked(text: string): [string[], number] {
  try {
    const rows = rowsOf(parse(text));
    const worst = WORDS.find((word) => rows.some((row) => row.verdict === word)) ?? "not checked";
    const lines = rows.map((row) => `${row.place}: ${row.verdict}${row.reason === "" ? "" : ` (${row.reason})`}`);
    return [[...lines, worst], worst === "agrees" ? 0 : worst === "not checked" ? 1 : 3];
  } catch (error) {
    if (error instanceof MalformedError) return [[error.message, "malformed"], 2];
    throw error;
  }
}

const [option, file] = [process.argv[2], process.argv[process.argv.length - 1]];
if (process.argv.length < 3 || process.argv.length > 4 || (process.argv.length === 4 && option !== "--vectors")) {
  process.stdout.write("usage: node check.js [--vectors] FILE\n");
  process.exit(2);
}
const content = readFileSync(file, "utf8");
if (option === "--vectors") {
  const vectors = entries(members(parse(content)).get("vectors"));
  for (const vector of vectors) {
    const start = Date.now();
    const [lines] = checked(vector.get("text") as string);
    const seconds = (Date.now() - start) / 1000;
    const row = { name: vector.get("name"), verdict: lines[lines.length - 1], reason: lines[0], seconds };
    process.stdout.write(`${JSON.stringify(row)}\n`);
  }
} else {
  const [lines, code] = checked(content);
  process.stdout.write(`${lines.join("\n")}\n`);
  process.exit(code);
}
