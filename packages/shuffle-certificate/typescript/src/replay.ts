// Replays the steps of a certificate: each rule leads to simpler releases, and each law treats a plain release.

import { Certificate, Messages, Part, Release } from "./certificate";
import { Composed } from "./composed";
import { Trials, sumOf } from "./counts";
import { Interval, ONE, Rational, exponential, largest, smallest, sum, whole } from "./interval";
import { Bounds, Event, NotCheckedError, Plain, amongUniform, lawOf } from "./laws";

export class WrongStepError extends Error {}

const MOST_NUMBERS = 200;

interface Rule {
  page: string;
  on: string[];
  beside: string[];
}

const RULES: Record<string, Rule> = {
  "rounds composed": { page: "composition.md, Theorem 3", on: ["rounds"], beside: ["colluding", "targets", "reports", "groups", "own", "each", "random", "sums", "senders", "noisy order"] },
  "every group": { page: "pool.md, Corollary 7", on: ["targets"], beside: ["groups", "senders", "noisy order", "own", "random"] },
  "colluding people left out": { page: "histograms.md, Corollary 3", on: ["colluding"], beside: ["reports", "own"] },
  "memoized reports shuffled once": { page: "composition.md, Theorem 11", on: ["memory"], beside: ["senders", "capped multiset", "sums", "colluding"] },
  "a batch for each report": { page: "composition.md, Theorem 8", on: ["reports"], beside: ["senders", "noisy order", "sums", "own", "each", "random"] },
  "single ones counted": { page: "secure-sums.md, Theorem 1", on: ["sums"], beside: ["reports"] },
  "other groups seen": { page: "index.md", on: ["groups", "senders"], beside: [] },
  "some groups revealed": { page: "pool.md, Corollary 7", on: ["groups"], beside: [] },
  "between senders and counts": { page: "order.md, Theorem 1", on: ["noisy order"], beside: ["groups"] },
  "messages of all people together": { page: "histograms.md, Theorem 2", on: ["own"], beside: ["groups"] },
  "cap removed": { page: "traffic.md, Theorem 3", on: ["capped multiset"], beside: [] },
  "number of dummies seen": { page: "more-and-less.md, Theorem 8", on: ["random"], beside: ["groups"] },
};

const OWN = "true values among uniform messages";
const LAWS: Record<string, { page: string; shuffled: boolean | null; fits: (kind: string, k: number) => boolean }> = {
  [OWN]: { page: "histograms.md, Theorem 2", shuffled: null, fits: (kind) => kind === "response" },
  "k-ary randomized response, seen": { page: "index.md", shuffled: null, fits: (kind) => kind === "response" },
  "one report seen": { page: "index.md", shuffled: false, fits: () => true },
  "randomized response of two values, shuffled": { page: "two-values.md, Theorem 1", shuffled: true, fits: (kind, k) => kind === "response" && k === 2 },
  "k-ary randomized response, shuffled": { page: "blanket.md, Theorem 1", shuffled: true, fits: (kind, k) => kind === "response" && k > 2 },
  "flipped bits": { page: "crowds.md", shuffled: true, fits: (kind) => kind === "rows" },
  "sums of one-hot reports": { page: "secure-sums.md, Theorem 1", shuffled: true, fits: (kind) => kind === "bits" },
  "any finite randomizer": { page: "pool.md, Theorem 1", shuffled: true, fits: (kind) => kind === "rows" },
};
function fixed(messages: Messages): number | null {
  if (messages.each) return messages.trials;
  if (messages.table.length === 1) return messages.table[0][0];
  if (messages.table.length > 0) return null;
  if (messages.p.top === 0n) return 0;
  return messages.p.top === messages.p.bottom ? messages.trials : null;
}

function features(release: Release): string[] {
  const { messages } = release;
  const has: [string, boolean][] = [
    ["colluding", release.honest !== null],
    ["targets", release.targets.length > 1],
    ["reports", release.reports > 1],
    ["groups", release.groups.length > 1],
    ["own", messages?.own ?? false],
    ["each", messages?.each ?? false],
    ["random", messages !== null && !messages.own && fixed(messages) === null],
    ["rounds", release.rounds > 1 && release.memory === 0],
    ["memory", release.memory > 0],
    [release.view, release.view !== "multiset"],
  ];
  return has.filter(([, there]) => there).map(([name]) => name);
}

