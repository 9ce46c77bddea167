// The whole way of a person with an experiment: planned, created, watched, understood, audited, closed, certified.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { keyOf, play, playHeld, random, routing, worlds } from "./experiments.mjs";
import { assertNothing, axe, picture } from "./looks.mjs";
import { Server, debora } from "./server.mjs";

/** What is walked with. */
const TEXT = routing({ name: "the walk" });

let browser, server, visit, page, admin;
before(async () => {
    browser = await launch();
    server = await Server.start();
    admin = await server.key("ada", "admin");
    visit = await Visit.begin(browser, server, { acceptDownloads: true });
    page = visit.page;
});
after(async () => {
    await browser.close();
    await server.stop();
});

const main = () => page.getByRole("main");
const field = (name) => main().getByLabel(name, { exact: true });
const spec = () => main().getByLabel("Spec", { exact: true });
const button = (name) => main().getByRole("button", { name });

/** Waits for what comes while one looks on. */
async function until(holds, claim) {
    for (const end = Date.now() + 10_000; Date.now() < end; ) {
        if (await holds()) {
            return;
        }
        await page.waitForTimeout(20);
    }
    assert.fail(`not so: ${claim}`);
}

/** The file that a link or a button leads to. */
async function download(locator, name) {
    const [file] = await Promise.all([page.waitForEvent("download"), locator.click()]);
    const path = join(server.folder, name);
    await file.saveAs(path);
    return path;
}

test("one logs in", async () => {
    await visit.logIn(admin);
    await main().getByRole("heading", { name: "Experiments" }).waitFor();
});

test("form and text of a new experiment follow each other, and the plan follows both", async () => {
    await page.getByRole("link", { name: "New experiment" }).click();
    await field(/^Name of the experiment/).fill("the walk");
    await page.evaluate(() => (globalThis.stays = true));
    await until(async () => (await spec().inputValue()).includes('"the walk"'), "the text follows the form");
    await spec().fill(TEXT);
    await until(async () => (await field(/^Horizon/).inputValue()).replaceAll("_", "") === "20000", "the form follows the text");
    assert.deepEqual([await field("Action 1").inputValue(), await field("Action 2").inputValue()], ["small", "large"]);

    const file = join(server.folder, "walk.toml");
    await writeFile(file, await spec().inputValue());
    const planned = await debora("plan", file);
    assert.equal(planned.code, 0, planned.err);
    const sentences = planned.out.replace(/\s+/g, " ").match(/(Two runs|Exploration takes|By the end)[^.]*(\.\d[^.]*)*\./g);
    assert.equal(sentences.length, 3, planned.out);
    const plan = main().getByRole("region", { name: "Plan" });
    for (const sentence of sentences) {
        await plan.getByText(sentence).waitFor();
    }
    await picture(page, "walk-planned");
});

test("a fault stands at its field", async () => {
    await field(/^rho/).fill("2");
    await until(async () => (await field(/^rho/).getAttribute("aria-invalid")) === "true", "the field is marked");
    const described = await field(/^rho/).getAttribute("aria-describedby");
    const said = await page.locator(described.split(" ").map((id) => `[id="${id}"]`).join(", ")).allInnerTexts();
    assert.match(said.join(" "), /rho/);
    assertNothing(await axe(page));
    await picture(page, "walk-fault");
    await field(/^rho/).fill("0.9");
    await until(async () => (await field(/^rho/).getAttribute("aria-invalid")) !== "true", "the mark is gone");
});

test("a blind plan has a remedy, which a button applies", async () => {
    await field(/^Horizon/).fill("40");
    const remedy = button(/^Use a horizon of/);
    await remedy.waitFor();
    assertNothing(await axe(page));
    await picture(page, "walk-blind");
    const horizon = (await remedy.innerText()).replace(/\D/g, "");
    await remedy.click();
    await until(async () => (await field(/^Horizon/).inputValue()).replace(/\D/g, "") === horizon, "the horizon is the remedy's");
    await remedy.waitFor({ state: "detached" });
    await spec().fill(TEXT);
    await until(async () => (await field(/^Horizon/).inputValue()).replace(/\D/g, "") === "20000", "the horizon is back");
});

test("rows come and go", async () => {
    await button("Add an action").click();
    await field("Action 3").fill("huge");
    await until(async () => (await spec().inputValue()).includes('"huge"'), "the text has the row");
    await button(/Remove action 3/i).click();
    await until(async () => !(await spec().inputValue()).includes('"huge"'), "the text has it no more");
});

