// A phone's limits, set by its owner, and a running total that is written before anything is sent.

import { base64, type Document, hex, PhoneError, sha256 } from "./task";

/** What the owner gives at most, epsilon in nats; names and rules are those of limits.py. Left out: the defaults. */
export interface Limits {
  max_epsilon?: number; max_delta?: number; budget?: number; min_batch?: number;
  /** The largest epsilon if a role works against the phone. */
  max_epsilon_with?: { issuer?: number; scramblers?: number };
  /** Public keys, of which one at least must be in the chain; those of results that may publish; digests of all keys for tokens and tickets. */
  scramblers?: string[]; collectors?: string[]; issuers?: string[];
}
export interface Cost { epsilon: number; delta: number }
/** What was spent: by id of a task, of several iterations by that of the first one. `tasks` are those that were answered, by number. */
export type Runs = Record<string, Cost & { fixed: string; tasks: (string | null)[] }>;

const DEFAULTS = { max_epsilon: 5, max_delta: 1e-3, budget: 10, min_batch: 1, max_epsilon_with: {} };
const NAMES = [...Object.keys(DEFAULTS), "scramblers", "collectors", "issuers"];
/** Sums of decimal numbers in binary: three times 0.1 is 0.3. Stated figures are rounded up by more than that. */
const SLACK = 1 + 1e-9;

const amount = (value: unknown): value is number => typeof value === "number" && value >= 0 && value < Infinity;
function decline(why: string): never { throw new PhoneError(`${why}: this phone does not take part in the task, and nothing was sent.`); }

function filled(limits: Limits): Limits & typeof DEFAULTS {
  const { scramblers, collectors, issuers, max_epsilon_with, ...amounts } = { ...DEFAULTS, ...limits };
  const wrong = Object.keys(limits).filter((name) => !NAMES.includes(name));
  wrong.push(...Object.entries(amounts).filter(([name, value]) => name in DEFAULTS && !amount(value)).map(([name]) => name));
  for (const [role, value] of Object.entries(max_epsilon_with)) if (!["issuer", "scramblers"].includes(role) || !amount(value)) wrong.push(`max_epsilon_with.${role}`);
  for (const [name, keys] of Object.entries({ scramblers, collectors, issuers })) {
    if (keys !== undefined && !(Array.isArray(keys) && keys.every((one) => typeof one === "string" && one.length === 64))) wrong.push(name);
  }
  if (wrong.length) throw new PhoneError(`the limits have invalid names or values: ${wrong.join(", ")}. Nothing was sent.`);
  return { ...DEFAULTS, ...limits };
}

/**
 * What a task costs, as it says; refuses one that asks for more than the owner gives.
 *
 * What a document says of itself is true where one scrambler of its chain is honest: it opens messages only if it has computed the same
 * figures from the plan. What all scramblers learn together is computed here: nobody is believed.
 */
export async function checkLimits(given: Limits, document: Document): Promise<Cost> {
  const limits = filled(given), { epsilon, delta, issuer } = document.figures ?? {};
  if (!amount(epsilon) || !amount(delta) || delta >= 1) decline("the task states no valid epsilon and delta");
  const words = `epsilon is up to ${epsilon} at delta = ${delta}`;
  if (epsilon > limits.max_epsilon) decline(`${words}, above max_epsilon = ${limits.max_epsilon}`);
  if (delta > limits.max_delta) decline(`${words}, above max_delta = ${limits.max_delta}`);
  for (const step of document.steps) {
    if (!(step.min_batch >= limits.min_batch)) decline(`a batch may have ${step.min_batch} people, but min_batch is ${limits.min_batch}`);
  }
  for (const [role, most] of Object.entries(limits.max_epsilon_with)) {
    const found = role === "issuer" ? issuer : localEpsilon(document);
    if (!amount(found) || found > most! * SLACK) {
      decline(`with the ${role} colluding, epsilon is ${amount(found) ? `up to ${found}` : "not bounded"}, above max_epsilon_with.${role} = ${most}`);
    }
  }
  const trusted = limits.scramblers;
  if (trusted !== undefined && !document.chain.some((one) => trusted.includes(one.key))) decline("no scrambler of the task is in the limit `scramblers`");
  if (limits.collectors !== undefined && !limits.collectors.includes(document.result.key)) decline("the result of the task is not in the limit `collectors`");
  for (const key of document.steps.flatMap((step) => [step.token_key, step.ticket_key])) {
    if (limits.issuers !== undefined && !limits.issuers.includes(hex(await sha256(base64(key))))) decline("the task has keys for tokens or tickets that are not in the limit `issuers`");
  }
  return { epsilon, delta };
}

