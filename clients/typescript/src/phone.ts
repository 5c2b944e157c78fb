// A phone's side of a task. What it sends is kept before the first byte leaves: who starts again sends the same bytes.

import { checkFollows, checkLimits, follows, type Limits, spent } from "./limits";
import { type Blinded, blind, encapsulate, type Envelope, finalize, keyConfig, openResponse, proof, seal } from "./seals";
import {
  type Answers, base64, below, type Bytes, choose, hex, joined, number16, PhoneError, random, recordOf, sha256, Task, unhex, utf8,
} from "./task";

export { type Limits, PhoneError, Task };

/** Somebody could not be reached or has no time: the same bytes can be sent once more. */
export class TryAgainError extends PhoneError {}

/**
 * Keeps texts by name. `create` writes one that is not there yet, and returns what is there then. `change` writes what is made of the text
 * that is there; nobody else writes meanwhile, and nothing is written if `make` throws.
 */
export interface Store {
  read(name: string): Promise<string | undefined>;
  create(name: string, text: string): Promise<string>;
  change(name: string, make: (text: string | undefined) => string): Promise<void>;
}

/** What a phone does in one step. */
interface Part { number: number; target: number; record: string | null; blinded: Blinded; ticket: Blinded }
interface Kept { answers: string; parts: Part[] }

const TOTAL = "total", SEAL = 48, TOKEN = 354, NO_DATA = 0xffff;

