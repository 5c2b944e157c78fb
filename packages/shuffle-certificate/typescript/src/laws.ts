// Bounds on delta for one release without rules: docs/theory/two-values.md, blanket.md (Theorem 1 and 3), datasets.md
// (Theorem 8), secure-sums.md (Theorem 1), histograms.md (Theorem 2), index.md.
//
// `growth` is e^epsilon. A bound is an interval that contains a number; the number bounds delta.

import { Counts, Trials, binomial, convolved, fairExcess, massAt, sumOf } from "./counts";
import { Interval, ONE, Rational, ZERO, largest, of, sum, whole } from "./interval";

export class NotCheckedError extends Error {}

export type Row = Interval[];

/** A randomizer: `truth` for k-ary randomized response, `rows` for a matrix, `bits` for one-hot reports. */
export interface Randomizer {
  k: number;
  truth?: Rational;
  rows?: Row[];
  dummy?: Row;
  bits?: [Rational, Rational];
}

/** People with one randomizer among `groups` of other people, and `dummies`; a target with `reports` reports. */
export interface Plain {
  shuffled: boolean;
  randomizer: Randomizer;
  n: number;
  dummies: number;
  groups: [number, Randomizer][];
  others: [number, number][];
  target: [number, number];
  reports: number;
}

/** The probabilities of an event of the named datasets. */
export interface Event {
  p: Interval;
  q: Interval;
}

/** `most` bounds delta for all datasets from above, `least` for the named datasets from below. */
export interface Bounds {
  most(growth: Interval): Interval;
  least(growth: Interval): Interval;
  named(): Event[][];
  composed: boolean;
  /** Whether a bound takes so little time that a table of losses may be fine. */
  cheap?: boolean;
}

/** Largest number of reports of two values, and largest number of terms of a sum. */
const MOST_COUNTS = 200_000;
const MOST_TERMS = 15e6;
const MOST_WORK = 1e7;

const lie = (randomizer: Randomizer): Rational => whole(1).minus(randomizer.truth!).over(whole(randomizer.k - 1));
const positive = (number: Interval): boolean => number.high > 0;
const excess = (growth: Interval): Interval => growth.minus(ONE);

export function divergence(events: Event[], growth: Interval): Interval {
  return sum(events.map(({ p, q }) => p.minus(growth.times(q)).plusPart));
}

/** The bounds for a plain release. Named datasets with other numbers of people or values attain nothing. */
export function lawOf(plain: Plain): Bounds {
  const law = chosen(plain);
  const people = plain.groups.reduce((total, [count]) => total + count, plain.n);
  const counted = plain.others.reduce((total, [, count]) => total + count, plain.reports);
  const values = [...plain.target, ...plain.others.map(([value]) => value)];
  if ((counted === people || !plain.shuffled) && values.every((value) => value < plain.randomizer.k)) return law;
  return {
    most: (growth) => law.most(growth),
    least: () => ZERO,
    named: () => [[{ p: ONE, q: ONE }]],
    composed: law.composed,
    cheap: law.cheap,
  };
}

function chosen(plain: Plain): Bounds {
  const { randomizer, shuffled } = plain;
  if (randomizer.bits !== undefined) return new Bits(plain);
  if (!shuffled) return new Seen(plain);
  if (randomizer.rows !== undefined) return new Matrix(plain);
  if (plain.groups.length === 0 && randomizer.truth!.compare(whole(1)) === 0) return new Truthful(plain);
  if (randomizer.k === 2) return new Two(plain);
  return new Response(plain);
}

/** Every report is seen with its sender: the divergence of two rows. */
class Seen implements Bounds {
  composed = false;
  cheap = true;
  constructor(private readonly plain: Plain) {}
  private rows(): Row[] {
    const { randomizer } = this.plain;
    if (randomizer.rows !== undefined) return randomizer.rows;
    const [yes, no] = [randomizer.truth!.interval, lie(randomizer).interval];
    const rest = no.times(of(randomizer.k - 2));
    return [[yes, no, rest], [no, yes, rest]]; // all pairs of values are alike
  }
  private at(first: Row, second: Row): Event[] {
    return first.map((p, y) => ({ p, q: second[y] }));
  }
  most(growth: Interval): Interval {
    const rows = this.rows();
    let best = ZERO;
    rows.forEach((a, x) => rows.forEach((b, z) => x === z || (best = largest(best, divergence(this.at(a, b), growth)))));
    return best;
  }
  least(growth: Interval): Interval {
    return divergence(this.named()[0], growth);
  }
  named(): Event[][] {
    const [a, b] = this.plain.randomizer.rows === undefined ? [0, 1] : this.plain.target;
    return [this.at(this.rows()[a], this.rows()[b])];
  }
}

