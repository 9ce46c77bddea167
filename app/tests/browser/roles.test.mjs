// Each role sees what it may do and is refused the rest, in words.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { play, random, routing, worlds } from "./experiments.mjs";
import { assertNothing, axe, look } from "./looks.mjs";
import { Server } from "./server.mjs";

let browser, server;
const keys = {};
before(async () => {
    browser = await launch();
    server = await Server.start();
    keys.admin = await server.key("ada", "admin");
    keys.decide = await server.key("router", "decide");
    keys.read = await server.key("reader", "read");
    keys.scoped = await server.key("partner", "admin", "theirs");
    for (const id of ["theirs", "ours"]) {
        await server.ok("experiments", { id, spec: routing({ name: `${id} alone` }) });
        await play(server, id, worlds.routing(random(1)), 1_000);
    }
});
after(async () => {
    await browser.close();
    await server.stop();
});

/** Places of the navigation, and what may be done to an experiment. */
const ROLES = {
    admin: { places: ["Experiments", "New experiment", "API", "Admin"], changes: ["Pause", "Close"] },
    scoped: { places: ["Experiments", "New experiment", "API"], changes: ["Pause", "Close"] },
    decide: { places: ["Experiments", "API"], changes: [] },
    read: { places: ["Experiments", "API"], changes: [] },
};

for (const [role, { places, changes }] of Object.entries(ROLES)) {
    test(`a key with role ${role} is shown what it may do`, async () => {
        const visit = await Visit.begin(browser, server);
        const { page } = visit;
        await visit.logIn(keys[role]);
        const links = page.getByRole("navigation", { name: "Main" }).getByRole("listitem");
        assert.deepEqual(await links.allInnerTexts(), places);
        await visit.go("/experiments/theirs");
        const buttons = await page.getByRole("main").locator("button, summary").allInnerTexts();
        for (const change of ["Pause", "Close"]) {
            const shown = buttons.some((text) => text.startsWith(change));
            assert.equal(shown, changes.includes(change), `${change}: ${buttons}`);
        }
        await visit.go("/new", places.includes("New experiment") ? 200 : 403);
        for (const path of ["/admin", "/admin/keys", "/admin/webhooks"]) {
            await visit.go(path, places.includes("Admin") ? 200 : 403);
        }
        await visit.end();
    });
}

test("a scoped key sees its experiments alone", async () => {
    const visit = await Visit.begin(browser, server);
    await visit.logIn(keys.scoped);
    const text = await visit.page.getByRole("main").innerText();
    assert(text.includes("theirs alone") && !text.includes("ours alone"), text);
    await visit.go("/experiments/ours", 404);
    await visit.end();
});

test("errors speak to a person", async () => {
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await visit.logIn(keys.read);
    for (const [name, path, status] of [
        ["missing-page", "/nowhere", 404],
        ["missing-experiment", "/experiments/nowhere", 404],
        ["missing-epoch", "/experiments/ours/epochs/99", 404],
        ["forbidden", "/admin/keys", 403],
    ]) {
        await visit.go(path, status);
        assertNothing(await look(visit, name));
        assert(await page.getByRole("heading", { level: 1 }).isVisible());
        assert(await page.getByRole("main").getByRole("link").first().isVisible(), "no way back");
    }
    await visit.end();
});

test("a wrong key is refused, and the right one leads to where one was going", async () => {
    const visit = await Visit.begin(browser, server);
    const { page } = visit;
    await page.goto("/experiments/ours");
    await page.getByLabel("API key").fill("debora_wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("unknown or revoked").waitFor();
    assertNothing(await axe(page));
    visit.forgive(/status of 401/);
    await page.getByLabel("API key").fill(` ${keys.read}\n`);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL("**/experiments/ours");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    await page.goto("/experiments/ours");
    assert(new URL(page.url()).pathname === "/login", page.url());
    await visit.end();
});
