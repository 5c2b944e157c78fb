// Intervals of doubles that contain the true number, and rationals of whole numbers.
//
// An operation on doubles rounds to the nearest double, so its error is at most half a unit in the last place. The unit
// is at most |x| 2^-52, and the smallest positive double where numbers are subnormal. x + |x| 2^-52 + 2^-1074 therefore
// lies at least one unit above x, also after rounding, since x plus one unit is a double and rounding is monotone.

const UNIT = 2 ** -52;
const TINY = 2 ** -1074;

export const above = (x: number): number => x + Math.abs(x) * UNIT + TINY;
export const below = (x: number): number => x - Math.abs(x) * UNIT - TINY;

export class Interval {
  constructor(readonly low: number, readonly high: number) {
    if (!(low <= high)) throw new RangeError("bounds of an interval are out of order");
  }
  get middle(): number {
    return this.low + (this.high - this.low) / 2;
  }
  plus(other: Interval): Interval {
    return new Interval(below(this.low + other.low), above(this.high + other.high));
  }
  minus(other: Interval): Interval {
    return new Interval(below(this.low - other.high), above(this.high - other.low));
  }
  times(other: Interval): Interval {
    if (this.low >= 0 && other.low >= 0) {
      return new Interval(Math.max(0, below(this.low * other.low)), above(this.high * other.high));
    }
    const ends = [this.low * other.low, this.low * other.high, this.high * other.low, this.high * other.high];
    return new Interval(below(Math.min(...ends)), above(Math.max(...ends)));
  }
  over(other: Interval): Interval {
    if (other.low <= 0 && other.high >= 0) throw new RangeError("division by an interval that contains 0");
    const ends = [this.low / other.low, this.low / other.high, this.high / other.low, this.high / other.high];
    const low = below(Math.min(...ends));
    return new Interval(this.low >= 0 && other.low > 0 ? Math.max(0, low) : low, above(Math.max(...ends)));
  }
  /** The positive part. */
  get plusPart(): Interval {
    return new Interval(Math.max(0, this.low), Math.max(0, this.high));
  }
  power(exponent: number): Interval {
    let result = ONE;
    let square: Interval = this;
    for (let left = exponent; left > 0; left = Math.floor(left / 2)) {
      if (left % 2 === 1) result = result.times(square);
      if (left > 1) square = square.times(square);
    }
    return result;
  }
}

export const of = (whole: number): Interval => new Interval(whole, whole); // exact below 2^53
export const ZERO = of(0);
export const ONE = of(1);
export const sum = (terms: Interval[]): Interval => terms.reduce((total, term) => total.plus(term), ZERO);
export const largest = (first: Interval, second: Interval): Interval =>
  new Interval(Math.max(first.low, second.low), Math.max(first.high, second.high));
export const smallest = (first: Interval, second: Interval): Interval =>
  new Interval(Math.min(first.low, second.low), Math.min(first.high, second.high));

/** A rational number; the denominator is positive. */
export class Rational {
  constructor(readonly top: bigint, readonly bottom: bigint) {}
  static decimal(text: string): Rational {
    const [mantissa, exponent] = text.toLowerCase().split("e");
    const [whole, digits = ""] = mantissa.split(".");
    const shift = Number(exponent ?? 0) - digits.length;
    const top = BigInt(whole + digits);
    return shift >= 0 ? new Rational(top * 10n ** BigInt(shift), 1n) : new Rational(top, 10n ** BigInt(-shift));
  }
  times(other: Rational): Rational {
    return new Rational(this.top * other.top, this.bottom * other.bottom);
  }
  plus(other: Rational): Rational {
    return new Rational(this.top * other.bottom + other.top * this.bottom, this.bottom * other.bottom);
  }
  minus(other: Rational): Rational {
    return this.plus(new Rational(-other.top, other.bottom));
  }
  over(other: Rational): Rational {
    const [top, bottom] = [this.top * other.bottom, this.bottom * other.top];
    return bottom < 0n ? new Rational(-top, -bottom) : new Rational(top, bottom);
  }
  compare(other: Rational): number {
    const difference = this.top * other.bottom - other.top * this.bottom;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }
  get interval(): Interval {
    const negative = this.top < 0n;
    const top = negative ? -this.top : this.top;
    if (top === 0n) return ZERO;
    // 64 or more bits of the quotient, rounded down and up.
    const shift = BigInt(Math.max(0, 64 + this.bottom.toString(2).length - top.toString(2).length));
    const low = (top << shift) / this.bottom;
    const [first, last] = [scaled(low, shift).low, scaled(low + 1n, shift).high];
    return negative ? new Interval(-last, -first) : new Interval(first, last);
  }
}

export const whole = (value: number | bigint): Rational => new Rational(BigInt(value), 1n);

/** An interval with value / 2^shift, value >= 0. */
function scaled(value: bigint, shift: bigint): Interval {
  const spare = BigInt(Math.max(0, value.toString(2).length - 64));
  const [first, last] = [Number(value >> spare), Number((value >> spare) + 1n)];
  const factor = Number(spare - shift);
  const [half, rest] = [Math.trunc(factor / 2), factor - Math.trunc(factor / 2)];
  return new Interval(Math.max(0, below(below(first * 2 ** half) * 2 ** rest)), above(above(last * 2 ** half) * 2 ** rest));
}

const BITS = 256n;

/** e^x for x >= 0, in fixed-point numbers of 256 bits that are rounded down and up. */
export function exponential(x: Rational): Interval {
  const scale = 1n << BITS;
  const halvings = BigInt(Math.max(0, (x.top / x.bottom).toString(2).length + 12));
  const divisor = x.bottom << halvings;
  const [least, most] = [(x.top * scale) / divisor, (x.top * scale) / divisor + 1n];
  // The rest of the series is at most the last term, since x / 2^halvings is below 1/2.
  let [low, high, lowTerm, highTerm] = [scale, scale, scale, scale];
  for (let order = 1n; order < 40n; order++) {
    lowTerm = (lowTerm * least) / scale / order;
    highTerm = (highTerm * most) / scale / order + 2n;
    low += lowTerm;
    high += highTerm;
  }
  high += highTerm;
  for (let left = halvings; left > 0n; left--) {
    low = (low * low) / scale;
    high = (high * high) / scale + 1n;
  }
  return new Interval(scaled(low, BITS).low, scaled(high, BITS).high);
}
