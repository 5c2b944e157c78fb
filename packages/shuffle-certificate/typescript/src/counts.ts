// Distributions of counts: sums of independent Bernoulli trials.

import { Interval, ONE, Rational, ZERO, above, of, whole } from "./interval";

/** Counts with a smaller probability may be left out; `lost` bounds the probability that is left out. */
let faint = 1e-45;

/** Choose which counts are left out: those that hardly matter at this delta. */
export function prepare(delta: number): void {
  faint = Math.max(delta * 1e-22, 1e-60);
  cache.clear();
  tails.clear();
}

/** The masses of the counts from `first` on. */
export interface Counts {
  first: number;
  masses: Interval[];
  lost: number;
}

export type Trials = [number, Rational];

export const CERTAIN: Counts = { first: 0, masses: [ONE], lost: 0 };

const cache = new Map<string, Counts>();

/** Bin(trials, p). From the mode, each mass is a rational multiple of its neighbour. */
export function binomial(trials: number, p: Rational): Counts {
  const key = `${trials} ${p.top}/${p.bottom}`;
  const before = cache.get(key);
  if (before !== undefined) return before;
  const counts = computed(trials, p);
  if (cache.size > 20_000) cache.clear();
  cache.set(key, counts);
  return counts;
}

function computed(trials: number, p: Rational): Counts {
  if (p.top === 0n || trials === 0) return CERTAIN;
  if (p.top === p.bottom) return { first: trials, masses: [ONE], lost: 0 };
  const [yes, no] = [p.interval, whole(1).minus(p).interval];
  const mode = Math.min(trials, Math.floor((trials + 1) * yes.middle));
  // C(trials, mode) p^mode (1 - p)^(trials - mode); small and large factors alternate, so that no product overflows.
  let peak = ONE;
  let [ups, downs] = [mode, trials - mode];
  for (let i = 1; i <= mode; i++) {
    peak = peak.times(of(trials - mode + i)).over(of(i));
    while (peak.high > 1 && ups + downs > 0) peak = ups > 0 ? (ups--, peak.times(yes)) : (downs--, peak.times(no));
  }
  for (; ups > 0; ups--) peak = peak.times(yes);
  for (; downs > 0; downs--) peak = peak.times(no);
  const [right, left] = [[peak], [] as Interval[]];
  let omitted = 0;
  for (let u = mode, mass = peak; u < trials; u++) {
    mass = mass.times(yes.times(of(trials - u))).over(no.times(of(u + 1)));
    if (mass.high < faint) {
      omitted += trials - u;
      break;
    }
    right.push(mass);
  }
  for (let u = mode, mass = peak; u > 0; u--) {
    mass = mass.times(no.times(of(u))).over(yes.times(of(trials - u + 1)));
    if (mass.high < faint) {
      omitted += u;
      break;
    }
    left.push(mass);
  }
  return { first: mode - left.length, masses: [...left.reverse(), ...right], lost: above(omitted * faint) };
}

/** The distribution of the sum of two independent counts. */
export function convolved(a: Counts, b: Counts): Counts {
  const [few, many] = a.masses.length <= b.masses.length ? [a, b] : [b, a];
  const size = few.masses.length + many.masses.length - 1;
  const [low, high] = [new Float64Array(size), new Float64Array(size)];
  few.masses.forEach((mass, i) => {
    for (let j = 0; j < many.masses.length; j++) {
      low[i + j] += mass.low * many.masses[j].low;
      high[i + j] += mass.high * many.masses[j].high;
    }
  });
  // A sum of m products of positive doubles has a relative error below (m + 1) 2^-53, and an underflow below m 2^-1074.
  const terms = few.masses.length + 2;
  const masses = Array.from(low, (mass, at) => {
    const [less, more] = [mass * (1 - terms * 2 ** -52) - terms * 2 ** -1074, high[at] * (1 + terms * 2 ** -52)];
    return new Interval(Math.max(0, less), above(more + terms * 2 ** -1074));
  });
  return { first: a.first + b.first, masses, lost: above(a.lost + b.lost) };
}

export function sumOf(groups: Trials[]): Counts {
  return groups.map(([trials, p]) => binomial(trials, p)).reduce(convolved, CERTAIN);
}

export const massAt = (counts: Counts, count: number): Interval => counts.masses[count - counts.first] ?? ZERO;

const HALF = new Rational(1n, 2n);
const tails = new Map<number, Interval[]>();

/** P(Bin(trials, 1/2) >= least). */
export function fairTail(trials: number, least: number): Interval {
  if (least <= 0) return ONE;
  if (least > trials) return ZERO;
  let sums = tails.get(trials);
  if (sums === undefined) {
    const { first, masses, lost } = binomial(trials, HALF);
    sums = new Array<Interval>(trials + 1);
    let total = new Interval(0, lost);
    for (let count = trials; count >= 0; count--) {
      total = total.plus(masses[count - first] ?? ZERO);
      sums[count] = new Interval(Math.max(0, total.low), Math.min(1, total.high));
    }
    if (tails.size > 5000) tails.clear();
    tails.set(trials, sums);
  }
  return sums[least];
}

/** E [slope A - price]_+ for A ~ Bin(trials, 1/2) and slope > 0, by two tails: E [A; A >= c] = trials/2 P(A' >= c - 1). */
export function fairExcess(trials: number, slope: Interval, price: Interval): Interval {
  const level = price.middle / slope.middle;
  const cut = Math.ceil(level);
  if (cut > trials + 1) return ZERO;
  // The best threshold is the level, rounded up. Near a whole number it may be a neighbour of the computed one. The mean
  // is the largest over all thresholds, so that a wrong one only lowers it.
  const near = Math.abs(level - Math.round(level)) < 1e-7 * Math.max(1, Math.abs(level));
  let best = ZERO;
  for (const least of near ? [cut - 1, cut, cut + 1] : [cut]) {
    const mean = trials === 0 ? ZERO : of(trials / 2).times(fairTail(trials - 1, least - 1));
    const value = slope.times(mean).minus(price.times(fairTail(trials, least)));
    best = new Interval(Math.max(best.low, value.low), Math.max(best.high, value.high));
  }
  return best;
}
