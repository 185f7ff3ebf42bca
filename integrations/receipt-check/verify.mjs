// Checks receipts of warm-mcp without any of its code: as docs/format.md says, on Node's own cryptography.
//
//   node verify.mjs FILE [PUBLIC_KEY]
//
// Ends with 0 if the receipt holds, with 1 if it does not, and says why. What a receipt that holds shows, and
// what it can't show, is in docs/deletion.md.

import { createHash, createPublicKey, verify as signed } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const FORM = 1;
const BITS = 5; // levels of the binary tree in one level of nodes
const MOST_LEVELS = 12;
const NOTHING = Buffer.alloc(32);
const KINDS = ["backup", "export", "quarantine"];

/** Why a receipt does not hold. */
export class Refused extends Error {}

const refuse = (why) => {
  throw new Refused(why);
};

/**
 * Checks the text of a receipt file; with `publicKey` (hexadecimal) it must be of that store.
 * Returns what it says, or throws `Refused`.
 */
export function verify(text, publicKey) {
  const file = read(text);
  const { receipt, proof } = file;
  if (publicKey !== undefined && !hex(publicKey, 32, "the public key").equals(file.publicKey)) {
    refuse("it is of another store than the one that was named");
  }
  if (!idOf(file).equals(receipt.id)) refuse("its id is not that of what it says");
  if (!isSigned(messageOf(file), receipt.signature, file.publicKey)) refuse("its signature is not the store's");
  for (const { after, commitment } of proof.versions) {
    if (after.equals(commitment)) refuse("a version that it names is still there");
  }
  const were = proof.versions.map(({ place, commitment }) => [place, commitment]);
  const are = proof.versions.map(({ place, after }) => [place, after]);
  if (!root(proof.before, were).equals(receipt.treeBefore)) refuse("what it names was not in the tree before");
  if (!root(proof.after, are).equals(receipt.treeAfter)) refuse("its proof does not lead to the tree after");
  if (!logAfter(file).equals(file.logAfter)) refuse("its place in the log does not fit");
  return {
    id: receipt.id.toString("hex"),
    publicKey: file.publicKey.toString("hex"),
    count: Number(receipt.count),
    versions: proof.versions.map((version) => version.id.toString("hex")),
    logIndex: Number(receipt.index),
  };
}

// What is hashed and signed

export function idOf({ receipt, proof, publicKey, logBefore }) {
  return sha256(
    "warm receipt\0",
    publicKey,
    u64(receipt.index),
    logBefore,
    u64(receipt.at),
    u64(receipt.count),
    receipt.treeBefore,
    receipt.treeAfter,
    proofDigest(proof),
    sha256(...receipt.copies.map(copyDigest)),
  );
}

export function messageOf({ receipt }) {
  return Buffer.concat([
    Buffer.from("warm receipt signature\0"),
    receipt.id,
    u64(receipt.at),
    u64(receipt.count),
    receipt.treeBefore,
    receipt.treeAfter,
    u64(receipt.index),
  ]);
}

export function logAfter({ receipt, logBefore }) {
  return sha256("warm chain\0", logBefore, receipt.id);
}

function sha256(...parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function proofDigest({ versions, before, after }) {
  const parts = [u64(BigInt(versions.length))];
  for (const version of versions) parts.push(u64(version.place), version.id, version.salt, version.after);
  for (const { levels, beside } of [before, after]) {
    parts.push(Buffer.from([levels]), u64(BigInt(beside.length)), ...beside);
  }
  return sha256(...parts);
}

function copyDigest({ at, kind, place }) {
  return sha256("warm copy\0", u64(at), Buffer.from([kind]), sha256(Buffer.from(place, "utf8")));
}

function isSigned(message, signature, publicKey) {
  const jwk = { kty: "OKP", crv: "Ed25519", x: publicKey.toString("base64url") };
  try {
    return signed(null, message, createPublicKey({ key: jwk, format: "jwk" }), signature);
  } catch {
    return false; // no point of the curve
  }
}

// The tree

function join(left, right) {
  if (left.equals(NOTHING) && right.equals(NOTHING)) return NOTHING;
  return sha256(Buffer.from([1]), left, right);
}

/** The root that follows from what `held` the places, pairs in ascending order, and the hashes beside. */
function root({ levels, beside }, held) {
  const depth = BITS * levels;
  for (const [at, [place]] of held.entries()) {
    if (at > 0 && place <= held[at - 1][0]) refuse("its places do not ascend");
    if (place >> BigInt(depth) !== 0n) refuse("it names a place that the tree does not have");
  }
  if (levels === 0 && beside.length + held.length > 0) refuse("it names hashes of a tree without any");
  if (levels === 0) return NOTHING;
  let used = 0;
  const next = () => (used < beside.length ? beside[used++] : refuse("a hash is missing in its proof"));
  const walk = (depth, first, held) => {
    if (held.length === 0) return next();
    if (depth === 0) return held[0][1];
    const middle = first + (1n << BigInt(depth - 1));
    const left = walk(depth - 1, first, held.filter(([place]) => place < middle));
    const right = walk(depth - 1, middle, held.filter(([place]) => place >= middle));
    return join(left, right);
  };
  const found = walk(depth, 0n, held);
  if (used < beside.length) refuse("its proof has hashes over");
  return found;
}

// What is in the file

/** The values in the text of a receipt file. Nothing of them is checked but their form. */
export function read(text) {
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    refuse("it is not JSON");
  }
  if (json?.warm_receipt !== FORM) refuse("it is not a receipt of form 1");
  const file = only(json, ["warm_receipt", "receipt", "public_key", "log_before", "log_after", "proof"]);
  const fields = ["id", "erased_at", "count", "tree_before", "tree_after", "log_index", "signature"];
  const receipt = only(file.receipt, fields, ["copies"]);
  const proof = only(file.proof, ["versions", "before", "after"]);
  return {
    receipt: {
      id: hex(receipt.id, 32, "id"),
      at: time(receipt.erased_at, "erased_at"),
      count: number(receipt.count, "count"),
      treeBefore: hex(receipt.tree_before, 32, "tree_before"),
      treeAfter: hex(receipt.tree_after, 32, "tree_after"),
      index: number(receipt.log_index, "log_index"),
      signature: base64(receipt.signature, 64, "signature"),
      copies: list(receipt.copies ?? [], "copies").map(copy),
    },
    publicKey: hex(file.public_key, 32, "public_key"),
    logBefore: hex(file.log_before, 32, "log_before"),
    logAfter: hex(file.log_after, 32, "log_after"),
    proof: {
      versions: list(proof.versions, "versions").map(version),
      before: branches(proof.before),
      after: branches(proof.after),
    },
  };
}

