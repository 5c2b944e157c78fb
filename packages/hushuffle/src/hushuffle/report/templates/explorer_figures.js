"use strict";
// Figures at any place of the sliders: those of the grid at its points, certified brackets between them.
const data = JSON.parse(document.getElementById("data").textContent, (_, value) => (value === "Infinity" ? Infinity : value));
const KINDS = ["exact", "bracket", "upper", "lower"];
const NAMES = { exact: "exact", bracket: "certified bracket", upper: "upper bound", lower: "lower bound" };
const HAIR = 1e-12; // what rounding may move an end that is computed here, relative
const devices = new Map(data.devices.map(device => [`${device[0]} ${device[1]}`, device]));

// What the places of the sliders, numbers of stops, stand for; `people` are those a person hides among.
function meant(places) {
  const value = key => data.axes[key].stops[places[key]];
  const n = value("n"), reports = data.reports, trusted = data.trusted[places.n];
  const asked = Math.ceil((value("colluders") * n) / (100 * reports));
  const colluders = Math.max(0, Math.min(asked, Math.ceil(n / reports) - 1));
  const k = value("k"), epsilon = value("epsilon");
  const device = devices.get(`${k} ${epsilon}`);
  const sent = data.perPerson ? places.dummies : 0;
  return { n, k, epsilon, delta: value("delta"), dummies: value("dummies"), colluders, device, trusted, sent,
    hidden: Math.max(trusted - colluders * reports, Math.min(trusted, reports)) };
}

// The figure of one adversary for so many people: lower and upper end, and kind.
function figure(key, at, people) {
  const adversary = data.adversaries[key], central = key === "central";
  const delta = central ? at.delta : 1, dummies = key === "linker" ? null : at.dummies;
  const ordered = data.axes.epsilon.ordered;
  const crowd = (some, more) => some + (data.dummiesCount && dummies !== null ? more : 0);
  const all = crowd(people, dummies);
  const scale = (end, epsilon) =>
    adversary.scaled ? Math.log1p((at.device[3] / devices.get(`${at.k} ${epsilon}`)[3]) * Math.expm1(end)) : end;
  const least = central || key === "linker" ? 0 : 1 / at.k;
  const most = central ? at.device[2] : 1;
  let lower = least, upper = most;
  for (const [k, some, more, epsilon, level, low, high, kind] of adversary.points) {
    if (k !== at.k) continue;
    const added = dummies === null ? 0 : more - dummies, others = crowd(some, more) - all;
    if (some === people && added === 0 && epsilon === at.epsilon && level === delta)
      return { lower: low, upper: high, kind: KINDS[kind], computed: true };
    if (added !== 0 && !data.axes.dummies.ordered) continue;
    if (!ordered && epsilon !== at.epsilon) continue;
    if (added <= 0 && others <= 0 && level <= delta && epsilon >= at.epsilon)
      upper = Math.min(upper, epsilon === at.epsilon ? high : scale(high, epsilon) * (1 + HAIR));
    if (added >= 0 && others >= 0 && level >= delta && epsilon <= at.epsilon)
      lower = Math.max(lower, epsilon === at.epsilon ? low : scale(low, epsilon) * (1 - HAIR));
  }
  lower = Math.min(lower, upper);
  const bounded = upper < most || (central && Number.isFinite(upper));
  const kind = lower === Infinity ? "exact" : lower > least ? (bounded ? "bracket" : "lower") : "upper";
  return { lower: kind === "upper" ? least : lower, upper: kind === "lower" ? most : upper, kind, computed: false };
}

// The probability of a right guess from all reports together, at most: docs/theory/guessing.md, Theorem 13.
function rightGuess(central, at) {
  const wrong = (at.k - 1) * Math.exp(-central.upper);
  const upper = Math.min(((1 + wrong * at.delta) / (1 + wrong)) * (1 + HAIR), 1);
  return { lower: 0, upper, kind: "upper", computed: central.computed };
}

function local(at) {
  return { lower: at.device[2], upper: at.device[2], kind: "exact", computed: true };
}

// The standard error of an estimated share, "rare" or "worst"; null where shares are not estimated.
function error(which, at) {
  const law = at.device[which === "rare" ? 4 : 5];
  if (law === null) return null;
  const [alone, each, beside] = law[at.sent];
  const end = Math.sqrt(alone / at.n + (each * at.dummies + beside) / at.n ** 2);
  return { lower: end, upper: end, kind: "exact", computed: true };
}

