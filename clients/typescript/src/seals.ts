// Seals, tokens and Oblivious HTTP, on packages that others maintain: HPKE, binary HTTP, blind RSA.

import { RSABSSA } from "@cloudflare/blindrsa-ts";
import { Aes128Gcm, Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from "@hpke/core";
import { BHttpDecoder, BHttpEncoder } from "bhttp-js";
import { base64, type Bytes, hex, joined, number16, PhoneError, random, sha256, unhex, utf8 } from "./task";

const kem = (): { kem: DhkemX25519HkdfSha256; kdf: HkdfSha256 } => ({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256() });
const SUITES = { 1: new CipherSuite({ ...kem(), aead: new Aes128Gcm() }), 2: new CipherSuite({ ...kem(), aead: new Aes256Gcm() }) };
const KEYS = { 1: 16, 2: 32 };

/** Seals with AES-256-GCM for whoever has the private half of a key. */
export async function seal(key: Bytes, info: Bytes, plain: Bytes): Promise<Bytes> {
  const suite = SUITES[2];
  const sender = await suite.createSenderContext({ recipientPublicKey: await suite.kem.deserializePublicKey(key), info });
  return joined(new Uint8Array(sender.enc), new Uint8Array(await sender.seal(plain)));
}

/** A request to the relay as it is posted, and the secret that opens its answer. */
export interface Envelope { request: string; secret: string; aead: 1 | 2 }

/** The key configuration of the gateway: the first scrambler's, with the key that messages are sealed for (RFC 9458, section 3.1). */
export const keyConfig = (key: string): Bytes => unhex(`010020${key}00080001000200010001`);

/** Puts a POST of `content` that shows a ticket (RFC 9577) into binary HTTP, and that into an encapsulated request (RFC 9458, section 4.3). */
export async function encapsulate(config: Bytes, url: string, ticket: Bytes, content: Bytes): Promise<Envelope> {
  const shown = btoa(String.fromCharCode(...ticket)).replace(/\+/g, "-").replace(/\//g, "_");
  const headers = { authorization: `PrivateToken token="${shown}"` };
  const inside = await new BHttpEncoder().encodeRequest(new Request(url, { method: "POST", headers, body: content }));
  const aead = config[40];
  if (config.length < 41 || hex(config.slice(1, 3)) !== "0020" || hex(config.slice(37, 40)) !== "000100" || (aead !== 1 && aead !== 2)) {
    throw new PhoneError("a key configuration of the gateway is not X25519, HKDF-SHA256 and AES-GCM.");
  }
  const suite = SUITES[aead], header = joined(config.slice(0, 3), config.slice(37, 41));
  const recipientPublicKey = await suite.kem.deserializePublicKey(config.slice(3, 35));
  const sender = await suite.createSenderContext({ recipientPublicKey, info: joined(utf8("message/bhttp request\0"), header) });
  const request = joined(header, new Uint8Array(sender.enc), new Uint8Array(await sender.seal(Uint8Array.from(inside))));
  const secret = new Uint8Array(await sender.export(utf8("message/bhttp response"), KEYS[aead]));
  return { request: hex(request), secret: hex(secret), aead };
}

/** Opens the answer to a request (RFC 9458, section 4.4) and returns status and content. */
export async function openResponse({ request, secret, aead }: Envelope, response: Bytes): Promise<[number, Bytes]> {
  const size = KEYS[aead], enc = unhex(request).slice(7, 39);
  const main = await crypto.subtle.importKey("raw", unhex(secret), "HKDF", false, ["deriveBits"]);
  const derived = async (info: string, bytes: number): Promise<Bytes> => {
    const salt = joined(enc, response.slice(0, size));
    return new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info: utf8(info) }, main, 8 * bytes));
  };
  const key = await crypto.subtle.importKey("raw", await derived("key", size), "AES-GCM", false, ["decrypt"]);
  try {
    const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv: await derived("nonce", 12) }, key, response.slice(size));
    const answer = new BHttpDecoder().decodeResponse(new Uint8Array(plain));
    return [answer.status, new Uint8Array(await answer.arrayBuffer())];
  } catch {
    throw new PhoneError("a response was not sealed for this request, or is damaged.");
  }
}

