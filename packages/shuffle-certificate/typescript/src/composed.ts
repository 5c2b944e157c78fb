// Several releases with fresh randomness: docs/theory/composition.md, Lemma 1, Lemma 2, Theorem 3 and Lemma 5.

import { CERTAIN, Counts, convolved } from "./counts";
import { Interval, ONE, Rational, ZERO, above, exponential, of } from "./interval";
import { Bounds, Event, NotCheckedError } from "./laws";

const FINE = 0.03;
const FINER = 0.01;
const MOST_POINTS = 4000;
const MOST_LOSSES = 40_000;

const decimal = (x: number): Rational => {
  let [bottom, top] = [1n, x];
  while (!Number.isInteger(top)) [top, bottom] = [top * 2, bottom * 2n];
  return new Rational(BigInt(top), bottom);
};

export class Composed implements Bounds {
  composed = true;
  readonly parts: [Bounds, number][];
  private upper: { step: Rational; total: Counts } | undefined;
  constructor(private readonly given: [Bounds, number][], private readonly delta: number, private readonly below?: Event[][]) {
    this.parts = given.flatMap(([part, times]) =>
      part instanceof Composed ? part.parts.map(([inner, count]): [Bounds, number] => [inner, count * times]) : [[part, times]],
    );
  }

  named(): Event[][] {
    return this.below ?? this.given.flatMap(([part, times]) => Array.from({ length: times }, () => part.named()).flat());
  }

  most(growth: Interval): Interval {
    const { step, total } = (this.upper ??= this.table());
    let bound = total.lost;
    total.masses.forEach((mass, at) => {
      const index = total.first + at;
      const price = index >= 0 ? growth.over(power(step, index)) : growth.times(power(step, -index));
      bound = above(bound + above(mass.high * Math.max(0, above(1 - price.low))));
    });
    return new Interval(0, bound);
  }

  private table(): { step: Rational; total: Counts } {
    const distances = this.parts.map(([part]) => Math.min(Math.max(part.most(ONE).high, 1e-9), 0.9));
    const fine = this.parts.every(([part]) => part.cheap) ? FINE / 40 : FINE;
    const width = fine * 2.5 * Math.min(...distances);
    const step = decimal(Math.round(width * 2 ** 40) / 2 ** 40);
    const releases = this.parts.reduce((total, [, times]) => total + times, 0);
    let total = CERTAIN;
    for (const [part, times] of this.parts) {
      const pair = dominating(part, step, (this.delta * 1e-4) / releases);
      for (let round = 0; round < times; round++) total = convolved(total, pair);
      if (total.masses.length > MOST_LOSSES) throw new NotCheckedError("a composition of too many losses");
    }
    return { step, total };
  }

  least(growth: Interval): Interval {
    const releases = this.named();
    const finite = releases.map((events) =>
      events.map(({ p, q }) => (p.middle > 0 && q.middle > 0 ? Math.log(p.middle / q.middle) : p.middle > q.middle ? Infinity : -Infinity)),
    );
    const spreads = releases.map((events, at) => {
      const all = events.map(({ p }, place) => [p.middle, Math.max(-60, Math.min(60, finite[at][place]))]);
      const mean = all.reduce((sum, [p, loss]) => sum + p * loss, 0);
      return Math.sqrt(Math.max(all.reduce((sum, [p, loss]) => sum + p * (loss - mean) ** 2, 0), 1e-30));
    });
    const step = FINER * Math.max(...spreads);
    let [first, second] = [CERTAIN, CERTAIN];
    releases.forEach((events, at) => {
      const places = finite[at].map((loss) => Math.round(Math.max(-60, Math.min(60, loss)) / step));
      const low = Math.min(...places);
      const size = Math.max(...places) - low + 1;
      if (size > MOST_LOSSES) throw new NotCheckedError("a composition of too many losses");
      const [p, q] = [new Array<Interval>(size).fill(ZERO), new Array<Interval>(size).fill(ZERO)];
      events.forEach((event, place) => {
        p[places[place] - low] = p[places[place] - low].plus(event.p);
        q[places[place] - low] = q[places[place] - low].plus(event.q);
      });
      const counts = (masses: Interval[]): Counts => ({ first: low, masses, lost: 0 });
      [first, second] = [convolved(first, counts(p)), convolved(second, counts(q))];
    });
    let total = ZERO;
    first.masses.forEach((mass, at) => (total = total.plus(mass.minus(growth.times(second.masses[at])).plusPart)));
    return total;
  }
}

const powers = new Map<string, Interval>();

/** e^(step index), index >= 0. */
function power(step: Rational, index: number): Interval {
  const key = `${step.top}/${step.bottom} ${index}`;
  let value = powers.get(key);
  if (value === undefined) {
    value = exponential(step.times(new Rational(BigInt(index), 1n)));
    powers.set(key, value);
  }
  return value;
}

interface Point {
  x: Interval;
  y: number;
  index: number;
}

/** The losses, in steps, of a pair whose curve lies above that of a release: the lower hull of bounds and mirror images. */
function dominating(part: Bounds, step: Rational, negligible: number): Counts {
  const points: Point[] = [];
  for (let index = 0; ; index++) {
    if (index > MOST_POINTS) throw new NotCheckedError("a table of too many losses");
    const x = power(step, index);
    const y = Math.min(1, Math.max(0, part.most(x).high));
    points.push({ x, y, index });
    if (y <= negligible) break;
  }
  const mirrored = points.slice(1).map(({ x, y, index }): Point => {
    return { x: ONE.over(x), y: ONE.minus(ONE.minus(of(y)).over(x)).high, index: -index };
  });
  const hull: Point[] = [];
  for (const point of [{ x: ZERO, y: 1, index: NaN }, ...mirrored.reverse(), ...points]) {
    while (hull.length > 1 && !(slope(hull[hull.length - 1], point).low >= slope(hull[hull.length - 2], hull[hull.length - 1]).high)) {
      hull.pop(); // a chord between other points lies above, too
    }
    hull.push(point);
  }
  const slopes = hull.slice(1).map((point, at) => slope(hull[at], point));
  while (slopes.length > 0 && !(slopes[slopes.length - 1].high <= 0)) {
    slopes.pop();
    hull.pop();
  }
  slopes.push(ZERO);
  const corners = hull.slice(1);
  if (corners.length === 0) throw new NotCheckedError("a release whose bounds are all 1");
  const [first, last] = [corners[0].index, corners[corners.length - 1].index];
  const masses = new Array<Interval>(last - first + 1).fill(ZERO);
  corners.forEach(({ x, index }, at) => (masses[index - first] = x.times(slopes[at + 1].minus(slopes[at])).plusPart));
  return { first, masses, lost: corners[corners.length - 1].y };
}

function slope(left: Point, right: Point): Interval {
  return of(right.y).minus(of(left.y)).over(right.x.minus(left.x));
}
