// What these tests would find: a page with every fault that they look for.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { assertLight, keyboard, look } from "./looks.mjs";
import { Server } from "./server.mjs";

let browser, server;
before(async () => {
    browser = await launch();
    server = await Server.start();
});
after(async () => {
    await browser.close();
    await server.stop();
});

/** Has the browser take this for the server's page. */
async function shown(body, headers = {}) {
    const visit = await Visit.begin(browser, server);
    await visit.context.route("**/faulty", (route) =>
        route.fulfill({ headers: { "content-type": "text/html; charset=utf-8", ...headers }, body }),
    );
    await visit.page.goto("/faulty");
    return visit;
}

const page = (content) => `<!doctype html><html lang="en"><title>faulty</title><link rel="icon" href="data:,">${content}</html>`;

test("whatever a page may not do is noted", async () => {
    const faults = {
        "console: a word": `<script>console.warn("a word")</script>`,
        "script: ": `<script>throw new Error("lost")</script>`,
        "dialog: 7": `<script>alert(7)</script>`,
        "request to another host: ": `<img alt="" src="http://127.0.0.1:1/x.png">`,
    };
    for (const [complaint, fault] of Object.entries(faults)) {
        const visit = await shown(page(fault));
        await assert.rejects(visit.end(), (error) => error.message.includes(complaint), complaint);
    }
    const policy = { "content-security-policy": "script-src 'self'" };
    const visit = await shown(page("<script>globalThis.ran = true</script>"), policy);
    assert.equal(await visit.page.evaluate(() => globalThis.ran), undefined);
    await assert.rejects(visit.end(), /Content Security Policy/);
});

test("an error of the server is noted", async () => {
    const visit = await Visit.begin(browser, server);
    await visit.context.route("**/faulty", (route) => route.fulfill({ status: 503, body: "busy" }));
    await visit.go("/faulty", 503);
    await assert.rejects(visit.end(), /503 of/);
});

test("what cannot be read, reached or borne is found", async () => {
    const visit = await shown(
        page(`<style>
            .pale { color: #aaa } .wide { width: 700px } .dark { color: #555 }
            @media (prefers-color-scheme: dark) { html { background: #000 } .dark { color: #222 } }
            a:focus { outline: none }
        </style>
        <main><h1>Faults</h1><p class="pale">pale</p><p class="dark">pale by night</p><div class="wide">wide</div><input>
        <a href="#x">unseen focus</a><button tabindex="-1">out of reach</button></main>`),
    );
    const found = [...(await look(visit, "faulty")), ...(await keyboard(visit.page))].join("\n");
    for (const fault of [
        /wide, light: color-contrast: \.pale/,
        /wide, dark: color-contrast: \.dark/,
        /label: input/,
        /narrow, light: the page is 7\d\d wide, the window 360/,
        /the first stop is not the skip link/,
        /focus cannot be seen: <a/,
        /not reached by Tab: <button/,
    ]) {
        assert.match(found, fault);
    }
    assert(!/wide, light: color-contrast: \.dark/.test(found), "what is legible by day is not found by day");
    await visit.context.close();
});

test("a page that is too heavy is found", async () => {
    const visit = await Visit.begin(browser, server);
    await visit.go("/login");
    await assertLight(visit, "light");
    // As large as the description of the interface is, over and over.
    for (let asked = 0; asked < 100 && (await visit.bytes()) < 150_000; asked++) {
        await visit.page.evaluate((number) => fetch(`/openapi.json?${number}`).then((answer) => answer.text()), asked);
    }
    await assert.rejects(assertLight(visit, "heavy"), /heavy weighs \d+ bytes/);
    await visit.end();
});