const written = (release: Release): string =>
  JSON.stringify(release, (_, value: unknown) => {
    if (value instanceof Object && !Array.isArray(value) && !(value instanceof Rational)) {
      return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
    }
    if (!(value instanceof Rational)) return value;
    let [a, b] = [value.top, value.bottom];
    while (b > 0n) [a, b] = [b, a % b];
    return `${value.top / a}/${value.bottom / a}`;
  });

const joined = (least: Bounds, parts: Bounds[], best: (a: Interval, b: Interval) => Interval): Bounds => ({
  most: (growth) => parts.map((part) => part.most(growth)).reduce(best),
  least: (growth) => least.least(growth),
  named: () => least.named(),
  composed: [least, ...parts].some((part) => part.composed),
});

/** A public random number of messages: delta is the mean. */
function mean(numbers: [number, Interval][], lost: number, at: (number: number) => Bounds): Bounds {
  if (numbers.length > MOST_NUMBERS) throw new NotCheckedError(`more than ${MOST_NUMBERS} numbers of messages`);
  const parts = numbers.map(([number, mass]): [Bounds, Interval] => [at(number), mass]);
  return {
    most: (growth) => sum([...parts.map(([part, mass]) => mass.times(part.most(growth))), new Interval(0, lost)]),
    least: (growth) => sum(parts.map(([part, mass]) => mass.times(part.least(growth)))),
    named: (): Event[][] => {
      throw new NotCheckedError("a composition of releases with a random number of messages");
    },
    composed: false,
  };
}

export function replay(certificate: Certificate, delta: number): Bounds {
  const wholes = certificate.parts.map((part) => new Derivation(part, delta).whole());
  return wholes.length === 1 ? wholes[0] : new Composed(wholes.map((each) => [each, 1]), delta);
}

class Derivation {
  private place = 0;
  constructor(private readonly part: Part, private readonly delta: number) {}

  whole(): Bounds {
    const { steps } = this.part;
    const bounds = this.step(steps[0].release);
    if (this.place < steps.length) this.wrong("a step after it belongs to no rule");
    const last = this.plain(steps[steps.length - 1].release);
    const stated = { shuffled: this.part.release !== "senders", n: this.part.n, dummies: this.part.dummies, own: this.part.randomizers[0] };
    if (last.shuffled !== stated.shuffled || last.n !== stated.n || last.dummies !== stated.dummies || last.randomizer !== stated.own) {
      this.wrong("it does not treat the plain release of the certificate");
    }
    return bounds;
  }

  private wrong(reason: string): never {
    throw new WrongStepError(`step ${this.place} of the derivation is wrong: ${reason}`);
  }

  private step(expected: Release): Bounds {
    if (this.place === this.part.steps.length) this.wrong("the step after it is missing");
    const { name, page, release } = this.part.steps[this.place];
    this.place += 1;
    if (written(release) !== written(expected)) this.wrong("its release does not follow from the step before");
    const [rule, law] = [RULES[name], LAWS[name]];
    if (rule === undefined && law === undefined) throw new NotCheckedError("a step that this checker does not replay");
    if (page !== (rule ?? law).page) this.wrong("it is proven on another page");
    if (rule === undefined) return this.law(name, release);
    const there = features(release);
    if (!rule.on.every((each) => there.includes(each)) || !there.every((each) => [...rule.on, ...rule.beside].includes(each))) {
      this.wrong("its rule is no theorem about its release");
    }
    return this.apply(name, release);
  }