/** A true value among a number of uniform messages: of those at the target's two values, half are at either one. */
class Truthful implements Bounds {
  composed = false;
  constructor(private readonly plain: Plain) {}
  most(growth: Interval): Interval {
    return amongUniform(this.plain.dummies, new Rational(2n, BigInt(this.plain.randomizer.k)), growth);
  }
  least(growth: Interval): Interval {
    return this.most(growth);
  }
  named(): Event[][] {
    throw new NotCheckedError("a composition of true values among messages");
  }
}

export function amongUniform(trials: number, p: Rational, growth: Interval): Interval {
  const numbers = binomial(trials, p);
  const terms = numbers.masses.map((mass, at) =>
    mass.times(threshold(sumOf([[numbers.first + at, new Rational(1n, 2n)]]), ONE, excess(growth))),
  );
  return sum([...terms, new Interval(0, numbers.lost)]);
}

/** The largest of up P(X = u) - price P(X > u) over u, and 0 (two-values.md, Theorem 1). */
function threshold(counts: Counts, up: Interval, price: Interval): Interval {
  let best = ZERO;
  let beyond = new Interval(0, counts.lost);
  for (let at = counts.masses.length - 1; at >= 0; at--) {
    best = largest(best, up.times(counts.masses[at]).minus(price.times(beyond)));
    beyond = beyond.plus(counts.masses[at]);
  }
  // A mass that was left out is at most `lost`.
  return new Interval(best.low, best.high + Math.max(0, up.high) * counts.lost * (1 + 1e-9));
}

/** Randomized response of two values, shuffled: exact for each number of ones among the others. */
class Two implements Bounds {
  composed = false;
  private readonly others: number;
  constructor(private readonly plain: Plain) {
    if (plain.groups.length > 0) throw new NotCheckedError("shuffled groups with two values");
    this.others = plain.n - plain.reports;
    if (plain.n + plain.dummies > MOST_COUNTS) throw new NotCheckedError(`more than ${MOST_COUNTS} reports of two values`);
  }
  private counts(ones: number, zeros: number): Counts {
    const truth = this.plain.randomizer.truth!;
    return sumOf([[ones, truth], [zeros, whole(1).minus(truth)], [this.plain.dummies, new Rational(1n, 2n)]]);
  }
  private at(ones: number, zeros: number, growth: Interval): Interval {
    const { truth } = this.plain.randomizer;
    const up = truth!.interval.minus(growth.times(whole(1).minus(truth!).interval));
    return positive(up) ? threshold(this.counts(ones, zeros), up, excess(growth)) : ZERO;
  }
  /** Ranges of compositions are halved where the bound is largest: two-values.md, Theorem 4. */
  most(growth: Interval): Interval {
    let ranges = [{ low: 0, high: this.others, bound: this.at(0, 0, growth) }];
    for (;;) {
      const worst = ranges.reduce((a, b) => (a.bound.high >= b.bound.high ? a : b));
      if (worst.low === worst.high) return worst.bound;
      const middle = Math.floor((worst.low + worst.high) / 2);
      ranges = ranges.filter((range) => range !== worst);
      for (const [low, high] of [[worst.low, middle], [middle + 1, worst.high]]) {
        ranges.push({ low, high, bound: this.at(low, this.others - high, growth) });
      }
    }
  }
  private ones(): [number, number] {
    const held = this.plain.others.find(([value]) => value === 1)?.[1] ?? 0;
    return this.plain.target[0] === 1 ? [held, this.others - held] : [this.others - held, held];
  }
  least(growth: Interval): Interval {
    return this.plain.reports === 1 ? this.at(...this.ones(), growth) : divergence(this.named()[0], growth);
  }
  named(): Event[][] {
    const [ones, zeros] = this.ones();
    const crowd = this.counts(ones, zeros);
    const { truth } = this.plain.randomizer;
    const first = convolved(crowd, binomial(this.plain.reports, truth!));
    const second = convolved(crowd, binomial(this.plain.reports, whole(1).minus(truth!)));
    const [from, length] = [Math.min(first.first, second.first), this.others + this.plain.dummies + this.plain.reports + 1];
    const lost = new Interval(0, second.lost);
    return [
      Array.from({ length }, (_, at) => ({
        p: massAt(first, from + at),
        q: at === 0 ? massAt(second, from).plus(lost) : massAt(second, from + at),
      })),
    ];
  }
}

