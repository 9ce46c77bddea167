// An open page follows the experiment by itself, says so when the server is gone, and goes on when it is back.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { play, random, routing, worlds } from "./experiments.mjs";
import { axe, assertNothing, picture } from "./looks.mjs";
import { Server } from "./server.mjs";

let browser;
before(async () => {
    browser = await launch();
});
after(() => browser.close());

// At the same time: they wait more than they work.
describe("an open page", { concurrency: true }, () => {
    for (const [name, path] of [["experiment", "/experiments/e"], ["experiments", "/"]]) {
        test(`${path} follows, turns stale and becomes fresh again`, async (t) => {
            const server = await Server.start();
            t.after(() => server.stop());
            await server.ok("experiments", { id: "e", spec: routing() });
            const visit = await Visit.begin(browser, server);
            const { page } = visit;
            await visit.go(path);
            // Gone if the page were loaded again.
            await page.evaluate(() => (globalThis.stays = true));
            const answer = worlds.routing(random(1));
            await play(server, "e", answer, 321);
            await page.getByText("321").first().waitFor();

            const alert = page.getByRole("alert");
            assert(!(await alert.isVisible()));
            await server.kill();
            await alert.getByText("does not answer").waitFor({ timeout: 20_000 });
            await picture(page, `${name}-stale`);
            assertNothing(await axe(page));

            await server.launch();
            await alert.waitFor({ state: "hidden", timeout: 20_000 });
            await play(server, "e", answer, 200);
            await page.getByText("521").first().waitFor();
            assert(await page.evaluate(() => globalThis.stays), "the page was loaded again");
            // Chromium puts requests without an answer on the console, and htmx what it could not send.
            visit.forgive(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|htmx:(sendError|afterRequest)/);
            await visit.end();
        });
    }
});