test("it is simulated on guessed means", async () => {
    await main().locator("input[type=number]").nth(0).fill("0.5");
    await button("Simulate").click();
    const simulated = main().getByRole("region", { name: "Simulate this" });
    await simulated.getByRole("table").waitFor();
    assert.match(await simulated.innerText(), /identical/);
    // Without a script every button works by loading the page again, and all of the above would pass.
    assert(await page.evaluate(() => globalThis.stays), "a button loaded the page again");
    assertNothing(await axe(page));
    await picture(page, "walk-simulated");
});

test("it is created, and the page follows what the interface is asked and told", async () => {
    await field("Id in addresses").fill("walk");
    await field(/^Key/).fill(keyOf("walk"));
    await button("Create the experiment").click();
    await page.waitForURL("**/experiments/walk");
    assert.equal((await server.ok("experiments/walk")).spec, TEXT);
    await page.evaluate(() => (globalThis.stays = true));
    await play(server, "walk", worlds.routing(random(1)), 5_000);
    await main().getByText("5,000").first().waitFor();
    assert(await page.evaluate(() => globalThis.stays), "the page was loaded again");
});

test("an epoch says what was estimated and why its strategy is played", async () => {
    await main().getByRole("link", { name: "Epochs" }).click();
    await page.waitForURL("**/epochs");
    await main().getByRole("link", { name: /^(Epoch )?1$/ }).first().click();
    await page.waitForURL("**/epochs/1");
    const lines = (await server.ok("experiments/walk/epochs")).epochs ?? [];
    const text = await main().innerText();
    for (const word of ["small", "large", "quality", "price"]) {
        assert(text.includes(word), word);
    }
    assert.equal(lines.length, (await server.ok("experiments/walk")).epoch + 1);
    await picture(page, "walk-epoch");
});

test("numbers of a figure are shown at the pointer and to be had as CSV and JSON", async () => {
    await visit.go("/experiments/walk");
    const figure = main().locator("figure").first();
    await figure.scrollIntoViewIfNeeded();
    const box = await figure.locator("svg").first().boundingBox();
    const tip = page.getByRole("status").filter({ hasText: /\d %/ });
    let moved = 0;
    await until(async () => {
        // A hand is never quite still: a page that scrolls hides the numbers until the next move.
        await page.mouse.move(box.x + box.width / 2 + (moved++ % 3), box.y + box.height / 2);
        return tip.isVisible();
    }, "numbers are at the pointer");
    const links = await main().getByRole("link", { name: /^(CSV|JSON)$/ }).evaluateAll((all) => all.map((link) => link.href));
    assert(links.length >= 8, `${links}`);
    for (const address of links) {
        const answer = await visit.context.request.get(address);
        assert(answer.ok(), address);
        assert.match(await answer.text(), /small|price/, address);
    }
});

test("it is audited with the page's commands", async () => {
    await main().getByRole("link", { name: "Audit" }).click();
    assertNothing(await axe(page));
    await picture(page, "walk-audit");
    const commands = await main().locator("pre").allInnerTexts();
    assert.equal(commands.length, 3, commands.join("\n"));
    const [byAddress, byLog, byStore] = commands.map((command) => command.trim().split("\n").pop().split(" ").slice(1));
    byLog[1] = await download(main().getByRole("link", { name: "Log", exact: true }), byLog[1]);
    byStore[1] = server.store;
    for (const command of [[...byAddress, "--api-key", admin], byLog, byStore]) {
        const audited = await debora(...command);
        assert.match(audited.out.replace(/\s+/g, " "), /all equal/, audited.err);
    }
});

test("it is closed with a reason", async () => {
    await visit.go("/experiments/walk");
    await main().getByText(/^Close …/).click();
    await main().getByLabel(/Reason/).last().fill("enough is known");
    await button("Close it").click();
    await main().getByText(/enough is known/).first().waitFor();
    assert.equal((await server.ok("experiments/walk")).status, "closed");
});

test("its certificate is downloaded, and its log is checked by the program", async () => {
    await visit.go("/experiments/walk/certificate");
    await main().getByText("enough is known").first().waitFor();
    const log = await download(main().getByRole("link", { name: "Log", exact: true }), "walk.jsonl");
    const certificate = await server.ok("experiments/walk/certificate");
    const checked = await debora("audit", log, "--head", certificate.head);
    assert.equal(checked.code, 0, checked.out + checked.err);
    // The same file with a digit changed is not.
    const text = await readFile(log, "utf8");
    await writeFile(log, text.replace(/"reward":1\b/, '"reward":0'));
    const forged = await debora("audit", log, "--head", certificate.head);
    assert.equal(forged.code, 1, forged.out + forged.err);
});