/** What all scramblers together learn of one person from where the messages went: epsilon, pure, in nats. */
export function localEpsilon(document: Pick<Document, "per_person" | "steps" | "round">): number {
  const found = document.steps.map(({ sigma, convention, targets: { length } }) => {
    if (length === 1) return 0;  // there is no other
    const own = convention === "exclusive" ? Math.max(1 - sigma, 1 / length) : 1 - sigma + sigma / length;
    return Math.log(own / (convention === "exclusive" ? (1 - own) / (length - 1) : sigma / length));
  });
  return (document.per_person === "one" ? Math.max(...found) : found.reduce((a, b) => a + b, 0)) * (document.round?.rounds ?? 1);
}

/** A text of what all iterations of a run have in common; of a task alone, nothing. */
function fixed(document: Document): string {
  const about = document.round;
  if (about === undefined) return "";
  const [{ name, token_key, ticket_key, ...step }, ...more] = document.steps as [Document["steps"][0] & { name?: string }, ...Document["steps"]];
  const keys = about.keys.length === about.rounds ? about.keys[about.number - 1] : undefined;
  if (more.length || keys?.[0] !== token_key || keys[1] !== ticket_key) decline("the run of the task has no keys for this iteration");
  const { number, start, steps, round, ...same } = document as Document & { number?: string; start?: string };
  const { rounds, scaled, norm, radius } = about;
  return JSON.stringify([same, step, rounds, scaled, norm ?? null, radius ?? null, about.keys]);
}

/** Whether a document is of the next iteration of the same run, and nothing but what may differs. */
export function follows(document: Document, former: Document, formerId: string): boolean {
  const about = document.round, before = former.round;
  if (about === undefined || before === undefined) return false;
  const same = about.former === formerId && about.run === (before.run ?? formerId) && about.number === before.number + 1;
  return same && fixed(document) === fixed(former);
}

/** Refuses a document that is not of the next iteration of a run that this phone takes part in. */
export function checkFollows(text: string | undefined, document: Document): void {
  const { number, run = "", former } = document.round!, known = read(text)[run];
  if (former === undefined || known?.tasks[number - 2] !== former || known.fixed !== fixed(document)) decline("the task does not follow from the iteration that this phone answered");
}

/**
 * The text of the total after a task was spent; one that was spent before costs nothing more. The iterations of one run cost what all of
 * them cost together, at the first that this phone answers; each is answered once, one after the other.
 */
export function spent(text: string | undefined, task: string, document: Document, cost: Cost, given: Limits): string {
  const limits = filled(given), runs = read(text), same = fixed(document);
  const { number, run = task, former } = document.round ?? { number: 1 };
  if (!(run in runs)) {
    const before = Object.values(runs).reduce((sum, one) => ({ epsilon: sum.epsilon + one.epsilon, delta: sum.delta + one.delta }), { epsilon: 0, delta: 0 });
    if (before.epsilon + cost.epsilon > limits.budget * SLACK || before.delta + cost.delta > limits.max_delta * SLACK) {
      const earlier = `earlier tasks spent epsilon ${before.epsilon} and delta ${before.delta}`;
      const most = `and the limits for all tasks are budget = ${limits.budget} and max_delta = ${limits.max_delta}`;
      decline(`the task would spend epsilon ${cost.epsilon} and delta ${cost.delta}, ${earlier}, ${most}`);
    }
    runs[run] = { ...cost, fixed: same, tasks: [] };
  }
  const { tasks } = runs[run]!, again = tasks[number - 1] === task;
  if (runs[run]!.fixed !== same) decline("the task is not an iteration of its run, since more than the centroids has changed");
  if (number <= tasks.length && !again) decline("this phone has answered another document of this iteration, or a later iteration");
  if (again) return text!;
  if (tasks.length && tasks.length === number - 1 && tasks.at(-1) !== former) decline("the task does not follow from the iteration that this phone answered");
  while (tasks.length < number - 1) tasks.push(null);
  tasks.push(task);
  return JSON.stringify(runs);
}

function read(text: string | undefined): Runs {
  try {
    const runs = JSON.parse(text ?? "{}") as Runs;
    if (Object.values(runs).every((one) => amount(one.epsilon) && amount(one.delta) && Array.isArray(one.tasks))) return runs;
  } catch { /* said below */ }
  throw new PhoneError("the stored total privacy loss is damaged: nothing was sent.");
}
