// Experiments in every state, made and played through the interface alone.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";

/** A key of an experiment's own, so that it decides the same in every run of the tests. */
export function keyOf(id) {
    return createHash("sha256").update(id).digest("hex").slice(0, 32);
}

/** Few rounds, several epochs. */
export function routing({ name = "answers within a price", horizon = 20_000, rho = 0.9, threshold = 0.008, wait = "hold", held = 0 } = {}) {
    return `name    = "${name}"
policy  = "soft"
horizon = ${horizon}
rho     = ${rho}
actions = ["small", "large"]

[reward]
name = "quality"

[[cost]]
name      = "price"
range     = [0.0, 0.02]
threshold = ${threshold}

[service]
on_wait      = "${wait}"
outcome_wait = "1h"
${held ? `holdback     = { share = ${held}, action = "small" }\n` : ""}`;
}

/** Without limits, so that it may commit. */
export const LAYOUT = `name    = "checkout layout"
policy  = "free"
horizon = 1_000_000
rho     = 0.3
growth  = 2
actions = ["one page", "two pages", "accordion"]

[reward]
name = "paid"
`;

/** Numbers in [0, 1) that are the same in every run. */
export function random(seed) {
    let state = seed;
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
}

/** Worlds: an outcome of an action. */
export const worlds = {
    routing: (draw) => (action) => ({
        reward: Number(draw() < [0.55, 0.8][action]),
        costs: { price: [0.001, 0.015][action] * (0.75 + draw() / 2) },
    }),
    dear: (draw) => () => ({ reward: Number(draw() < 0.5), costs: { price: 0.018 } }),
    layout: (draw) => (action) => ({ reward: Number(draw() < [0.21, 0.78, 0.3][action]) }),
};

/** Asks for and tells so many rounds, or all there are; returns how many it was given. */
export function play(server, id, answer, rounds = Infinity) {
    return served(server, id, answer, rounds, 5000, () => ({}));
}

/** The same in requests of 100, each with a key, by which some are held back; they count among the rounds. */
export function playHeld(server, id, answer, rounds) {
    return served(server, id, answer, rounds, 100, (played) => ({ request_key: `request-${played}` }));
}

async function served(server, id, answer, rounds, most, key) {
    let played = 0;
    while (played < rounds) {
        const n = Math.min(most, rounds - played);
        const asked = await server.api(`experiments/${id}/decisions`, { n, ...key(played) });
        if (asked.status === 409) {
            assert.equal(asked.body.code, "done", JSON.stringify(asked.body));
            break;
        }
        assert.equal(asked.status, 200, JSON.stringify(asked.body));
        const { decisions } = asked.body;
        const outcomes = decisions.map(({ round, epoch, holdback, action }) => ({
            ...(holdback ? { epoch, holdback } : { round }), ...answer(action),
        }));
        await server.ok(`experiments/${id}/outcomes`, outcomes);
        played += decisions.length;
    }
    return played;
}

/** An experiment in each state; ids say which. */
export async function everyState(server) {
    const create = (id, spec, key = keyOf(id)) => server.ok("experiments", { id, spec, key });
    const change = (id, verb, reason) => server.ok(`experiments/${id}/${verb}`, { reason });
    const { routing: router, dear, layout } = worlds;

    await create("fresh", routing({ name: "not asked yet" }));
    await create("running", routing());
    await play(server, "running", router(random(1)), 9_000);
    await create("twin", routing({ name: "answers within a price, Lisbon" }), keyOf("running"));
    await play(server, "twin", router(random(2)));
    await create("apart", routing({ name: "answers within a price, Oslo" }), keyOf("running"));
    await play(server, "apart", dear(random(7)), 4_000);
    await create("waiting", routing({ name: "outcomes outstanding" }));
    await server.ok("experiments/waiting/decisions", { n: 10_000 });
    await create("overtime", routing({ name: "served while it waits", wait: "serve" }));
    await server.ok("experiments/overtime/decisions", { n: 10_000 });
    await server.ok("experiments/overtime/decisions", { n: 500 });
    await create("paused", routing({ name: "paused by a person" }));
    await play(server, "paused", router(random(3)), 1_500);
    await change("paused", "pause", "prices change on Monday");
    await create("committed", LAYOUT);
    await play(server, "committed", layout(random(4)), 12_000);
    await create("closed", routing({ name: "closed early" }));
    await play(server, "closed", router(random(5)), 6_000);
    await change("closed", "close", "the small model is retired");
    await create("held", routing({ name: "a fifth held back", held: 0.2 }));
    await playHeld(server, "held", router(random(8)), 8_000);
    await change("held", "close", "the comparison is enough");
    await create("infeasible", routing({ name: "no strategy keeps the limit", threshold: 0.002 }));
    await play(server, "infeasible", dear(random(6)), 12_000);
}
