// Debian's Chromium, and visits that note everything a page may not do.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

import { root } from "./server.mjs";

// Packages lie below `target`, where imports would not find them.
const require = createRequire(join(root, "target/browser/package.json"));
const { chromium } = require("playwright-core");

const FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

export const PHONE = { width: 360, height: 740 };
export const DESK = { width: 1280, height: 900 };

export function launch() {
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    // Chromium's own sandbox cannot be set up by root.
    return chromium.launch({ executablePath, args: FLAGS, chromiumSandbox: false });
}

/** A person's stay with a server: a browser context in which whatever is wrong is noted. */
export class Visit {
    static async begin(browser, server, options = {}) {
        const visit = new Visit();
        visit.server = server;
        visit.complaints = [];
        visit.answers = [];
        visit.context = await browser.newContext({ baseURL: server.address, viewport: DESK, reducedMotion: "reduce", ...options });
        visit.context.setDefaultTimeout(10_000);
        visit.watch();
        visit.page = await visit.context.newPage();
        return visit;
    }

    watch() {
        const { context, server } = this;
        const note = (text) => this.complaints.push(text);
        context.on("console", (message) => {
            if (["error", "warning"].includes(message.type())) {
                note(`console: ${message.text()} (${message.location().url})`);
            }
        });
        context.on("weberror", (error) => note(`script: ${error.error().stack}`));
        context.on("dialog", (dialog) => {
            note(`dialog: ${dialog.message()}`);
            dialog.dismiss();
        });
        context.on("request", (request) => {
            const url = new URL(request.url());
            if (url.protocol !== "data:" && url.origin !== server.address) {
                note(`request to another host: ${url}`);
            }
        });
        context.on("response", (response) => {
            if (response.status() >= 500) {
                note(`${response.status()} of ${response.url()}`);
            }
        });
        // Asked for at once: once the context is closed, sizes are not to be had any more.
        context.on("requestfinished", (request) => this.answers.push(request.sizes().catch(() => null)));
    }

    /** All that was transferred so far, compressed as it was. */
    async bytes() {
        const sizes = (await Promise.all(this.answers)).filter(Boolean);
        return sizes.reduce((sum, size) => sum + size.responseBodySize + size.responseHeadersSize, 0);
    }

    async logIn(key) {
        await this.page.goto("/login");
        await this.page.getByLabel("API key").fill(key);
        await this.page.getByRole("button", { name: "Log in" }).click();
        await this.page.getByRole("button", { name: "Log out" }).waitFor();
    }

    /** Goes to a page that must answer with this status. */
    async go(path, status = 200) {
        const response = await this.page.goto(path);
        assert.equal(response.status(), status, path);
        if (status >= 400) {
            // Chromium puts every refused address on the console.
            this.forgive(new RegExp(`status of ${status}`));
        }
    }

    /** Drops complaints that were to be expected. */
    forgive(pattern) {
        this.complaints = this.complaints.filter((text) => !pattern.test(text));
    }

    /** Ends the stay, in which there must have been nothing to complain of. */
    async end() {
        await this.context.close();
        if (this.complaints.length) {
            throw new Error(this.complaints.join("\n"));
        }
    }
}
