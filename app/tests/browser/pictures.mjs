// Makes the pictures of docs/pictures: `scripts/pictures`.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { launch } from "./browser.mjs";
import { keyOf, play, random } from "./experiments.mjs";
import { Server, root } from "./server.mjs";

/** Policy hard keeps its limit from the first round on, and changes its mind several times on the way. */
const CACHE = `name    = "cache policy"
policy  = "hard"
horizon = 1_000_000
rho     = 0.3
actions = ["lru", "lfu", "segmented", "learned"]

[reward]
name  = "bytes saved"
range = [0, 1]

[[cost]]
name      = "latency"
range     = [0, 50]
threshold = 12

[safe]
strategy = { lru = 1.0 }
cost     = { latency = 6.0 }

[service]
on_wait      = "hold"
outcome_wait = "2h"
`;

function answers(seed) {
    const draw = random(seed);
    return (action) => ({
        reward: Number(draw() < [0.41, 0.44, 0.52, 0.6][action]),
        costs: { latency: [5.5, 7.0, 9.0, 21.0][action] * 2 * draw() },
    });
}

/** By name. */
const PICTURES = {
    experiment: { path: "/experiments/cache", height: 1720, colorScheme: "light" },
    epoch: { path: "/experiments/cache/epochs/5", height: 1560, colorScheme: "light" },
    new: { path: "/new", height: 1310, colorScheme: "dark" },
};

const folder = process.env.DEBORA_SHOTS ?? join(root, "docs/pictures");
await mkdir(folder, { recursive: true });
const browser = await launch();
const server = await Server.start();
try {
    await server.ok("experiments", { id: "cache", spec: CACHE, key: keyOf("cache") });
    await play(server, "cache", answers(7), 700_000);
    for (const [name, { path, height, colorScheme }] of Object.entries(PICTURES)) {
        // Three quarters of the size: pages are long, and a README is narrow.
        const options = { baseURL: server.address, viewport: { width: 1280, height }, deviceScaleFactor: 0.75, colorScheme };
        const page = await browser.newPage(options);
        await page.goto(path, { waitUntil: "networkidle" });
        await page.screenshot({ path: join(folder, `${name}.png`) });
        await page.close();
    }
} finally {
    await browser.close();
    await server.stop();
}