function opened(name: string, failed: () => void): IDBOpenDBRequest {
  const opening = indexedDB.open(name, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("kept");
  opening.onerror = failed;
  return opening;
}

/** The store of a browser: an IndexedDB database of its own. */
export function browserStore(name = "hushuffle"): Store {
  const run = <T>(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> =>
    new Promise((done, failed) => {
      const opening = opened(name, () => failed(new PhoneError("the browser stores nothing: nothing was sent. Allow storage for this page.")));
      opening.onsuccess = () => {
        const transaction = opening.result.transaction("kept", mode, { durability: "strict" });
        const asked = ask(transaction.objectStore("kept"));
        transaction.oncomplete = () => { opening.result.close(); done(asked.result); };
        transaction.onabort = transaction.onerror = () => { opening.result.close(); failed(asked.error); };
      };
    });
  const read = (key: string): Promise<string | undefined> => run("readonly", (store) => store.get(key) as IDBRequest<string | undefined>);
  return {
    read,
    change: (key, make) => new Promise((done, failed) => {
      let why: unknown = new PhoneError("the browser stores nothing: nothing was sent. Allow storage for this page.");
      const opening = opened(name, () => failed(why));
      opening.onsuccess = () => {
        const transaction = opening.result.transaction("kept", "readwrite", { durability: "strict" }), store = transaction.objectStore("kept");
        const asked = store.get(key) as IDBRequest<string | undefined>;
        asked.onsuccess = () => { try { store.put(make(asked.result), key); } catch (error) { why = error; transaction.abort(); } };
        transaction.oncomplete = () => { opening.result.close(); done(); };
        transaction.onabort = transaction.onerror = () => { opening.result.close(); failed(why); };
      };
    }),
    async create(key, text) {
      try { await run("readwrite", (store) => store.add(text, key)); } catch { /* it was there, or is not */ }
      const found = await read(key);
      if (found === undefined) throw new PhoneError("the browser stores nothing: nothing was sent. Allow storage for this page.");
      return found;
    },
  };
}

/** One person's part in one task; `answers` left out: those that were given before, or for the iteration before. `limits`: what the owner gives at most. */
export class Phone {
  private constructor(private readonly task: Task, private readonly store: Store, readonly parts: readonly Part[], private readonly limits: Limits) {}

  static async of(task: Task, store: Store, answers?: Answers, limits: Limits = {}): Promise<Phone> {
    const name = hex(task.id), former = task.document.round?.former;
    let text = await store.read(name), given: string | undefined;
    if (answers === undefined && text === undefined && former !== undefined) {
      const earlier = await store.read(former);
      if (earlier !== undefined) checkFollows(await store.read(TOTAL), task.document);
      if (earlier !== undefined) answers = Object.fromEntries(JSON.parse((JSON.parse(earlier) as Kept).answers) as [string, unknown][]);
    }
    if (answers !== undefined) {
      const { steps, values } = task.document;
      const asked = [...new Set([...steps.flatMap((step) => step.columns), ...values.map((column) => column.name)])].sort();
      const missing = asked.filter((column) => !(column in answers));
      if (missing.length) throw new PhoneError(`the answers lack ${missing.join(", ")} (null is an answer): nothing was sent.`);
      given = JSON.stringify(asked.map((column) => [column, answers[column]]));
      if (text === undefined) {
        await checkLimits(limits, task.document);
        const kept: Kept = { answers: given, parts: await Phone.drawn(task, answers) };
        text = await store.create(name, JSON.stringify(kept));
      }
    }
    if (text === undefined) throw new PhoneError("nothing was sent for this task. Send answers first.");
    const kept = JSON.parse(text) as Kept;
    if (given !== undefined && kept.answers !== given) {
      throw new PhoneError("the stored answers for this task differ from these: only the stored answers are sent. Give the same answers again.");
    }
    return new Phone(task, store, kept.parts, limits);
  }

  private static async drawn(task: Task, answers: Answers): Promise<Part[]> {
    let asked = task.document.steps.map((_, at) => at + 1);
    if (task.document.per_person === "one") asked = [asked[below(asked.length, random)]!];
    return Promise.all(asked.map(async (number) => {
      const step = task.step(number), found = recordOf(task.document, step, answers);
      const [target, carries] = choose(step, step.targets.length, found && found.own, random);
      const challenge = await task.challenge(number, step.targets[target]!.name);
      const blinded = await blind(base64(step.token_key), challenge), ticket = await blind(base64(step.ticket_key), await task.ticketChallenge(number));
      return { number, target, record: found && carries ? hex(found.record) : null, blinded, ticket };
    }));
  }

  /** The message of a part, sealed for its target and for one scrambler after the other. */
  async onion(part: Part, token: Bytes): Promise<Bytes> {
    const { chain, message } = this.task.document, target = this.task.step(part.number).targets[part.target]!;
    const plain = new Uint8Array(message - SEAL * (chain.length + 1) - 2), record = part.record === null ? new Uint8Array() : unhex(part.record);
    if (TOKEN + 2 + record.length > plain.length) throw new PhoneError("a record does not fit into the messages of this task.");
    plain.set(joined(token, number16(part.record === null ? NO_DATA : record.length), record));
    let body = joined(number16(part.target), await seal(unhex(target.key), this.task.info(part.number, target.name), plain));
    for (const scrambler of [...chain].reverse()) {
      body = await seal(unhex(scrambler.key), this.task.info(part.number, scrambler.name), body);
    }
    return body;
  }

  /**
   * Gets tokens and tickets with an invitation's code, and sends every message; to be called again after a TryAgainError. The code stays
   * here: issuers get proofs. What it costs is written down before the first byte leaves, once for a task however often it is sent.
   */
  async send(code: string): Promise<void> {
    const cost = await checkLimits(this.limits, this.task.document), ask = asking(), first = this.parts[0]!;
    await this.shown(first, "token", code);  // a code that is none costs nothing
    await this.store.change(TOTAL, (text) => spent(text, hex(this.task.id), this.task.document, cost, this.limits));
    for (const part of this.parts) {
      const envelope = await this.envelope(ask, part, code);
      const headers = { "content-type": "message/ohttp-req" };
      const answer = good(...(await ask(this.task.document.relay, unhex(envelope.request), headers)), "the relay");
      good(...(await openResponse(envelope, answer)), "the first scrambler");
    }
  }

  /** What is posted to the relay: kept when it is made, before it leaves. */
  private async envelope(ask: Ask, part: Part, code: string): Promise<Envelope> {
    const name = `${hex(this.task.id)}/${part.number}`, { chain } = this.task.document;
    let text = await this.store.read(name);
    if (text === undefined) {
      const token = await this.token(ask, part, "token", code), ticket = await this.token(ask, part, "ticket", code);
      const path = this.task.path(`steps/${String(part.number).padStart(4, "0")}`);
      const made = await encapsulate(keyConfig(chain[0]!.key), trimmed(chain[0]!.url) + path, ticket, await this.onion(part, token));
      text = await this.store.create(name, JSON.stringify(made));
    }
    return JSON.parse(text) as Envelope;
  }

  private async token(ask: Ask, part: Part, kind: "token" | "ticket", code: string): Promise<Bytes> {
    const blinded = kind === "token" ? part.blinded : part.ticket, key = base64(this.task.step(part.number)[`${kind}_key`]);
    const headers = { "content-type": "application/private-token-request", authorization: await this.shown(part, kind, code) };
    const url = trimmed(this.task.document.issuer.url) + this.task.path(`steps/${part.number}/${kind}`);
    return finalize(key, blinded, good(...(await ask(url, unhex(blinded.request), headers)), "the issuer"));
  }

  private shown(part: Part, kind: "token" | "ticket", code: string): Promise<string> {
    const blinded = kind === "token" ? part.blinded : part.ticket, key = base64(this.task.step(part.number)[`${kind}_key`]);
    return proof(code.trim(), this.task.id, part.number, kind, key, unhex(blinded.request));
  }

  /** The document of the next iteration, made of what came of this one. */
  async following(): Promise<Bytes> {
    const [status, content] = await asking()(trimmed(this.task.document.result.url) + this.task.path("next"));
    const task = await Task.read(good(status === 404 ? 408 : status, content, "the result"));
    if (!follows(task.document, this.task.document, hex(this.task.id))) throw new PhoneError("the result service did not answer with the next iteration of this task.");
    return content;
  }

  /** For each step whether its message is in the lists that were published until now; those of all targets are read. */
  async passed(): Promise<Map<number, boolean>> {
    const found = new Map<number, boolean>(), ask = asking();
    for (const part of this.parts) {
      const nonce = unhex(part.blinded.message).slice(2, 34), entry = hex(await sha256(joined(utf8("hushuffle passage 1|"), nonce)));
      const { sources, batch: people, dummies, targets } = this.task.step(part.number);
      const most = { batches: 2 * Math.ceil(sources / people) + 16, bytes: 32 * (people + this.task.document.chain.length * dummies) };
      let there = false;
      for (const target of targets) {
        const url = trimmed(target.url) + this.task.path("passage");
        const { batches } = JSON.parse(new TextDecoder().decode(good(...(await ask(url)), "a target"))) as { batches: number[] };
        bounded(batches, most.batches);
        for (const batch of batches) {
          const list = good(...(await ask(`${url}/${Number(batch)}`)), "a target");
          bounded(list, most.bytes);
          for (let at = 0; at < list.length; at += 32) there = hex(list.slice(at, at + 32)) === entry || there;
        }
      }
      found.set(part.number, there);
    }
    return found;
  }
}

function bounded(listed: { length: number }, most: number): void {
  if (!(listed.length <= most)) throw new PhoneError("a target lists more batches or messages than the task can have.");
}

/** Bytes and milliseconds of an answer, at most; milliseconds for all answers of one call together. */
const MOST = 1 << 26, EACH = 60_000, ALL = 600_000;
type Ask = typeof post;

/** What sends requests, as long as there is time for those of one call. */
function asking(): Ask {
  const last = performance.now() + ALL;
  return async (...request) => {
    if (performance.now() > last) throw new TryAgainError(`the answers took more than ${ALL / 1000} seconds together: try again later.`);
    return post(...request);
  };
}

const trimmed = (url: string): string => url.replace(/\/$/, "");

/** Sends a POST with a body, or a GET without one; follows no redirection and sends no cookies. */
async function post(url: string, body?: Bytes, headers: Record<string, string> = {}): Promise<[number, Bytes]> {
  if (!/^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/])/.test(url)) throw new PhoneError("an address of the task is not https.");
  if (!URL.canParse(url)) throw new PhoneError("an address of the task does not have the form that HTTP requires.");
  let answer: Response;
  try {
    const shared = { headers, credentials: "omit", redirect: "error", cache: "no-store", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(EACH) } as const;
    answer = await fetch(url, body === undefined ? shared : { ...shared, method: "POST", body });
    return [answer.status, await contentOf(answer)];
  } catch (error) {
    throw error instanceof PhoneError ? error : new TryAgainError("there is no connection, or no answer in time: try again later.");
  }
}