function version(json) {
  const { place, id, salt, after } = only(json, ["place", "id", "salt", "after"]);
  const [idBytes, saltBytes] = [hex(id, 16, "a version's id"), hex(salt, 16, "a version's salt")];
  return {
    place: number(place, "place"),
    id: idBytes,
    salt: saltBytes,
    after: hex(after, 32, "after"),
    commitment: sha256(Buffer.from([0]), "warm version\0", saltBytes, idBytes),
  };
}

function branches(json) {
  const { levels, beside } = only(json, ["levels", "beside"]);
  if (!Number.isInteger(levels) || levels < 0 || levels > MOST_LEVELS) refuse("levels is out of range");
  return { levels, beside: list(beside, "beside").map((hash) => hex(hash, 32, "a hash of the proof")) };
}

function copy(json) {
  const { kind, place, made_at } = only(json, ["kind", "place", "made_at"]);
  if (!KINDS.includes(kind)) refuse("there is no such kind of copy");
  if (typeof place !== "string") refuse("the place of a copy is no text");
  return { kind: KINDS.indexOf(kind), place, at: time(made_at, "made_at") };
}

/** An object of these fields and no others. */
function only(json, fields, optional = []) {
  if (typeof json !== "object" || json === null || Array.isArray(json)) refuse("something in it is no object");
  for (const field of fields) if (!Object.hasOwn(json, field)) refuse(`it lacks ${field}`);
  const known = [...fields, ...optional];
  for (const field of Object.keys(json)) if (!known.includes(field)) refuse(`it has a field ${field} too many`);
  return json;
}

function list(json, what) {
  return Array.isArray(json) ? json : refuse(`${what} is no list`);
}

function number(json, what) {
  return Number.isSafeInteger(json) && json >= 0 ? BigInt(json) : refuse(`${what} is no number`);
}

function hex(json, length, what) {
  const fits = typeof json === "string" && json.length === 2 * length && /^[0-9a-f]*$/i.test(json);
  return fits ? Buffer.from(json, "hex") : refuse(`${what} is not ${length} bytes in hexadecimal`);
}

function base64(json, length, what) {
  const bytes = typeof json === "string" ? Buffer.from(json, "base64") : Buffer.alloc(0);
  // Node reads base64 that nobody would write.
  const fits = bytes.length === length && bytes.toString("base64") === json;
  return fits ? bytes : refuse(`${what} is not ${length} bytes in base64`);
}

/** Milliseconds since 1970. */
function time(json, what) {
  const form = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(typeof json === "string" ? json : "");
  const seconds = form ? Date.parse(`${form[1]}Z`) : NaN;
  // 31 June is no day, whatever Date.parse makes of it.
  const fits = seconds >= 0 && new Date(seconds).toISOString().startsWith(form[1]);
  return fits ? BigInt(seconds) + BigInt((form[2] ?? "").slice(0, 3).padEnd(3, "0")) : refuse(`${what} is no time`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [path, publicKey] = process.argv.slice(2);
  if (path === undefined) {
    console.error("usage: node verify.mjs FILE [PUBLIC_KEY]");
    process.exit(2);
  }
  try {
    const { count, versions, logIndex, publicKey: store } = verify(readFileSync(path, "utf8"), publicKey);
    console.log(`It holds: the store ${store} forgot ${count} as number ${logIndex} of its log.`);
    for (const id of versions) console.log(`gone: version ${id.slice(0, 16)}`);
    if (publicKey === undefined) console.log("Whether that is the store you mean, its public key must tell you.");
  } catch (error) {
    console.error(error instanceof Refused ? `It does not hold: ${error.message}.` : `${path}: ${error.message}`);
    process.exit(1);
  }
}
