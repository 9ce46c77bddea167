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
        // waitForURL would take the first press's navigation, which the second one ends, for a failure.
        while (!page.url().includes("/experiments/")) {
            await page.waitForTimeout(10);
        }
        assert.equal(answers.length, javaScriptEnabled ? 1 : 2);
        assert.equal((await server.ok("experiments")).experiments.length, 1);
        await visit.end();
    });
}

test("a button whose answer leaves the page as it is can be pressed again", async () => {
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await page.clock.install();
    await visit.go("/admin/keys");
    await page.getByLabel("Name", { exact: true }).fill("ada");
    await page.route("**/admin/keys", (route) => route.fulfill({ status: 204 }));
    const button = page.getByRole("button", { name: "Make the key" });
    for (const _ of ["once", "again"]) {
        await Promise.all([page.waitForRequest("**/admin/keys"), button.click()]);
        await page.clock.runFor(10_001);
        assert(await button.isEnabled());
    }
    await visit.end();
});

test("a log-out leaves nothing of a search in the browser, and the way back is open before it", async () => {
    const admin = await server.key("ada", "admin");
    await server.ok("experiments", { id: "secret", spec: routing({ name: "secret" }) });
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
    // htmx notes where it is, and that is all.
    assert.equal(kept, '[{"htmx-current-path-for-history":"/login"},{}]');
    await visit.end();
});

/** The page of a new experiment, and what has it sent what was typed. */
async function writing() {
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await page.clock.install();
    await visit.go("/new");
    const spec = page.getByLabel("Spec", { exact: true });
    const drafted = (request) => request.url().endsWith("/new/draft");
    /** Waits until the page shows the answer to what was done. */
    const follow = async (act, shown, value) => {
        const answered = page.waitForEvent("requestfinished", drafted);
        await act();
        await page.clock.runFor(301);
        await answered;
        await page.waitForFunction(shown, value);
    };
    return { visit, page, spec, drafted, follow };
}

test("form and text say the same, whichever is looked at, and so does what is created", async () => {
    const { visit, page, spec, follow } = await writing();
    const rho = page.getByLabel(/^rho/);
    const values = async () => [(await spec.inputValue()).match(/^rho\s*= (\S+)/m)[1], await rho.inputValue()];
    const planned = (percent) => document.getElementById("plan").innerText.includes(`${percent} %`);
    const said = (words) => document.getElementById("spec").value.includes(words);
    // Changed in the form, and at once into the text.
    await follow(async () => {
        await rho.fill("0.25");
        await spec.click();
    }, planned, 75);
    assert.deepEqual(await values(), ["0.25", "0.25"]);
    await follow(() => page.keyboard.type("# a note\n"), () => document.querySelector("[name=was]").value.includes("# a note"));
    assert.deepEqual(await values(), ["0.25", "0.25"]);
    // The other way round.
    const text = await spec.inputValue();
    await follow(async () => {
        await spec.fill(text.replace("0.25", "0.3"));
        await rho.click();
    }, planned, 70);
    assert.deepEqual(await values(), ["0.3", "0.3"]);
    // Changed in the form while the text is not TOML.
    await follow(() => spec.fill(text.replace("1_000_000", "")), () => document.querySelector("#spec[aria-invalid=true]"));
    await follow(() => rho.fill("0.2"), () => document.querySelector("[name=rho]").value === "0.2");
    await follow(() => spec.fill(text), planned, 80);
    assert.deepEqual(await values(), ["0.2", "0.2"]);
    // The caret stays where it was, and so does a blank at the end of a name.
    await spec.evaluate((area) => area.setSelectionRange(area.value.length - 3, area.value.length - 3));
    const name = page.getByLabel("Name of the experiment");
    await follow(async () => {
        await name.fill("a longer name than before ");
        await spec.focus();
    }, said, "than before");
    assert.equal(await spec.evaluate((area) => area.value.length - area.selectionStart), 3);
    await follow(() => name.fill("half "), said, "half");
    assert.equal(await name.inputValue(), "half ");
    await page.getByRole("button", { name: "Create the experiment" }).click();
    await page.waitForURL("**/experiments/*");
    const [created] = (await server.ok("experiments")).experiments;
    assert.match((await server.ok(`experiments/${created.id}`)).spec, /^rho\s*= 0.2$/m);
    await visit.end();
});

test("a name may be another's while it is typed", async () => {
    const { visit, page, spec, drafted, follow } = await writing();
    const second = page.getByLabel("Action 2", { exact: true });
    const text = routing().replace('"soft"', '"hard"') + "\n[safe]\nstrategy = { small = 0.5, large = 0.5 }\ncost = { price = 0.004 }\n";
    await follow(() => spec.fill(text), () => document.getElementById("f-safe.strategy.1"));
    let sent = 0;
    page.on("request", (request) => (sent += Number(drafted(request))));
    await second.fill("small");
    await page.clock.runFor(301);
    assert.equal(sent, 0);
    await follow(() => second.fill("small2"), () => document.getElementById("spec").value.includes("small2"));
    assert.match(await spec.inputValue(), /strategy = \{ small = 0\.5, small2 = 0\.5 \}/);
    // Left so, it is a fault that is shown.
    await second.press("End");
    await second.press("Backspace");
    await follow(() => second.blur(), () => document.getElementById("spec-fault").innerText);
    await visit.end();
});