test("it is compared with an experiment of the same key", async () => {
    await server.ok("experiments", { id: "twin", spec: routing({ name: "the other team" }), key: keyOf("walk") });
    await play(server, "twin", worlds.routing(random(2)), 5_000);
    await visit.go("/experiments/walk/diff");
    await main().getByLabel(/Experiment/).fill("twin");
    await button("Compare").click();
    await page.waitForURL("**/diff?with=twin");
    const said = await debora("diff", `${server.address}/v1/experiments/walk`, `${server.address}/v1/experiments/twin`, "--api-key", admin);
    const sentence = said.out.trim().split("\n\n")[0].replace(/\s+/g, " ");
    const text = (await main().innerText()).replace(/\s+/g, " ");
    assert(text.includes(sentence), `${sentence}\nis not in\n${text}`);
    assertNothing(await axe(page));
    await picture(page, "walk-compared");
});

test("some are held back by the form, and the page says what the experiment gives beyond them", async () => {
    await visit.go("/new");
    await spec().fill(TEXT);
    await until(async () => (await field(/^Horizon/).inputValue()).replace(/\D/g, "") === "20000", "the form follows the text");
    const share = field(/^Share of requests/);
    const action = field("Action they get");
    await share.fill("2");
    await until(async () => (await action.getAttribute("aria-invalid")) === "true", "what is missing is marked");
    await action.selectOption("small");
    await until(async () => (await share.getAttribute("aria-invalid")) === "true", "what is wrong is marked");
    assertNothing(await axe(page));
    await picture(page, "walk-holdback-fault");
    await share.fill("0.2");
    await until(async () => (await spec().inputValue()).includes('holdback = { share = 0.2, action = "small" }'), "the text follows the form");
    await main().getByRole("region", { name: "Plan" }).getByText(/20 % of request keys are held back and always get "small"/).waitFor();
    await picture(page, "walk-holdback");
    await field("Action 1").fill("tiny");
    await until(async () => (await action.inputValue()) === "tiny", "the action is followed by its name");
    await spec().fill(routing({ name: "the walk, held back", held: 0.2 }));
    await until(async () => (await action.inputValue()) === "small", "the form follows the text");
    await field("Id in addresses").fill("held");
    await field(/^Key/).fill(keyOf("held"));
    await button("Create the experiment").click();
    await page.waitForURL("**/experiments/held");
    await playHeld(server, "held", worlds.routing(random(9)), 6_000);
    const { holdback } = await server.ok("experiments/held/state");
    assert(holdback.told > 500 && holdback.told === holdback.decided, JSON.stringify(holdback));
    await main().getByText(holdback.lifts[0].sentence).first().waitFor();
    assertNothing(await axe(page));
    await picture(page, "walk-held");
});

test("keys are made, scoped and revoked", async () => {
    await visit.go("/admin/keys");
    await main().getByLabel("Name").fill("router");
    await main().getByLabel(/^decide/).check();
    await main().getByLabel(/some experiments only/).check();
    await main().getByText("Which experiments").click();
    await main().getByLabel(/their ids/).fill("twin");
    await button("Make the key").click();
    const shown = await main().locator("code").filter({ hasText: /^debora_[0-9a-f]{64}$/ }).innerText();
    assert(!page.url().includes(shown), "the key is in the address");
    await picture(page, "walk-key");
    const asked = (id) => server.api(`experiments/${id}/decisions`, { n: 1 }, shown);
    assert.deepEqual([(await asked("twin")).status, (await asked("walk")).status], [200, 404]);

    await visit.go("/admin/keys");
    assert(!(await page.content()).includes(shown), "the key is shown twice");
    const row = main().getByRole("row").filter({ hasText: "router" });
    await row.getByText("Revoke").first().click();
    await row.getByRole("button", { name: "Revoke it" }).click();
    await main().getByRole("row").filter({ hasText: "router" }).getByRole("button").waitFor({ state: "detached" });
    // Refused within two seconds.
    let status = 0;
    for (const end = Date.now() + 5_000; Date.now() < end && status !== 401; ) {
        status = (await asked("twin")).status;
    }
    assert.equal(status, 401);
});

test("one logs out, and has seen no complaint", async () => {
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    await visit.end();
});
