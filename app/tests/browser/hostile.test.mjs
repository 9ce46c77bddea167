// Names are other people's texts: nothing in them is executed, and none breaks the layout.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { play, random } from "./experiments.mjs";
import { assertLight, assertNothing, look } from "./looks.mjs";
import { Server } from "./server.mjs";

/** What a name may hold, and a browser may take for something else. */
const NAMES = [
    `<script>alert(1)</script>`,
    `"><img src=x onerror=alert(2)>`,
    `' onmouseover='alert(3)' x='`,
    `</title></textarea></svg><svg onload=alert(4)>`,
    "javascript:alert(5)",
    "=HYPERLINK(\"http://evil.example\")",
    "{{constructor.constructor('alert(6)')()}}",
    "تجربة الأسعار \u202e gnp.exe",
    "👩🏽‍🚀🏳️‍🌈 emoji",
    "W".repeat(120),
];

/** What the interface hands out and takes, for so many actions and costs. */
const sizes = [
    { id: "names", actions: NAMES, costs: NAMES.slice(0, 4).map((name) => `cost ${name}`) },
    {
        id: "many",
        actions: Array.from({ length: 200 }, (_, place) => `action ${place} ${NAMES[place % NAMES.length]}`.slice(0, 60)),
        costs: Array.from({ length: 20 }, (_, place) => `cost ${place} ${NAMES[place % NAMES.length]}`.slice(0, 60)),
    },
];

function spec({ actions, costs }) {
    const limits = costs.map((name) => `[[cost]]\nname = ${JSON.stringify(name)}\nthreshold = 0.5\n`);
    return `name = ${JSON.stringify(NAMES[1])}
policy = "soft"
horizon = 1_000_000_000
rho = 0.9
actions = ${JSON.stringify(actions)}
[reward]
name = ${JSON.stringify(NAMES[0])}
${limits.join("")}`;
}

let browser, server;
before(async () => {
    browser = await launch();
    server = await Server.start();
    for (const size of sizes) {
        await server.ok("experiments", { id: size.id, spec: spec(size), blind: true });
        const draw = random(1);
        const answer = (action) => ({ reward: draw(), costs: size.costs.map((_, cost) => ((action + cost) % 10) / 10) });
        await play(server, size.id, answer, 3_000);
        await server.ok(`experiments/${size.id}/pause`, { reason: NAMES[1] });
    }
    await server.ok("experiments/names/close", { reason: NAMES[3] });
});
after(async () => {
    await browser.close();
    await server.stop();
});

const PAGES = [
    ["hostile-list", "/"],
    ...sizes.flatMap(({ id }) => [
        [`hostile-${id}`, `/experiments/${id}`],
        [`hostile-${id}-epochs`, `/experiments/${id}/epochs`],
        [`hostile-${id}-epoch`, `/experiments/${id}/epochs/0`],
        [`hostile-${id}-audit`, `/experiments/${id}/audit`],
        [`hostile-${id}-compare`, `/experiments/${id}/diff?with=${id === "names" ? "many" : "names"}`],
        [`hostile-${id}-seal`, `/experiments/${id}/seal`],
    ]),
    ["hostile-certificate", "/experiments/names/certificate"],
];

for (const [name, path] of PAGES) {
    test(`${path} executes nothing and holds`, async () => {
        const visit = await Visit.begin(browser, server);
        await visit.go(path);
        await assertLight(visit, name);
        const found = await look(visit, name, { long: true });
        // Nothing of a name became a part of the page.
        const parts = await visit.page.evaluate(
            () => document.querySelectorAll("img[src=x], [onload], [onerror], [onmouseover], script:not([src]), a[href^='javascript:']").length,
        );
        assert.equal(parts, 0);
        await visit.end();
        assertNothing(found);
    });
}