/** k-ary randomized response, k >= 3, perhaps among groups with other noise. */
class Response implements Bounds {
  composed = false;
  private readonly crowd: [number, Rational][];
  constructor(private readonly plain: Plain) {
    const { k } = plain.randomizer;
    for (const [, each] of plain.groups) {
      if (each.truth === undefined || each.k !== k) throw new NotCheckedError("groups of different kinds");
    }
    this.crowd = [[plain.n - plain.reports, plain.randomizer.truth!], ...plain.groups.map(([count, each]): Trials => [count, each.truth!])];
    // The numbers N and S of blanket reports, or C and S of reports elsewhere, are within some 13 standard deviations.
    const reports = this.crowd.reduce((total, [count]) => total + count, plain.dummies);
    const spread = (p: number): number => Math.min(reports, 26 * Math.sqrt(reports * p * (1 - p)) + 20);
    const no = 1 - plain.randomizer.truth!.interval.middle;
    if (spread(Math.min(no, 0.5)) * spread(Math.min(2 / k, 0.5)) > MOST_TERMS) throw new NotCheckedError("too many reports of randomized response");
  }
  private get uniform(): Rational {
    return new Rational(1n, BigInt(this.plain.randomizer.k));
  }
  /** The blanket's bound: N = 1 + dummies + Bin(others, gamma), S ~ Bin(N, 2/k), A ~ Bin(S, 1/2). */
  most(growth: Interval): Interval {
    const { k, truth } = this.plain.randomizer;
    const shares = this.crowd.map(([count, t]): Trials => [count, whole(k).times(whole(1).minus(t)).over(whole(k - 1))]);
    const [theta, gamma] = [truth!.minus(lie(this.plain.randomizer)), whole(k).times(lie(this.plain.randomizer))];
    const pull = whole(k).times(theta).interval;
    const alone = truth!.interval.minus(growth.times(lie(this.plain.randomizer).interval)).plusPart;
    const slope = pull.times(ONE.plus(growth));
    const numbers = sumOf(shares);
    let total = alone.times(new Interval(0, numbers.lost));
    numbers.masses.forEach((mass, at) => {
      const reports = numbers.first + at + 1 + this.plain.dummies;
      const signs = binomial(reports, new Rational(2n, BigInt(k)));
      const even = gamma.interval.times(excess(growth)).times(of(reports));
      let inner = new Interval(0, pull.high * reports * signs.lost);
      signs.masses.forEach((chance, place) => {
        const s = signs.first + place;
        const price = pull.times(growth).times(of(s)).plus(even);
        inner = inner.plus(chance.times(fairExcess(s, slope, price)));
      });
      total = total.plus(mass.times(inner).over(of(reports)));
    });
    return new Interval(Math.min(total.low, alone.low), Math.min(total.high, alone.high));
  }
  /** Exact if all others hold one value: datasets.md, Theorem 8. */
  least(growth: Interval): Interval {
    if (this.plain.reports > 1) return divergence(this.named()[0], growth);
    const { k, truth } = this.plain.randomizer;
    const held = this.plain.others.filter(([, count]) => count > 0).map(([value]) => value);
    if (held.length !== 1) return divergence(this.named()[0], growth);
    const [first, second] = this.plain.target;
    const no = lie(this.plain.randomizer);
    const [mu, nu, theta] = [truth!.interval, no.interval, truth!.minus(no).interval];
    const counts = sumOf([...this.crowd, [this.plain.dummies, this.uniform]]);
    const reports = this.crowd.reduce((total, [count]) => total + count, 1) + this.plain.dummies;
    const away = of(k - 1);
    let total = ZERO;
    for (let c = counts.first; c <= counts.first + counts.masses.length; c++) {
      const [here, before] = [massAt(counts, c), massAt(counts, c - 1)];
      const elsewhere = reports - c;
      const even = away.times(nu).times(here);
      const low = even.plus(nu.times(before));
      const high = even.plus(mu.times(before));
      if (elsewhere === 0) {
        const [p, q] = [first === held[0] ? high : low, second === held[0] ? high : low];
        total = total.plus(p.minus(growth.times(q)).plusPart);
        continue;
      }
      const bend = away.times(theta).times(here).over(of(elsewhere));
      if (first !== held[0] && second !== held[0]) {
        if (!(bend.low > 0)) continue;
        const signs = binomial(elsewhere, new Rational(2n, BigInt(k - 1)));
        signs.masses.forEach((chance, place) => {
          const s = signs.first + place;
          const price = bend.times(growth).times(of(s)).plus(excess(growth).times(low));
          total = total.plus(chance.times(fairExcess(s, bend.times(ONE.plus(growth)), price)));
        });
        continue;
      }
      const moved = binomial(elsewhere, new Rational(1n, BigInt(k - 1)));
      moved.masses.forEach((chance, place) => {
        const other = low.plus(bend.times(of(moved.first + place)));
        const gain = first === held[0] ? high.minus(growth.times(other)) : other.minus(growth.times(high));
        total = total.plus(chance.times(gain.plusPart));
      });
    }
    return total;
  }
  named(): Event[][] {
    const { k } = this.plain.randomizer;
    const values = [...new Set([...this.plain.target, ...this.plain.others.map(([value]) => value)])];
    const row = (truth: Rational, value: number): Row => {
      const no = whole(1).minus(truth).over(whole(k - 1));
      const listed = values.map((each) => (each === value ? truth : no).interval);
      return k > values.length ? [...listed, no.times(whole(k - values.length)).interval] : listed;
    };
    const uniform = [...values.map(() => this.uniform.interval), this.uniform.times(whole(k - values.length)).interval];
    const crowds: [number, Row][] = [];
    if (this.crowd.length === 1) {
      for (const [value, count] of this.plain.others) crowds.push([count, row(this.crowd[0][1], value)]);
    } else {
      if (this.plain.others.length !== 1) throw new NotCheckedError("groups whose named datasets have several values");
      for (const [count, truth] of this.crowd) crowds.push([count, row(truth, this.plain.others[0][0])]);
    }
    crowds.push([this.plain.dummies, uniform.slice(0, crowds[0]?.[1].length ?? uniform.length)]);
    const [a, b] = this.plain.target.map((value) => row(this.plain.randomizer.truth!, value));
    return [histograms(a, b, crowds, this.plain.reports)];
  }
}