  private apply(name: string, release: Release): Bounds {
    const { messages, groups, targets } = release;
    const own = this.part.randomizers[groups[0][1]];
    const alone: Release = { ...release, groups: [groups[targets[0]]], targets: [0] };
    switch (name) {
      case "rounds composed":
        return new Composed([[this.step({ ...release, rounds: 1 }), release.rounds]], this.delta);
      case "every group": {
        const parts = targets.map((target) => this.step({ ...release, targets: [target] }));
        const least: Bounds = { ...joined(parts[0], parts, largest), least: (growth) => parts.map((each) => each.least(growth)).reduce(largest) };
        return joined(least, parts, largest);
      }
      case "colluding people left out":
        return this.step(this.ofHonest(release));
      case "memoized reports shuffled once":
        if (release.memory > 1 || messages !== null) this.wrong("it needs values that never change, and no messages in addition");
        return this.step({ ...release, rounds: 1, memory: 0 });
      case "a batch for each report":
        return this.batches(release);
      case "single ones counted":
        if (own.bits !== undefined) this.wrong("its reports are no vectors with a single 1");
        return this.step({ ...release, view: "multiset" });
      case "other groups seen":
        return this.step(alone);
      case "some groups revealed": {
        const [single, mixed] = [this.step(alone), lawOf(this.plain(release))];
        return joined(mixed, [single, mixed], smallest);
      }
      case "between senders and counts": {
        const [seen, counted] = [this.step({ ...release, view: "senders", messages: null }), this.step({ ...release, view: "multiset" })];
        return joined(counted, [seen], smallest);
      }
      case "cap removed": {
        const uncapped = this.step({ ...release, view: "multiset" });
        const changed = this.overfull(this.plain(release));
        return {
          most: (growth) => uncapped.most(growth),
          least: (growth) => uncapped.least(growth).minus(growth.plus(ONE).times(changed)),
          named: () => {
            throw new NotCheckedError("a composition of releases with a cap");
          },
          composed: uncapped.composed,
        };
      }
      case "messages of all people together":
        return this.step({ ...release, messages: { ...messages!, own: false } });
      default:
        return this.counted(release);
    }
  }

  /**
   * Bounds the probability that a dummy falls on a target with n messages (traffic.md, Theorem 5). Without the cap that
   * target would get more than n messages; it is the value of all n people, or all but one target of at most half.
   */
  private overfull({ n, dummies, randomizer }: Plain): Interval {
    const { k, truth } = randomizer;
    if (truth === undefined || dummies > (k - 1) * n) return this.wrong("a cap needs randomized response, and room for the dummies");
    const bound = (own: number): Interval => {
      const no = whole(1).minus(truth).over(whole(k - 1));
      const trials: Trials[] = [[own, truth], [n - own, no], [dummies, new Rational(1n, BigInt(k))]];
      const exponent = (t: number): number =>
        trials.reduce((total, [count, p]) => total + count * Math.log1p(p.interval.middle * Math.expm1(t)), -t * (n + 1));
      // Chernoff's bound holds for every t, and its exponent is convex in t.
      let [low, high] = [0, 30];
      for (let turn = 0; turn < 100; turn++) {
        const [left, right] = [low + (high - low) / 3, high - (high - low) / 3];
        if (exponent(left) <= exponent(right)) high = right;
        else low = left;
      }
      const grown = exponential(new Rational(BigInt(Math.round(low * 2 ** 30)), 2n ** 30n));
      const factors = trials.map(([count, p]) => ONE.plus(p.interval.times(grown.minus(ONE))).power(count));
      const scale = ONE.over(grown).power(n + 1);
      return factors.reduce((total, factor) => total.times(factor), scale);
    };
    return bound(n).plus(whole(k - 1).interval.times(bound(Math.floor(n / 2))));
  }

  private ofHonest(release: Release): Release {
    if (release.groups.length > 1) this.wrong("it needs one group");
    const [[people, place]] = release.groups;
    const honest = Math.max(release.honest ?? 1, release.reports);
    let { messages } = release;
    if (messages?.own) {
      if (messages.trials % people > 0) this.wrong("the people do not make equal numbers of trials");
      messages = { ...messages, trials: (messages.trials / people) * honest };
    }
    return { ...release, groups: [[honest, place]], honest: null, messages };
  }