async function contentOf(answer: Response): Promise<Bytes> {
  const parts: Uint8Array[] = [], reader = answer.body?.getReader();
  for (let size = 0; reader !== undefined;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > MOST) { await reader.cancel(); throw new PhoneError(`an answer has more than ${MOST} bytes, so it was not used.`); }
  }
  return joined(...parts);
}

/** What services answer in a word, in a sentence; nothing else of an answer is shown. */
const WORDS: Record<string, string> = {
  "code used": "the code was used already, with another request: each code is for one phone", "no such code": "it knows no such code for this task",
  "ticket used": "the ticket was used already", "too late": "this task is closed", over: "this task is over", "no such task": "it takes no part in this task",
  "out of service": "it cannot go on with this task until its operator has repaired it", busy: "it cannot write to its disk",
  "no gateway": "it does not reach the first scrambler",
};

function good(status: number, content: Bytes, who: string): Bytes {
  if (status >= 200 && status < 300) return content;
  const busy = [408, 425, 429].includes(status) || status >= 500, word = new TextDecoder().decode(content.slice(0, 32)).trim();
  const words = Object.hasOwn(WORDS, word) ? `: ${WORDS[word]}` : "";
  throw new (busy ? TryAgainError : PhoneError)(`${who} answered ${status}${words}.`);
}
