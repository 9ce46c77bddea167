// The whole way of a person with an experiment: planned, created, watched, understood, audited, closed, certified.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { keyOf, play, random, routing, worlds } from "./experiments.mjs";
import { assertNothing, axe, picture } from "./looks.mjs";
import { Server, debora } from "./server.mjs";

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
const button = (name) => main().getByRole("button", { name });

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

test("one is audited to the end, in the page and by the program", async () => {
    await server.ok("experiments", { id: "walk", spec: routing({ name: "the walk" }), key: keyOf("walk") });
    await play(server, "walk", worlds.routing(random(1)), 5_000);
    await visit.go("/experiments/walk/audit");
    await button("Run the audit").click();
    await main().getByText(/all equal/i).first().waitFor();
    assertNothing(await axe(page));
    await picture(page, "walk-audited");
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
    const { readFile } = await import("node:fs/promises");
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

test("keys are made, scoped and revoked", async () => {
    await visit.go("/admin/keys");
    await main().getByLabel("Name").fill("router");
    await main().getByLabel(/^decide/).check();
    await main().getByLabel(/some experiments alone/).check();
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

test("a backup is downloaded, and serves", async () => {
    await visit.go("/admin/backup");
    const copy = await download(button("Download a copy"), "copy.db");
    const audited = await debora("audit", copy, "--experiment", "walk");
    assert.equal(audited.code, 0, audited.out + audited.err);
});

test("one logs out, and has seen no complaint", async () => {
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    await visit.end();
});