type Histogram = Map<string, Interval>;

/** The distribution of the histogram of reports after one more report. */
function added(before: Histogram, row: Row): Histogram {
  const after: Histogram = new Map();
  for (const [key, mass] of before) {
    const counts = key.split(",").map(Number);
    row.forEach((p, y) => {
      if (p.high === 0) return;
      const next = counts.map((count, place) => count + (place === y ? 1 : 0)).join(",");
      const share = mass.times(p);
      const there = after.get(next);
      after.set(next, there === undefined ? share : there.plus(share));
    });
  }
  return after;
}

const cells = (reports: number, kinds: number): number => {
  let total = 1;
  for (let i = 1; i < kinds; i++) total *= (reports + i) / i;
  return total;
};

function crowdOf(crowds: [number, Row][], kinds: number): Histogram {
  const reports = crowds.reduce((total, [count]) => total + count, 0);
  if (reports * kinds * cells(reports, kinds) > MOST_WORK) throw new NotCheckedError("too many histograms of reports");
  let crowd: Histogram = new Map([[new Array<number>(kinds).fill(0).join(","), ONE]]);
  for (const [count, row] of crowds) for (let i = 0; i < count; i++) crowd = added(crowd, row);
  return crowd;
}

function histograms(a: Row, b: Row, crowds: [number, Row][], reports: number): Event[] {
  const crowd = crowdOf(crowds, a.length);
  let [first, second] = [crowd, crowd];
  for (let i = 0; i < reports; i++) [first, second] = [added(first, a), added(second, b)];
  return [...new Set([...first.keys(), ...second.keys()])].map((key) => ({
    p: first.get(key) ?? ZERO,
    q: second.get(key) ?? ZERO,
  }));
}