// RSASSA-PSS with SHA-384, MGF1 with SHA-384 and 48 bytes of salt; what follows is a modulus of 2048 bits (RFC 9578, 8.2.2)
const SPKI = "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202a2030201300382010f003082010a0282010100";

async function issuerKey(spki: Bytes): Promise<CryptoKey> {
  const text = hex(spki), modulus = spki.slice(SPKI.length / 2, -5);
  if (text !== SPKI + hex(modulus) + "0203010001" || modulus.length !== 256 || modulus[0]! < 128 || modulus[255]! % 2 === 0) {
    throw new PhoneError("an issuer's public key must be RSASSA-PSS with SHA-384, 2048 bits and exponent 65537.");
  }
  const n = btoa(String.fromCharCode(...modulus)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  return crypto.subtle.importKey("jwk", { kty: "RSA", n, e: "AQAB", ext: true }, { name: "RSA-PSS", hash: "SHA-384" }, true, ["verify"]);
}

const SEED = "302e020100300506032b657004220420";  // a private key of Ed25519 (RFC 8410); 32 bytes follow

/** Shows that a phone has the code of an invitation, for one request in one step of one task; the code itself is never sent. */
export async function proof(code: string, task: Bytes, step: number, kind: string, spki: Bytes, request: Bytes): Promise<string> {
  if (!/^[0-9a-f]{32,}$/.test(code)) throw new PhoneError("the code must have 32 hexadecimal digits or more, as the issuer gave it: nothing was sent.");
  const seed = await sha256(utf8(`hushuffle code 2|${code}`));
  const key = await crypto.subtle.importKey("pkcs8", joined(unhex(SEED), seed), "Ed25519", true, ["sign"]);
  const half = base64((await crypto.subtle.exportKey("jwk", key)).x!.replace(/-/g, "+").replace(/_/g, "/"));
  const named = await crypto.subtle.importKey("raw", half, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const name = await crypto.subtle.sign("HMAC", named, joined(utf8("hushuffle name 2|"), task));
  const proved = joined(utf8("hushuffle proof 2|"), task, number16(step), await sha256(spki), await sha256(request), utf8(kind));
  const signed = await crypto.subtle.sign("Ed25519", key, proved);
  return `Invitation name="${hex(new Uint8Array(name))}", proof="${hex(new Uint8Array(signed))}"`;
}

/** A request for a token, and what makes the token of the issuer's answer; all in hexadecimal digits. */
export interface Blinded { message: string; request: string; inverse: string }

/** Asks for a token (RFC 9578, section 6.1). */
export async function blind(spki: Bytes, challenge: Bytes): Promise<Blinded> {
  const keyId = await sha256(spki);
  const message = joined(Uint8Array.of(0, 2), random(32), await sha256(challenge), keyId);
  const { blindedMsg, inv } = await RSABSSA.SHA384.PSS.Deterministic().blind(await issuerKey(spki), message);
  return { message: hex(message), request: hex(joined(Uint8Array.of(0, 2), keyId.slice(-1), blindedMsg)), inverse: hex(inv) };
}

/** Makes the token, checked, of the issuer's answer (RFC 9474, section 4.4). */
export async function finalize(spki: Bytes, { message, inverse }: Blinded, response: Bytes): Promise<Bytes> {
  const key = await issuerKey(spki);
  try {
    return joined(unhex(message), await RSABSSA.SHA384.PSS.Deterministic().finalize(key, unhex(message), response, unhex(inverse)));
  } catch {
    throw new PhoneError("the answer of the issuer is no signature of its key.");
  }
}
