// What the engine signs, a verifier of other code accepts, and nothing that was changed.
// WARM_RECEIPTS names what `cargo run -p warm-engine --example receipt` printed.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Refused, idOf, logAfter, messageOf, read, verify } from "./verify.mjs";

const path = process.env.WARM_RECEIPTS ?? assert.fail("WARM_RECEIPTS must name a file of receipts, one a line");
const lines = readFileSync(path, "utf8").trim().split("\n");
const receipts = lines.map((line) => JSON.parse(line));

const refused = (json, what, publicKey) =>
  assert.throws(() => verify(JSON.stringify(json), publicKey), Refused, what);

/** Every value in a JSON document: the object or list that holds it, its name there, and the way to it. */
function* values(json, way = "") {
  for (const [name, value] of Object.entries(json)) {
    yield [json, name, `${way}/${name}`];
    if (typeof value === "object" && value !== null) yield* values(value, `${way}/${name}`);
  }
}

/** Other values of the same type, one for each place where a text can differ. */
function* others(value, name) {
  if (typeof value === "number") {
    yield value + 1;
    if (value > 0) yield value - 1;
  } else if (typeof value === "string") {
    for (let at = 0; at < value.length; at += 1) {
      const other = { 0: "1", A: "B", Q: "R" }[value[at]] ?? (/[0-9a-f]/.test(value[at]) ? "0" : "A");
      if (other !== value[at]) yield value.slice(0, at) + other + value.slice(at + 1);
    }
    yield `${value}0`;
    yield value.slice(0, -1);
    if (name === "kind") yield value === "backup" ? "export" : "backup";
  }
}

test("every receipt of the engine holds, for its store and no other", () => {
  assert.ok(receipts.length >= 3);
  for (const [at, line] of lines.entries()) {
    const held = verify(line, receipts[at].public_key);
    assert.equal(held.versions.length, receipts[at].receipt.count);
    assert.equal(held.logIndex, at);
    refused(receipts[at], "another store", "ab".repeat(32));
  }
});

test("the log of one receipt begins where that of the receipt before ended", () => {
  assert.equal(receipts[0].log_before, "00".repeat(32));
  for (let at = 1; at < receipts.length; at += 1) assert.equal(receipts[at].log_before, receipts[at - 1].log_after);
});

test("a receipt of which any value was changed is refused", () => {
  let tried = 0;
  for (const receipt of receipts.slice(0, 2)) {
    for (const [holder, name, way] of values(receipt)) {
      const value = holder[name];
      for (const other of others(value, name)) {
        holder[name] = other;
        refused(receipt, `${way} is ${other}`);
        tried += 1;
      }
      for (const other of [null, true, [], {}, "", -1, 0.5, 2 ** 60]) {
        holder[name] = other;
        refused(receipt, `${way} is ${JSON.stringify(other)}`);
      }
      holder[name] = value;
    }
    verify(JSON.stringify(receipt));
  }
  assert.ok(tried > 1_000, `${tried}`);
});

test("a receipt that lacks a part, or has one too many, twice or in another order, is refused", () => {
  for (const receipt of receipts.slice(0, 2)) {
    for (const [holder, name, way] of values(receipt)) {
      const value = holder[name];
      if (Array.isArray(holder)) {
        const whole = [...holder];
        const at = Number(name);
        const put = (parts) => holder.splice(0, holder.length, ...parts);
        put(whole.toSpliced(at, 1));
        refused(receipt, `without ${way}`);
        put(whole.toSpliced(at, 0, whole[at]));
        refused(receipt, `${way} twice`);
        if (at > 0) {
          put(whole.toSpliced(at - 1, 2, whole[at], whole[at - 1]));
          if (JSON.stringify(whole) !== JSON.stringify(holder)) refused(receipt, `${way} before its neighbour`);
        }
        put(whole);
      } else {
        delete holder[name];
        refused(receipt, `without ${way}`);
        holder[name] = value;
      }
      if (typeof value === "object" && !Array.isArray(value)) {
        value.more = 1;
        refused(receipt, `more in ${way}`);
        delete value.more;
      }
    }
    verify(JSON.stringify(receipt));
  }
});

test("parts of one receipt do not make another good", () => {
  const [first, second] = receipts;
  for (const part of ["receipt", "log_before", "log_after", "proof"]) {
    if (JSON.stringify(first[part]) !== JSON.stringify(second[part])) {
      refused({ ...first, [part]: second[part] }, part);
    }
  }
  for (const text of ["", "{}", "[]", "null", "a receipt", lines[0].slice(0, -1)]) {
    assert.throws(() => verify(text), Refused);
  }
});

// A store may sign what is not so.

const own = generateKeyPairSync("ed25519");
const ownPublic = Buffer.from(own.publicKey.export({ format: "jwk" }).x, "base64url").toString("hex");

/** A receipt after a change, under a key of ours: everything that follows from what it says is right. */
function signedAnew(receipt, change) {
  const file = structuredClone(receipt);
  file.public_key = ownPublic;
  change(file);
  const again = () => read(JSON.stringify(file));
  file.receipt.id = idOf(again()).toString("hex");
  file.receipt.signature = sign(null, messageOf(again()), own.privateKey).toString("base64");
  file.log_after = logAfter(again()).toString("hex");
  return file;
}

test("what a store signed though its proof does not show it is refused", () => {
  const second = receipts[1];
  verify(JSON.stringify(signedAnew(second, () => {})), ownPublic);
  const first = (file) => file.proof.versions[0];
  const changes = {
    "not in the tree before": (file) => (file.receipt.tree_before = "ab".repeat(32)),
    "lead to the tree after": (file) => (file.receipt.tree_after = file.receipt.tree_before),
    "tree before": (file) => (first(file).salt = "ab".repeat(16)),
    "tree after": (file) => (first(file).after = "ab".repeat(32)),
    "do not ascend": (file) => file.proof.versions.reverse(),
    "does not have": (file) => (file.proof.versions.at(-1).place = 32 ** second.proof.before.levels),
    "a hash is missing": (file) => file.proof.before.beside.pop(),
    "hashes over": (file) => file.proof.after.beside.push("00".repeat(32)),
    "without any": (file) => {
      file.proof.versions = [];
      file.proof.before.beside = [file.receipt.tree_before];
      file.proof.after.levels = 0;
    },
  };
  for (const [why, change] of Object.entries(changes)) {
    assert.throws(() => verify(JSON.stringify(signedAnew(second, change))), new RegExp(why));
  }
});

test("a version that is still there is refused as gone", () => {
  // Both trees are the one before.
  const same = signedAnew(receipts[0], (file) => {
    file.receipt.tree_after = file.receipt.tree_before;
    file.proof.after = file.proof.before;
    file.proof.versions[0].after = read(JSON.stringify(file)).proof.versions[0].commitment.toString("hex");
  });
  assert.throws(() => verify(JSON.stringify(same)), /still there/);
});
