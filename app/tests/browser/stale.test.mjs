// An open page follows the experiment by itself, says so when the server is gone, and goes on when it is back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { play, random, routing, worlds } from "./experiments.mjs";
import { axe, assertNothing, picture } from "./looks.mjs";
import { Server } from "./server.mjs";

let browser, server;
before(async () => {
    browser = await launch();
    server = await Server.start();
    await server.ok("experiments", { id: "e", spec: routing() });
});
after(async () => {
    await browser.close();
    await server.stop();
});

for (const [name, path] of [["experiment", "/experiments/e"], ["experiments", "/"]]) {
    test(`${path} follows, turns stale and becomes fresh again`, async () => {
        const visit = await Visit.begin(browser, server);
        const { page } = visit;
        await visit.go(path);
        // Gone if the page were loaded again.
        await page.evaluate(() => (globalThis.stays = true));
        const answer = worlds.routing(random(1));
        const before = (await server.ok("experiments/e")).decided;
        await play(server, "e", answer, 321);
        const decided = (before + 321).toLocaleString("en-US");
        await page.getByText(decided).first().waitFor();

        const alert = page.getByRole("alert");
        assert(!(await alert.isVisible()));
        await server.kill();
        await alert.getByText("does not answer").waitFor({ timeout: 20_000 });
        await picture(page, `${name}-stale`);
        assertNothing(await axe(page));

        await server.launch();
        await alert.waitFor({ state: "hidden", timeout: 20_000 });
        await play(server, "e", answer, 200);
        await page.getByText((before + 521).toLocaleString("en-US")).first().waitFor();
        assert(await page.evaluate(() => globalThis.stays), "the page was loaded again");
        // Chromium puts requests without an answer on the console, and htmx what it could not send.
        visit.forgive(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|htmx:sendError/);
        await visit.end();
    });
}
