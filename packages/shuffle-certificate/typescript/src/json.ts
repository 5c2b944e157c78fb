// A JSON reader that keeps numbers as text, and refuses a key that occurs twice. JSON.parse does neither.

export class MalformedError extends Error {}

/** A number as it is written. */
export class Numeral {
  constructor(readonly text: string) {}
}

export type Json = null | boolean | string | Numeral | Json[] | Map<string, Json>;

const LONGEST = 64 * 2 ** 20;
const DEEPEST = 400;
const MOST_DIGITS = 400;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\n\r]*/y;

export function parse(text: string): Json {
  if (text.length > LONGEST) throw new MalformedError("The file is too long.");
  let place = 0;
  const refuse = (why: string): never => {
    throw new MalformedError(`The file is not a JSON document: ${why} at character ${place}.`);
  };
  const match = (pattern: RegExp): string | null => {
    pattern.lastIndex = place;
    const matched = pattern.exec(text);
    if (matched === null) return null;
    place += matched[0].length;
    return matched[0];
  };
  const take = (mark: string): boolean => {
    match(SPACE);
    if (!text.startsWith(mark, place)) return false;
    place += mark.length;
    return true;
  };
  const string = (): string => {
    match(SPACE);
    const raw = match(STRING);
    return raw === null ? refuse("a text is wrong") : (JSON.parse(raw) as string);
  };
  const value = (depth: number): Json => {
    if (depth > DEEPEST) refuse("lists inside lists are too deep");
    if (take("{")) {
      const members = new Map<string, Json>();
      if (take("}")) return members;
      do {
        const key = string();
        if (members.has(key)) refuse("a key occurs twice");
        if (!take(":")) refuse("a colon is missing");
        members.set(key, value(depth + 1));
      } while (take(","));
      if (!take("}")) refuse("an object does not end");
      return members;
    }
    if (take("[")) {
      const entries: Json[] = [];
      if (take("]")) return entries;
      do entries.push(value(depth + 1));
      while (take(","));
      if (!take("]")) refuse("a list does not end");
      return entries;
    }
    if (text[place] === '"') return string();
    for (const [word, constant] of [["null", null], ["true", true], ["false", false]] as const) if (take(word)) return constant;
    const numeral = match(NUMBER) ?? refuse("a value is wrong");
    const [mantissa, exponent] = numeral.toLowerCase().split("e");
    if (mantissa.length > MOST_DIGITS || Math.abs(Number(exponent ?? 0)) > MOST_DIGITS) refuse("a number has too many digits");
    return new Numeral(numeral);
  };
  const document = value(0);
  match(SPACE);
  if (place < text.length) refuse("more text follows the document");
  return document;
}
