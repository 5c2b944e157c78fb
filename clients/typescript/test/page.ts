// What the page of the test does: holds the client against the vectors, then answers a task over HTTP; tells the server.

import { checkLimits, localEpsilon, spent } from "../src/limits";
import { browserStore, type Limits, Phone, PhoneError, Task, TryAgainError } from "../src/phone";
import { encapsulate, finalize, keyConfig, openResponse, proof } from "../src/seals";
import { base64, choose, type Document, groupOf, hex, pointOf, recordOf, type Round, unhex, utf8 } from "../src/task";

type Vectors = {
  task: string; id: string; code: string; gateway: string; answers: Record<string, unknown>;
  steps: { step: number; target: number; challenge: string; ticket_challenge: string; token: string; token_request: string; token_response: string; token_shown: string; ticket_request: string; ticket_shown: string; request: string; response: string }[];
  choices: { targets: number; sigma: number; convention: "uniform" | "exclusive"; only_on_purpose: boolean; own: number | null; words: string[]; target: number; carries: boolean }[];
  made: { groups: [unknown, number | null][]; records: [string, number][]; inverses: string[]; secrets: string[]; points: [Round, Document["values"], Record<string, unknown>, [number, string] | null][]; runs: string[]; local: number; refused: [Limits, string][]; column: Parameters<typeof groupOf>[0] };
};

const wrong: string[] = [];
function same(what: string, got: unknown, expected: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(expected)) wrong.push(`${what}: ${JSON.stringify(got)} is not ${JSON.stringify(expected)}`);
}
async function refused(what: string, work: () => Promise<unknown>, kind: typeof PhoneError, text: string): Promise<void> {
  try { await work(); wrong.push(`${what}: was not refused`); } catch (error) {
    if (!(error instanceof kind) || !error.message.includes(text)) wrong.push(`${what}: ${String(error)}`);
  }
}

async function vectors(given: Vectors): Promise<void> {
  const task = await Task.read(utf8(given.task), given.id);
  same("id", hex(task.id), given.id);
  for (const one of given.choices) {
    const words = [...one.words];
    same(`choice ${JSON.stringify(one)}`, [...choose(one, one.targets, one.own, () => unhex(words.shift()!)), words.length], [one.target, one.carries, 0]);
  }
  for (const [answer, group] of given.made.groups) same(`group of ${JSON.stringify(answer)}`, groupOf(given.made.column, answer), group);
  for (const [at, step] of given.steps.entries()) {
    const spki = base64(task.step(step.step).token_key), message = step.token.slice(0, 196);
    same("challenge", hex(await task.challenge(step.step, task.step(step.step).targets[step.target]!.name)), step.challenge);
    same("ticket challenge", hex(await task.ticketChallenge(step.step)), step.ticket_challenge);
    const found = recordOf(task.document, task.step(step.step), given.answers);
    same("record", found && [hex(found.record), found.own], given.made.records[at]);
    const blinded = { message, request: step.token_request, inverse: given.made.inverses[at]! };
    same("token", hex(await finalize(spki, blinded, unhex(step.token_response))), step.token);
    await refused("a wrong signature", () => finalize(spki, blinded, new Uint8Array(256)), PhoneError, "no signature");
    const envelope = { request: step.request, secret: given.made.secrets[at]!, aead: 2 as const };
    const [status, content] = await openResponse(envelope, unhex(step.response));
    same("response", [status, new TextDecoder().decode(content).trim()], [200, "taken"]);
    same("proof for a token", await proof(given.code, task.id, step.step, "token", spki, unhex(step.token_request)), step.token_shown);
    same("proof for a ticket", await proof(given.code, task.id, step.step, "ticket", spki, unhex(step.ticket_request)), step.ticket_shown);
    await refused("a damaged response", () => openResponse(envelope, unhex(step.response).reverse()), PhoneError, "damaged");
  }
  same("what scramblers learn together", localEpsilon(task.document).toFixed(9), given.made.local.toFixed(9));
  same("gateway", hex(keyConfig(task.document.chain[0]!.key)), given.gateway);
  for (const code of ["0".repeat(31), "code", "G".repeat(32)]) await refused("a code", () => proof(code, task.id, 1, "token", utf8(""), utf8("")), PhoneError, "32 hexadecimal digits");
  same("cost", await checkLimits({}, task.document), { epsilon: 0.8, delta: 1e-6 });
  for (const [limits, why] of given.made.refused) await refused(why, () => checkLimits(limits, task.document), PhoneError, why);
  let total: string | undefined;
  for (const name of ["a", "b", "b", "c"]) total = spent(total, name, task.document, { epsilon: 0.1, delta: 0 }, { budget: 0.3 });
  await refused("a fourth", async () => spent(total, "d", task.document, { epsilon: 0.1, delta: 0 }, { budget: 0.3 }), PhoneError, "budget = 0.3");
  await refused("a damaged total", async () => spent('{"a": 1}', "d", task.document, { epsilon: 0, delta: 0 }, {}), PhoneError, "damaged");
  for (const [about, values, answers, expected] of given.made.points) {
    const found = pointOf(about, values, answers);
    same("point", found && [found.own, hex(found.record)], expected);
  }
  await iterations(await Promise.all(given.made.runs.map((text) => Task.read(utf8(text)))));
  await refused("another document", () => Task.read(utf8(given.task + " "), given.id), PhoneError, "expected id");
  for (const text of ["[]", given.task.replace('"message":1024', '"message":2000000000'), given.task.replace('"message":1024', '"message":511'), given.task.padEnd(20_001)]) {
    await refused("no document", () => Task.read(utf8(text)), PhoneError, "no task document");
  }
  await refused("a key of another kind", () => encapsulate(new Uint8Array(45), "https://a.example/", new Uint8Array(), new Uint8Array()), PhoneError, "key configuration");
}