  /** A random number of dummies: the next step treats one of the numbers. */
  private counted(release: Release): Bounds {
    const messages = release.messages!;
    const trials: Trials[] = [[messages.trials, messages.p]];
    const counts = messages.table.length > 0 ? null : sumOf(trials);
    const numbers: [number, Interval][] = counts === null
      ? messages.table.map(([number, part]) => [number, part.interval])
      : counts.masses.map((mass, at) => [counts.first + at, mass]);
    const following = this.part.steps[this.place]?.release.messages;
    const number = following == null ? 0 : fixed(following);
    if (number === null || !numbers.some(([each]) => each === number)) this.wrong("the step after it is about another number of dummies");
    const withNumber = (count: number): Release => ({
      ...release,
      messages: count === 0 ? null : { trials: count, p: whole(1), own: false, table: [], each: false },
    });
    this.step(withNumber(number!));
    return mean(numbers, counts?.lost ?? 0, (count) => lawOf(this.plain(withNumber(count))));
  }

  private batches(release: Release): Bounds {
    const { view, reports: most, messages } = release;
    if (release.groups.length > 1) this.wrong("it needs one group");
    const [[people, place]] = release.groups;
    const seen = view === "senders" || view === "noisy order";
    if (seen && messages !== null) this.wrong("messages in addition have no senders");
    if (messages?.each && view !== "sums") this.wrong("messages of each value cannot be divided");
    let sent = messages;
    if (sent !== null) {
      const count = sent.table.length > 0 ? { ...sent, trials: sent.table[0][0], p: whole(1), table: [] } : sent;
      sent = { ...count, trials: Math.floor(count.trials / most) };
    }
    const batch: Release = seen
      ? { ...release, groups: [[1, place]], view: "senders", messages: null, reports: 1 }
      : { ...release, groups: [[Math.floor(people / most), place]], messages: sent, reports: 1 };
    const part = this.step(batch);
    const alike = people - this.part.others.reduce((total, [, count]) => total + count, 0);
    if (!(alike === 1 || (alike === most && view !== "senders"))) this.wrong("its named datasets are about other numbers of reports");
    if (view === "senders") return new Composed([[part, most]], this.delta);
    if (messages !== null && (messages.own || fixed(messages) === null)) throw new NotCheckedError("reports of one person among a random number of messages");
    const plain = this.plain({ ...release, reports: 1, view: view === "sums" ? "sums" : "multiset" });
    const below = lawOf({ ...plain, reports: alike });
    return new Composed([[part, most]], this.delta, below.named());
  }

  private law(name: string, release: Release): Bounds {
    const [plain, there, own] = [this.plain(release), features(release), release.messages];
    const { randomizer } = plain;
    const kind = randomizer.bits !== undefined ? "bits" : randomizer.rows !== undefined ? "rows" : "response";
    const law = LAWS[name];
    const fits = law.fits(kind, randomizer.k) && (law.shuffled === null || law.shuffled === plain.shuffled);
    const truthful = randomizer.truth !== undefined && randomizer.truth.compare(whole(1)) === 0;
    if (name === OWN) {
      if (!fits || own === null || !own.own || there.length > 1 || !truthful) this.wrong("it is no law of its release");
      const p = own!.p.times(new Rational(2n, BigInt(randomizer.k)));
      const exact = (growth: Interval): Interval => amongUniform(own!.trials, p, growth);
      return { most: exact, least: exact, named: () => [], composed: false };
    }
    const summed = kind === "bits" && there.includes("sums") && there.every((each) => each === "sums" || each === "each");
    const plainly = kind === "bits" ? summed : there.every((each) => each === "senders");
    if (!fits || !plainly) this.wrong("it is no law of its release");
    return lawOf(plain);
  }

  private plain(release: Release): Plain {
    const [people, place] = release.groups[release.targets[0]];
    const randomizer = this.part.randomizers[place];
    const number = release.messages === null ? 0 : fixed(release.messages) ?? 0;
    const shuffled = release.view !== "senders";
    if (number > 0 && randomizer.rows !== undefined && randomizer.dummy === undefined) this.wrong("its dummies have no distribution");
    const groups = shuffled ? release.groups.filter((_, at) => at !== release.targets[0]) : [];
    return {
      shuffled,
      randomizer,
      n: people,
      dummies: number,
      groups: groups.map(([count, at]) => [count, this.part.randomizers[at]]),
      others: this.part.others,
      target: this.part.target,
      reports: 1,
    };
  }
}