// Everything at one place, by the names of the rows; null where there is no figure.
function figures(places) {
  const at = meant(places), found = { local: local(at), rare: error("rare", at), worst: error("worst", at) };
  for (const [key, adversary] of Object.entries(data.adversaries))
    if (!adversary.derived) found[key] = adversary.points.length ? figure(key, at, adversary.colluding ? at.hidden : at.trusted) : null;
  found.colluders = found.central && figure("central", at, at.hidden);
  for (const [key, adversary] of Object.entries(data.adversaries))
    if (adversary.derived) found[key] = found.colluders && rightGuess(found.colluders, at);
  return found;
}

// A positive number times ten to the power of `places`, a whole number: to the nearest, or up or down.
function whole(value, places, up) {
  const [mantissa, size] = value.toExponential().split("e");
  const count = Math.max(places + 1 + Number(size), 0);
  const all = mantissa.replace(".", "").padEnd(count + 1, "0"), rest = all.slice(count);
  const more = up === undefined ? rest[0] >= "5" : up && /[1-9]/.test(rest);
  return BigInt(all.slice(0, count) || "0") + (more ? 1n : 0n);
}

const grouped = digits => digits.replace(/\B(?=(\d{3})+$)/g, ",");

// A number as in every report: so many digits, rounded outwards if `up` says which way, more of them near 1.
function number(value, up, count = 4) {
  if (!Number.isFinite(value)) return "infinity";
  if (value === 0) return "0";
  if (Number.isInteger(value) && value >= 10 ** count && value < 1e12) return grouped(String(value));
  const size = Number(value.toExponential().split("e")[1]), gap = 1 - value;
  let places = count - 1 - size;
  if (gap > 0 && gap < 10 ** -places) places = -Number(gap.toExponential(12).split("e")[1]);
  const digits = String(whole(value, places, up)), power = digits.length - 1 - places;
  if (power >= count && power < 12) return grouped(digits.padEnd(power + 1, "0").slice(0, power + 1));
  if (power >= -3 && power < count) {
    const padded = digits.padStart(places + 1, "0"), point = padded.length - places;
    return places ? `${padded.slice(0, point)}.${padded.slice(point)}` : padded;
  }
  const exponent = `${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  return `${digits[0]}.${digits.slice(1, count)}e${exponent}`;
}

// A figure as in every report, without its kind.
function written(found, unit) {
  const after = unit ? ` ${unit}` : "";
  if (found.kind === "exact") return number(found.upper) + after;
  if (found.kind === "upper") return `at most ${number(found.upper, true)}${after}`;
  if (found.kind === "lower") return `at least ${number(found.lower, false)}${after}`;
  const close = found.lower === found.upper || found.upper - found.lower <= 1e-6 * found.upper;
  if (close) return number(found.upper, true) + after;
  return `${number(found.lower, false)} to ${number(found.upper, true)}${after}`;
}

// A probability in per cent, with as many digits as tell it from 0 and 1.
function percent(share, up) {
  if (share === 0 || share === 1) return `${100 * share}\u00a0%`;
  if (share > 0.999) {
    const left = Number(number(1 - share, up === undefined ? undefined : !up, 2));
    return `${Number((100 * (1 - left)).toPrecision(12))}\u00a0%`;
  }
  const [mantissa, size] = share.toExponential().split("e");
  const shown = number(Number(`${mantissa}e${Number(size) + 2}`), up, share >= 0.1 ? 4 : 3);
  const [digits, exponent] = shown.split("e-");
  if (exponent === undefined || share < 1e-9) return `${shown}\u00a0%`;
  return `0.${"0".repeat(Number(exponent) - 1)}${digits.replace(".", "")}\u00a0%`;
}

// The specification at one place.
function toml(places) {
  const at = meant(places), parts = data.toml;
  const own = key => places[key] === data.axes[key].start;
  const stop = key => data.axes[key].written[places[key]].replace(/\.0$/, "");
  const pick = [
    own("n") && own("k") ? parts.top.own : parts.top.other,
    own("n") && own("k") ? parts.population.own : parts.population[at.k],
    own("epsilon") && own("k") ? parts.randomizer.own : parts.randomizer[at.k],
    data.perPerson && !(own("dummies") && own("k")) ? parts.shuffler[at.k][places.dummies] :
      own("dummies") ? parts.shuffler.own : at.dummies ? parts.shuffler.some : parts.shuffler.none,
    own("delta") ? parts.targets.own : parts.targets.other,
    at.colluders ? parts.statement.some : parts.statement.own,
    parts.rest,
  ];
  const numbers = { n: String(at.n), epsilon: stop("epsilon"), dummies: stop("dummies"), delta: stop("delta"),
    colluders: String(at.colluders) };
  return pick.filter(part => part).join("\n").replace(/\0(n|epsilon|dummies|delta|colluders)\0/g, (_, key) => numbers[key]);
}
