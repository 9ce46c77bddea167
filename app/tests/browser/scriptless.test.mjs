// Without scripts every page is readable and every form works.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Visit, launch } from "./browser.mjs";
import { everyState } from "./experiments.mjs";
import { picture } from "./looks.mjs";
import { Server } from "./server.mjs";

let browser, server, visit, page;
before(async () => {
    browser = await launch();
    server = await Server.start();
    const key = await server.key("ada", "admin");
    await everyState(server);
    visit = await Visit.begin(browser, server, { javaScriptEnabled: false });
    page = visit.page;
    await visit.logIn(key);
});
after(async () => {
    await browser.close();
    await server.stop();
});

const main = () => page.getByRole("main");
const button = (name) => main().getByRole("button", { name });

/** Pages, and words that stand on each. */
const READ = [
    ["/", ["answers within a price", "checkout layout", "paused"]],
    ["/?sort=name", ["answers within a price"]],
    ["/new", ["horizon", "rho"]],
    ["/experiments/running", ["small", "large", "quality", "price", "9,000"]],
    ["/experiments/running?x=clock&scale=linear", ["small", "large"]],
    ["/experiments/running/epochs", ["explore", "estimate"]],
    ["/experiments/running/epochs/1", ["small", "large", "price"]],
    ["/experiments/running/audit", ["debora audit running.jsonl --head", "not that it is honest"]],
    ["/experiments/running/diff?with=twin", ["twin"]],
    ["/experiments/twin/certificate", ["answers within a price, Lisbon"]],
    ["/experiments/running/seal", ["answers within a price"]],
    ["/admin", ["All is well"]],
    ["/admin/keys", ["ada"]],
    ["/admin/webhooks", ["Add a webhook"]],
    ["/api", ["/v1/experiments"]],
];

for (const [path, words] of READ) {
    test(`${path} is read without scripts`, async () => {
        await visit.go(path);
        const text = (await main().innerText()).toLowerCase();
        for (const word of words) {
            assert(text.includes(word.toLowerCase()), `${word} is not in\n${text}`);
        }
    });
}

test("an experiment is written, planned and created in the form", async () => {
    await visit.go("/new");
    const field = (name) => main().getByLabel(name, { exact: true });
    await field("Name of the experiment").fill("written without scripts");
    await button("Add an action").click();
    await field("Action 3").fill("huge");
    await field(/^rho/).fill("2");
    await button(/^Update form/).click();
    assert.equal(await field(/^rho/).getAttribute("aria-invalid"), "true");
    await field(/^rho/).fill("0.5");
    await field(/^Horizon/).fill("100");
    await button(/^Update form/).click();
    await button(/^Use a horizon of/).click();
    await button("Simulate").click();
    await main().getByRole("region", { name: "Simulate this" }).getByRole("table").waitFor();
    await field("Id in addresses").fill("scriptless");
    await button("Create the experiment").click();
    await page.waitForURL("**/experiments/scriptless");
    const { spec } = await server.ok("experiments/scriptless");
    assert.match(spec, /"written without scripts"[^]*"huge"/);
});

test("the list is searched", async () => {
    await visit.go("/");
    await main().getByRole("searchbox").fill("checkout");
    await page.keyboard.press("Enter");
    await page.waitForURL(/checkout/);
    const text = await main().innerText();
    assert(text.includes("checkout layout") && !text.includes("not asked yet"), text);
});

test("an experiment is paused with a reason, resumed and closed", async () => {
    await visit.go("/experiments/fresh");
    for (const [what, reason, status] of [
        ["Pause", "a holiday", "paused"],
        ["Resume", "work again", "running"],
        ["Close", "enough", "closed"],
    ]) {
        await main().getByText(`${what} …`).click();
        const form = main().locator("form").filter({ has: page.getByRole("button", { name: `${what} it` }) });
        await form.getByLabel(/Reason/).fill(reason);
        await button(`${what} it`).click();
        await page.waitForURL("**/experiments/fresh");
        assert.equal((await server.ok("experiments/fresh")).status, status);
    }
    await picture(page, "scriptless-closed");
});

test("nothing was complained of", () => visit.end());