/** Three iterations of one run, another second one, another third one, and a second one with more people. */
async function iterations([first, second, third, fork, late, more]: Task[]): Promise<void> {
  const cost = { epsilon: 0.5, delta: 0 }, limits = { budget: 0.5 };
  const add = (total: string | undefined, task?: Task) => spent(total, hex(task!.id), task!.document, cost, limits);
  const one = add(undefined, first), two = add(one, second), three = add(two, third);
  const [run] = Object.values(JSON.parse(three) as Record<string, { epsilon: number; tasks: string[] }>);
  same("iterations", [run!.epsilon, run!.tasks], [0.5, [first, second, third].map((task) => hex(task!.id))]);
  same("again", [add(three, first), add(two, second)], [three, two]);
  for (const [what, total, task, why] of [
    ["a fork", two, fork, "another document of this iteration"], ["too late", three, fork, "or a later iteration"],
    ["not of the one before", two, late, "does not follow"], ["more people", one, more, "more than the centroids"],
  ] as const) await refused(what, async () => add(total, task), PhoneError, why);
  const missed = add(undefined, second);
  same("missed", Object.values(JSON.parse(missed) as Record<string, { tasks: unknown }>)[0]!.tasks, [null, hex(second!.id)]);
  await refused("the first after the second", async () => add(missed, first), PhoneError, "or a later iteration");
}

/** Two pages that spend at once: one of them is refused. */
async function both(): Promise<void> {
  const pages = [browserStore("shared"), browserStore("shared")];
  const spend = (at: number) => pages[at]!.change("total", (text) => spent(text, `task ${at}`, {} as Task["document"], { epsilon: 0.6, delta: 0 }, { budget: 1 }));
  const ends = await Promise.allSettled([spend(0), spend(1)]);
  same("two at once", ends.map((one) => one.status).sort(), ["fulfilled", "rejected"]);
}

const code = (person: number): string => person.toString(16).padStart(32, "0");

async function answered(): Promise<unknown> {
  const data = new Uint8Array(await (await fetch("/task.json")).arrayBuffer()), task = await Task.read(data), store = browserStore("first");
  const answers = { age: 33, smokes: "yes", bmi: 21.5 };
  await refused("no answers yet", () => Phone.of(task, store), PhoneError, "nothing was sent");
  await refused("answers that lack one", () => Phone.of(task, store, { age: 1 }), PhoneError, "lack bmi, smokes");
  await refused("too much", () => Phone.of(task, store, answers, { max_epsilon: 0.7 }), PhoneError, "above max_epsilon = 0.7");
  const phone = await Phone.of(task, store, answers);
  const poor = await Phone.of(task, browserStore("poor"), answers, { budget: 0.7 });
  await refused("a budget that is too small", () => poor.send(code(1)), PhoneError, "budget = 0.7");
  await refused("no code", () => phone.send("code"), PhoneError, "32 hexadecimal digits");
  for (let time = 0; time < 3; time++) await refused(`busy ${time}`, () => phone.send(code(0)), TryAgainError, "answered 503");
  const again = await Phone.of(task, browserStore("first"), { bmi: 21.5, smokes: "yes", age: 33, name: "of no task" });
  await again.send(code(0));
  await phone.send(code(0));
  const double = await Phone.of(task, browserStore("double"), answers);
  await refused("a code that was used", () => double.send(code(0)), PhoneError, "answered 403: the code was used already");
  await refused("another answer", () => Phone.of(task, store, { ...answers, age: 34 }), PhoneError, "the stored answers for this task differ");
  const { [hex(task.id)]: cost, ...others } = JSON.parse((await store.read("total"))!) as Record<string, unknown>;
  same("total", [cost, others], [{ epsilon: 0.8, delta: 1e-6, fixed: "", tasks: [hex(task.id)] }, {}]);
  await both();
  for (let other = 0; other < 12; other++) await (await Phone.of(task, browserStore(`other ${other}`), { ...answers, age: other ? 5 * other : null })).send(code(2 + other));
  const late = await Phone.of(await Task.read(new Uint8Array(await (await fetch("/late.json")).arrayBuffer())), browserStore("late"), answers);
  const { timeout } = AbortSignal, times: number[] = [];
  AbortSignal.timeout = (most) => { times.push(most); return timeout.call(AbortSignal, 300); };
  await refused("an answer that comes byte by byte", () => late.send(code(0)), TryAgainError, "in time");
  AbortSignal.timeout = timeout;
  same("time of an answer", times, [60_000]);
  return { passed: [...(await phone.passed())], parts: phone.parts.map((part) => [part.number, part.target, part.record]) };
}

async function main(): Promise<void> {
  let found: unknown = null;
  try {
    await vectors((await (await fetch("/vectors.json")).json()) as Vectors);
    found = await answered();
  } catch (error) { wrong.push(`failed: ${String(error)} ${(error as Error).stack}`); }
  await fetch("/done", { method: "POST", body: JSON.stringify({ wrong, found }) });
}
void main();
