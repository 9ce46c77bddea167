// Makes the pictures of docs/pictures: `scripts/pictures`.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { launch } from "./browser.mjs";
import { keyOf, play, random } from "./experiments.mjs";
import { Server, root } from "./server.mjs";

const ROUTING = `name    = "model routing"
policy  = "soft"
horizon = 1_000_000
rho     = 0.3
actions = ["small", "medium", "large"]

[reward]
name  = "quality"
range = [0, 1]

[[cost]]
name      = "price"
range     = [0.0, 0.02]
threshold = 0.003

[[cost]]
name      = "latency"
range     = [0.0, 10.0]
threshold = 1.5

[service]
on_wait      = "hold"
outcome_wait = "2h"
`;

function answers(seed) {
    const draw = random(seed);
    return (action) => ({
        reward: Number(draw() < [0.55, 0.78, 0.9][action]),
        costs: { price: [0.0003, 0.002, 0.014][action] * 2 * draw() * 0.7, latency: [0.4, 1.1, 2.6][action] * 2 * draw() },
    });
}

const PICTURES = [
    ["experiment", "/experiments/routing", { width: 1280, height: 1000 }, "light"],
    ["epoch", "/experiments/routing/epochs/2", { width: 1280, height: 900 }, "light"],
    ["new", "/new", { width: 1280, height: 900 }, "dark"],
];

const folder = process.env.DEBORA_SHOTS ?? join(root, "docs/pictures");
await mkdir(folder, { recursive: true });
const browser = await launch();
const server = await Server.start();
try {
    await server.ok("experiments", { id: "routing", spec: ROUTING, key: keyOf("routing") });
    await play(server, "routing", answers(7), 400_000);
    for (const [name, path, viewport, colorScheme] of PICTURES) {
        const page = await browser.newPage({ baseURL: server.address, viewport, colorScheme });
        await page.goto(path, { waitUntil: "networkidle" });
        await page.screenshot({ path: join(folder, `${name}.png`) });
        await page.close();
    }
} finally {
    await browser.close();
    await server.stop();
}
