// What is pressed twice is done once, what is typed in between is not lost, and a page leaves nothing behind.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { routing } from "./experiments.mjs";
import { Server } from "./server.mjs";

let browser, server;
before(async () => (browser = await launch()));
after(async () => await browser.close());
beforeEach(async (context) => {
    server = await Server.start();
    context.after(() => server.stop());
});

/** Presses a button twice, before the first answer reaches the browser. */
async function pressTwice(page, path, name) {
    const answers = [];
    let answer;
    const held = new Promise((resolve) => (answer = resolve));
    await page.route(path, async (route) => {
        if (route.request().method() !== "POST") {
            await route.continue();
            return;
        }
        const response = await route.fetch({ maxRedirects: 0 });
        answers.push(response);
        await held;
        // Of a request that the browser gave up there is nobody to answer.
        await route.fulfill({ response }).catch(() => {});
    });
    const button = page.getByRole("button", { name });
    await button.scrollIntoViewIfNeeded();
    const box = await button.boundingBox();
    const press = () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await press();
    while (answers.length < 1) {
        await page.waitForTimeout(10);
    }
    await press();
    answer();
    return answers;
}

for (const javaScriptEnabled of [true, false]) {
    const script = javaScriptEnabled ? "with" : "without";

    test(`the first key is seen, though its button is pressed twice, ${script} a script`, async () => {
        const visit = await Visit.begin(browser, server, { javaScriptEnabled });
        const { page } = visit;
        await visit.go("/admin/keys");
        await page.getByLabel("Name", { exact: true }).fill("ada");
        const answers = await pressTwice(page, "**/admin/keys", "Make the key");
        await page.getByRole("heading", { name: "A key was made" }).waitFor();
        assert.equal(answers.length, javaScriptEnabled ? 1 : 2);
        const key = await page.locator("#key").innerText();
        const keys = await server.api("keys", undefined, key);
        assert.deepEqual(keys.body.keys.map((each) => each.name), ["ada"]);
        await visit.end();
    });

    test(`one experiment is created, though its button is pressed twice, ${script} a script`, async () => {
        const visit = await Visit.begin(browser, server, { javaScriptEnabled });
        const { page } = visit;
        await visit.go("/new");
        const answers = await pressTwice(page, "**/new", "Create the experiment");
        await page.waitForURL("**/experiments/*");
        assert.equal(answers.length, javaScriptEnabled ? 1 : 2);
        assert.equal((await server.ok("experiments")).experiments.length, 1);
        await visit.end();
    });
}

test("a button that downloads can be pressed again", async () => {
    const visit = await Visit.begin(browser, server, { acceptDownloads: true });
    const { page } = visit;
    await page.clock.install();
    await visit.go("/admin/backup");
    const button = page.getByRole("button", { name: "Download a copy" });
    for (const _ of ["once", "again"]) {
        const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
        await file.path();
        await page.clock.runFor(10_001);
        assert(await button.isEnabled());
    }
    await visit.end();
});

test("a log-out leaves nothing of a search in the browser, and the way back is open before it", async () => {
    await server.ok("experiments", { id: "secret", spec: routing({ name: "secret" }) });
    const admin = await server.key("ada", "admin");
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await visit.logIn(admin);
    await page.getByRole("searchbox").fill("secret");
    await page.waitForURL(/q=secret/);
    await page.getByRole("link", { name: "secret" }).first().click();
    await page.waitForURL("**/experiments/secret");
    await page.goBack();
    await page.getByRole("link", { name: "secret" }).first().waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/login**");
    const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]));
    assert.equal(kept, "[{},{}]");
    await visit.end();
});

test("a name may be another's while it is typed", async () => {
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await page.clock.install();
    await visit.go("/new");
    const spec = page.getByLabel("Spec", { exact: true });
    const second = page.getByLabel("Action 2", { exact: true });
    const text = routing().replace('"soft"', '"hard"') + "\n[safe]\nstrategy = { small = 0.5, large = 0.5 }\ncost = { price = 0.008 }\n";
    const drafted = (request) => request.url().endsWith("/new/draft");
    const follow = async (act) => {
        const answered = page.waitForEvent("requestfinished", drafted);
        await act();
        await page.clock.runFor(301);
        await answered;
    };
    await follow(() => spec.fill(text));
    let sent = 0;
    page.on("request", (request) => (sent += Number(drafted(request))));
    await second.fill("small");
    await page.clock.runFor(301);
    assert.equal(sent, 0);
    await follow(() => second.fill("small2"));
    await page.waitForFunction(() => document.getElementById("spec").value.includes("small2"));
    assert.match(await spec.inputValue(), /strategy = \{ small = 0\.5, small2 = 0\.5 \}/);
    // Left so, it is a fault that is shown.
    await second.fill("small");
    await follow(() => second.blur());
    await page.locator("[id='f-actions.1'][aria-invalid=true]").waitFor();
    await visit.end();
});
