// Experiments as feature flags, by OpenFeature's own SDKs for servers and for pages and their OFREP providers.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { keyOf, routing } from "./experiments.mjs";
import { Server, debora, root } from "./server.mjs";

const require = createRequire(join(root, "target/browser/package.json"));
const servers = { ...require("@openfeature/server-sdk"), ...require("@openfeature/ofrep-provider") };
const pages = { ...require("@openfeature/web-sdk"), ...require("@openfeature/ofrep-web-provider") };

const REASONS = ["STATIC", "TARGETING_MATCH", "SPLIT", "DISABLED", "UNKNOWN"];
const ERRORS = ["PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "GENERAL"];

/** What the protocol's schema says of one evaluation. */
function assertFlag(flag) {
    assert.equal(typeof flag.key, "string");
    if (flag.errorCode !== undefined) {
        assert(ERRORS.includes(flag.errorCode), flag.errorCode);
        return;
    }
    assert(REASONS.includes(flag.reason), flag.reason);
    assert.equal(typeof flag.variant, "string");
    assert(["string", "undefined"].includes(typeof flag.value));
    for (const value of Object.values(flag.metadata)) {
        assert(["boolean", "string", "number"].includes(typeof value), JSON.stringify(flag));
    }
}

/** Fetches, notes the status, and holds every answer to the protocol. */
function watched(answers = []) {
    const fetched = async (request) => {
        const response = await fetch(request);
        const single = !request.url.endsWith("/flags");
        answers.push(response.status);
        if (response.status === 304) {
            assert(response.headers.get("etag") && (await response.clone().text()) === "");
        } else if (![401, 403].includes(response.status)) {
            assert.equal(response.headers.get("content-type"), "application/json");
            const body = await response.clone().json();
            if (response.status === 200) {
                assert(single || response.headers.get("etag"));
                (single ? [body] : body.flags).forEach(assertFlag);
            } else if (response.status === 404) {
                assert.equal(body.errorCode, "FLAG_NOT_FOUND");
            } else {
                assert(ERRORS.includes(body.errorCode), JSON.stringify(body));
            }
        }
        return response;
    };
    return { answers, fetched };
}

async function begin(t, ...ids) {
    const server = await Server.start();
    t.after(() => server.stop());
    server.admin = await keyFor(server, "boss", "admin");
    for (const id of ids) {
        await create(server, id);
    }
    return server;
}

/** An API key, made through the interface: the server that makes it knows it at once. */
async function keyFor(server, name, role, ...experiments) {
    const scope = experiments.length ? { experiments } : {};
    return (await server.ok("keys", { name, role, ...scope })).key;
}

function create(server, id) {
    return server.ok("experiments", { id, spec: routing(), key: keyOf(id) });
}

/** The SDK for servers, with a key in this header. */
async function serverClient(t, server, domain, headers, watch = watched()) {
    const provider = new servers.OFREPProvider({ baseUrl: server.address, headers, fetchImplementation: watch.fetched });
    await servers.OpenFeature.setProviderAndWait(domain, provider);
    t.after(() => servers.OpenFeature.clearProviders());
    return servers.OpenFeature.getClient(domain);
}

test("the SDK for servers reads flags, and their outcomes are told by the user", async (t) => {
    const server = await begin(t, "routing");
    const key = await keyFor(server, "router", "decide", "routing");
    const flags = await serverClient(t, server, "plain", [["x-api-key", key]]);
    const ann = { targetingKey: "ann", plan: "premium" };
    const details = await flags.getStringDetails("routing", "fallback", ann);
    assert(["small", "large"].includes(details.value));
    assert.deepEqual([details.reason, details.variant, details.errorCode], ["SPLIT", details.value, undefined]);
    assert.deepEqual(details.flagMetadata, { round: 1, epoch: 0, probability: 0.5 });
    assert.deepEqual(await flags.getStringDetails("routing", "fallback", ann), details);
    const told = [{ request_key: "ann", reward: 1, costs: { price: 0.001 } }];
    const { receipts } = (await server.api("experiments/routing/outcomes", told, key)).body;
    assert.deepEqual(receipts, ["recorded"]);

    const failed = async (...asked) => {
        const { value, reason, errorCode } = await flags.getStringDetails(...asked);
        assert.deepEqual([value, reason], ["fallback", "ERROR"]);
        return errorCode;
    };
    assert.equal(await failed("no-such-flag", "fallback", ann), "FLAG_NOT_FOUND");
    assert.equal(await failed("routing", "fallback"), "TARGETING_KEY_MISSING");
    assert.equal(await failed("routing", "fallback", { targetingKey: "x".repeat(129) }), "INVALID_CONTEXT");
    const number = await flags.getNumberDetails("routing", 7, ann);
    assert.deepEqual([number.value, number.errorCode], [7, "TYPE_MISMATCH"]);
    const strangers = await serverClient(t, server, "strangers", [["authorization", "Bearer debora_x"]]);
    assert.equal((await strangers.getStringDetails("routing", "fallback", ann)).value, "fallback");
    const bearer = await serverClient(t, server, "bearer", [["authorization", `Bearer ${key}`]]);
    assert.deepEqual(await bearer.getStringDetails("routing", "fallback", ann), details);
});

test("the SDK for pages has the flags of its key, polls with the tag, and keeps them while the server is gone", async (t) => {
    const server = await begin(t, "one", "two", "hidden");
    const key = await keyFor(server, "page", "decide", "one", "two", "later");
    const headers = [["authorization", `Bearer ${key}`]];
    const watch = watched();
    const { OpenFeature, OFREPWebProvider, ProviderEvents } = pages;
    const provider = new OFREPWebProvider({
        baseUrl: server.address, headers, fetchImplementation: watch.fetched, pollInterval: 50, cacheMode: "disabled",
    });
    t.after(() => OpenFeature.clearProviders());
    await OpenFeature.setContext({ targetingKey: "ann" });
    await OpenFeature.setProviderAndWait(provider);
    const client = OpenFeature.getClient();
    const seen = () => ["one", "two"].map((id) => client.getStringDetails(id, "fallback"));
    const first = seen();
    first.forEach(({ reason, errorCode }) => assert.deepEqual([reason, errorCode], ["SPLIT", undefined]));
    assert.equal(client.getStringDetails("hidden", "fallback").errorCode, "FLAG_NOT_FOUND");
    // The same user has the same flag wherever it is asked for.
    const behind = await serverClient(t, server, "behind", headers);
    const same = await behind.getStringDetails("one", "fallback", { targetingKey: "ann" });
    assert.deepEqual(same.flagMetadata, first[0].flagMetadata);

    const until = async (what) => {
        for (let waited = 0; !what(); waited += 10) {
            assert(waited < 10_000, `${what}: ${watch.answers}`);
            await sleep(10);
        }
    };
    await until(() => watch.answers.filter((status) => status === 304).length >= 3);
    assert.equal(watch.answers.filter((status) => status === 200).length, 1);
    const stale = new Promise((resolve) => client.addHandler(ProviderEvents.Stale, resolve));
    await server.kill();
    await stale;
    assert.deepEqual(seen(), first);
    await server.launch();
    const before = watch.answers.length;
    await until(() => watch.answers.length > before);
    assert.equal(watch.answers.at(-1), 304, "after a restart the tag is what it was");
    const changed = new Promise((resolve) => client.addHandler(ProviderEvents.ConfigurationChanged, resolve));
    await create(server, "later");
    assert.deepEqual((await changed).flagsChanged, ["later"]);
    assert.deepEqual(seen(), first);
    assert.equal(client.getStringDetails("later", "fallback").reason, "SPLIT");
    await OpenFeature.setContext({ targetingKey: "bob" });
    assert.notDeepEqual(seen().map((details) => details.flagMetadata), first.map((details) => details.flagMetadata));
    await OpenFeature.setContext({ targetingKey: "ann" });
    assert.deepEqual(seen(), first);
});

test("an experiment that learnt nothing leaves pages and servers their default", async (t) => {
    const server = await begin(t, "early");
    await server.ok("experiments/early/close", {});
    const headers = [["x-api-key", await keyFor(server, "page", "decide", "early")]];
    const { OpenFeature, OFREPWebProvider } = pages;
    t.after(() => OpenFeature.clearProviders());
    await OpenFeature.setContext({ targetingKey: "ann" });
    const provider = new OFREPWebProvider({ baseUrl: server.address, headers, cacheMode: "disabled" });
    await OpenFeature.setProviderAndWait(provider);
    const details = OpenFeature.getClient().getStringDetails("early", "fallback");
    assert.deepEqual([details.value, details.reason, details.errorCode], ["fallback", "DISABLED", undefined]);
    // The provider for servers knows the protocol before it had such answers: the value is right, the reason an error.
    const flags = await serverClient(t, server, "early", headers);
    assert.equal(await flags.getStringValue("early", "fallback", { targetingKey: "ann" }), "fallback");
});

test("the page's program for Node runs as it stands", async (t) => {
    const server = await Server.start();
    t.after(() => server.stop());
    const spec = await readFile(join(root, "examples/live.toml"), "utf8");
    await server.ok("experiments", { id: "trial", spec });
    const page = await readFile(join(root, "docs/flags.md"), "utf8");
    const [, text] = page.match(/```js\n(.*?)```/s);
    // Beside the packages, where imports find them.
    const file = join(root, `target/browser/page-${process.pid}.mjs`);
    await writeFile(file, text.replace("http://127.0.0.1:8123", server.address));
    t.after(() => rm(file));
    const said = t.mock.method(console, "log", () => {});
    await import(file);
    assert.deepEqual(said.mock.calls[0].arguments, [["recorded"]]);
});

test("kills in the middle change no flag, and the audit finds nothing amiss", async (t) => {
    const server = await begin(t, "routing");
    const key = await keyFor(server, "router", "decide");
    const flags = await serverClient(t, server, "kills", [["x-api-key", key]]);
    const seen = new Map();
    let [fallbacks, stopped] = [0, false];
    const ask = async (user) => {
        const details = await flags.getStringDetails("routing", "fallback", { targetingKey: user });
        if (details.errorCode) {
            fallbacks += 1;
        } else if (seen.has(user)) {
            assert.deepEqual(details, seen.get(user));
        } else {
            seen.set(user, details);
        }
    };
    const play = async (thread) => {
        for (let number = 0; !stopped; number += 1) {
            await ask(`user-${(number * 7 + thread) % (3 + number)}`);
        }
    };
    const playing = [0, 1, 2, 3].map(play);
    for (let kill = 1; kill <= 4; kill += 1) {
        // However slow the disk is: there are new users before every kill.
        while (seen.size < 5 * kill) {
            await sleep(10);
        }
        await server.kill();
        await server.launch();
    }
    stopped = true;
    await Promise.all(playing);
    assert(fallbacks > 0, "no evaluation met a server that was gone");
    for (const user of seen.keys()) {
        await ask(user);
    }
    const { code, out, err } = await debora("audit", server.store, "--experiment", "routing");
    assert(code === 0 && out.includes("all equal"), out + err);
});
