// Every page, in every state of an experiment: no complaint, no violation of the guidelines, light, walked through by keyboard.
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { everyState } from "./experiments.mjs";
import { assertLight, assertNothing, keyboard, look } from "./looks.mjs";
import { Server } from "./server.mjs";

const STATES = ["fresh", "running", "waiting", "overtime", "paused", "committed", "infeasible", "closed", "held", "twin"];

/** Name, address, and what is special about it. */
const PAGES = [
    ["experiments", "/"],
    ["new", "/new"],
    ...STATES.map((id) => [`experiment-${id}`, `/experiments/${id}`]),
    ["strategy-by-clock", "/experiments/running?x=clock&scale=linear"],
    ["epochs", "/experiments/running/epochs"],
    ["epoch-explore", "/experiments/running/epochs/0"],
    ["epoch-estimate", "/experiments/running/epochs/1"],
    ["epoch-commit", "/experiments/committed/epochs/2"],
    ["epoch-infeasible", "/experiments/infeasible/epochs/3"],
    ["audit", "/experiments/running/audit"],
    ["compare", "/experiments/running/diff"],
    ["compared", "/experiments/running/diff?with=twin"],
    ["diverged", "/experiments/running/diff?with=apart"],
    ["certificate-later", "/experiments/running/certificate"],
    ["certificate", "/experiments/twin/certificate"],
    ["certificate-held", "/experiments/held/certificate"],
    ["seal", "/experiments/running/seal"],
    ["admin", "/admin"],
    ["keys", "/admin/keys"],
    ["webhooks", "/admin/webhooks"],
    ["api", "/api", { long: true }],
];

let browser, server, session;
before(async () => {
    browser = await launch();
    server = await Server.start();
    const key = await server.key("ada", "admin");
    await everyState(server);
    const visit = await Visit.begin(browser, server);
    await visit.logIn(key);
    session = await visit.context.storageState();
    await visit.end();
});
after(async () => {
    await browser.close();
    await server.stop();
});

async function isForEveryone(name, path, storageState, { long } = {}) {
    // A visit of its own: files that the browser has already would not be weighed.
    const visit = await Visit.begin(browser, server, { storageState });
    await visit.go(path);
    await assertLight(visit, name);
    const found = [...(await look(visit, name, { long })), ...(await keyboard(visit.page))];
    await visit.end();
    assertNothing(found);
}

for (const [name, path, special] of PAGES) {
    test(`${path} is for everyone`, () => isForEveryone(name, path, session, special));
}

test("/login is for everyone", () => isForEveryone("login", "/login"));