/** Any matrix and few people: every pair of neighbouring datasets is enumerated. */
class Matrix implements Bounds {
  composed = false;
  private readonly rows: Row[];
  private readonly dummy: Row;
  private every: Event[][] | undefined;
  constructor(private readonly plain: Plain) {
    if (plain.groups.length > 0 || plain.reports > 1) throw new NotCheckedError("groups, or reports of one person, of a matrix");
    // Reports with equal columns have the same likelihood ratios, so their sum reveals as much.
    const { rows, dummy } = plain.randomizer;
    const alike = new Map<string, number[]>();
    rows![0].forEach((_, y) => {
      const key = [...rows!.map((row) => `${row[y].low} ${row[y].high}`), dummy?.[y].low ?? ""].join(" ");
      alike.set(key, [...(alike.get(key) ?? []), y]);
    });
    const merged = (row: Row): Row => [...alike.values()].map((places) => sum(places.map((y) => row[y])));
    this.rows = rows!.map(merged);
    this.dummy = dummy === undefined ? [] : merged(dummy);
    const [k, kinds] = [this.rows.length, this.rows[0].length];
    const work = cells(plain.n - 1, k) * k * k * cells(plain.n + plain.dummies, kinds) * kinds;
    if (work > MOST_WORK) throw new NotCheckedError("a matrix with too many datasets to enumerate (no theorem of the page Pool)");
  }
  private pair(others: [number, number][], a: number, b: number): Event[] {
    const crowds = others.map(([value, count]): [number, Row] => [count, this.rows[value]]);
    if (this.plain.dummies > 0) crowds.push([this.plain.dummies, this.dummy]);
    return histograms(this.rows[a], this.rows[b], crowds, 1);
  }
  private *compositions(people: number, values: number): Generator<number[]> {
    if (values === 1) {
      yield [people];
      return;
    }
    for (let count = 0; count <= people; count++) {
      for (const rest of this.compositions(people - count, values - 1)) yield [count, ...rest];
    }
  }
  most(growth: Interval): Interval {
    if (this.every === undefined) {
      this.every = [];
      const k = this.rows.length;
      for (const others of this.compositions(this.plain.n - 1, k)) {
        const held = others.map((count, value): [number, number] => [value, count]).filter(([, count]) => count > 0);
        for (let a = 0; a < k; a++) for (let b = 0; b < k; b++) if (a !== b) this.every.push(this.pair(held, a, b));
      }
    }
    return this.every.reduce((best, events) => largest(best, divergence(events, growth)), ZERO);
  }
  least(growth: Interval): Interval {
    return divergence(this.named()[0], growth);
  }
  named(): Event[][] {
    return [this.pair(this.plain.others, ...this.plain.target)];
  }
}

/** Sums of one-hot reports of few people: the columns of the target's two values are independent. */
class Bits implements Bounds {
  composed = false;
  constructor(private readonly plain: Plain) {
    if (plain.n + plain.dummies > 24) throw new NotCheckedError("sums of one-hot reports of more than 24 people and random bits");
    if (plain.reports > 1) throw new NotCheckedError("several one-hot reports of one person");
  }
  private column(held: number, own: [Rational, Rational]): Event[] {
    const [p, q] = this.plain.randomizer.bits!;
    const crowd = sumOf([[held, p], [this.plain.n - 1 - held, q], [this.plain.dummies, new Rational(1n, 2n)]]);
    const [first, second] = own.map((chance) => convolved(crowd, binomial(1, chance)));
    return Array.from({ length: this.plain.n + this.plain.dummies + 1 }, (_, at) => ({ p: massAt(first, at), q: massAt(second, at) }));
  }
  private columns(a: number, b: number): [Event[], Event[]] {
    const [p, q] = this.plain.randomizer.bits!;
    return [this.column(a, [p, q]), this.column(b, [q, p])];
  }
  most(growth: Interval): Interval {
    const others = this.plain.n - 1;
    let best = ZERO;
    for (let a = 0; a <= others; a++) {
      for (let b = this.plain.randomizer.k > 2 ? 0 : others - a; b <= others - a; b++) {
        best = largest(best, divergence(product(...this.columns(a, b)), growth));
      }
    }
    return best;
  }
  least(growth: Interval): Interval {
    return divergence(product(...(this.named() as [Event[], Event[]])), growth);
  }
  named(): Event[][] {
    const held = this.plain.target.map((value) => this.plain.others.find(([each]) => each === value)?.[1] ?? 0);
    return this.columns(held[0], held[1]);
  }
}

function product(first: Event[], second: Event[]): Event[] {
  return first.flatMap((a) => second.map((b) => ({ p: a.p.times(b.p), q: a.q.times(b.q) })));
}
