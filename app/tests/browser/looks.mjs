// What every page must be: readable by everyone, reachable by keyboard, light, and no wider than its window.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { DESK, PHONE } from "./browser.mjs";
import { root } from "./server.mjs";

const require = createRequire(join(root, "target/browser/package.json"));
const axeSource = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

/** The levels A and AA of every version of the guidelines. */
const LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"];

/** All files of a page together, as they travel. */
const BYTES_MAX = 150_000;

/** What axe-core finds in the page as it stands: with all rules, or with these. */
export async function axe(page, rules) {
    if (rules?.length === 0) {
        return [];
    }
    // Evaluated by the browser's tools: the policy of the page does not let a script in.
    await page.evaluate(`globalThis.axe ?? (() => {${axeSource}})()`);
    const options = rules
        ? { runOnly: { type: "rule", values: rules } }
        : // axe-core leaves this one out unless it is asked for.
          { runOnly: LEVELS, rules: { "target-size": { enabled: true } } };
    const violations = await page.evaluate(
        async (options) => (await globalThis.axe.run(document, { ...options, resultTypes: ["violations"] })).violations,
        options,
    );
    return violations.flatMap((rule) =>
        rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${node.any[0]?.message ?? rule.help}`),
    );
}

/** What sticks out of the window to the right. */
function overflow(page) {
    return page.evaluate(() => {
        const { clientWidth, scrollWidth } = document.documentElement;
        if (scrollWidth <= clientWidth) {
            return [];
        }
        const wide = [...document.body.querySelectorAll("*")].filter((element) => {
            // What a table scrolls is not the page's, unless it is placed by itself.
            const scrolled = element.closest(".scroll") && getComputedStyle(element).position !== "absolute";
            return element.getBoundingClientRect().right > clientWidth + 1 && !scrolled;
        });
        const names = wide.slice(0, 5).map((element) => element.outerHTML.slice(0, 120));
        return [`the page is ${scrollWidth} wide, the window ${clientWidth}: ${names.join(", ")}`];
    });
}

/** Both widths, by day and by night, and what is looked for: by night colours alone are others. */
const LOOKS = [
    { width: "wide", size: DESK, colorScheme: "light" },
    { width: "wide", size: DESK, colorScheme: "dark", rules: ["color-contrast"] },
    { width: "narrow", size: PHONE, colorScheme: "dark", rules: ["color-contrast"] },
    { width: "narrow", size: PHONE, colorScheme: "light" },
];

/** The same with each rule once: for pages so long that axe-core takes seconds. */
const LONG = LOOKS.map((look, place) => (place % 2 === 0 ? { ...look, rules: [] } : look));

/** Looks at a page in every way; pictures of it go to DEBORA_SHOTS, if that names a folder. */
export async function look(visit, name, { long = false } = {}) {
    const { page } = visit;
    const found = [];
    for (const { width, size, colorScheme, rules } of long ? LONG : LOOKS) {
        await page.setViewportSize(size);
        await page.emulateMedia({ colorScheme });
        const violations = [...(await axe(page, rules)), ...(await overflow(page))];
        found.push(...violations.map((text) => `${name}, ${width}, ${colorScheme}: ${text}`));
        await picture(page, `${name}-${width}-${colorScheme}`);
    }
    await page.setViewportSize(DESK);
    await page.emulateMedia({ colorScheme: "light" });
    return found;
}

export async function picture(page, name) {
    const folder = process.env.DEBORA_SHOTS;
    if (folder) {
        await mkdir(folder, { recursive: true });
        const { width, height } = await page.evaluate(() => document.documentElement.getBoundingClientRect());
        // Of a page with hundreds of actions the beginning says enough.
        const clip = { x: 0, y: 0, width, height: Math.min(height, 8_000) };
        await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true, clip });
    }
}

/** What the page weighed on its way, from the beginning of the visit. */
export async function assertLight(visit, name) {
    const bytes = await visit.bytes();
    assert(bytes > 0 && bytes < BYTES_MAX, `${name} weighs ${bytes} bytes`);
}

/** Says what was found, line by line. */
export function assertNothing(found) {
    if (found.length) {
        // One fault of a style is often found in a hundred places.
        const more = found.length > 12 ? [`and ${found.length - 12} more`] : [];
        throw new Error([...found.slice(0, 12), ...more].join("\n"));
    }
}

/** What is wrong with walking through the page by Tab: controls that are not reached, or do not show that they are. */
export async function keyboard(page) {
    const controls = await page.evaluate(markControls);
    const reached = new Set();
    const found = [];
    // A few more than there are: the browser itself is a stop on the way around.
    for (let step = 0; step < controls.length + 3; step++) {
        await page.keyboard.press("Tab");
        const stop = await page.evaluate(describeFocus);
        if (!stop || reached.has(stop.place)) {
            continue;
        }
        reached.add(stop.place);
        if (!stop.visible) {
            found.push(`focus cannot be seen: ${stop.html}`);
        }
        if (reached.size === 1 && !/skip/i.test(stop.text)) {
            found.push(`the first stop is not the skip link but ${stop.html}`);
        }
    }
    const missed = controls.filter(({ place }) => !reached.has(place));
    return [...found, ...missed.map(({ html }) => `not reached by Tab: ${html}`)];
}

/** All controls that can be used now. Runs in the page. */
function markControls() {
    const all = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
    const usable = [...all].filter(
        (control) =>
            !control.disabled &&
            control.type !== "hidden" &&
            // A slider that the pointer alone has stands beside a field that everyone has.
            !(control.tabIndex < 0 && control.ariaHidden === "true") &&
            control.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) &&
            // A group of radio buttons is one stop.
            !(control.type === "radio" && !control.checked) &&
            !control.closest("details:not([open]) > :not(summary)"),
    );
    // Not marked in the page itself: a refresh would take the marks away.
    globalThis.controls = usable;
    return usable.map((control, place) => ({ place, html: control.outerHTML.slice(0, 100) }));
}

/** The focused control, and whether one sees that it is. Runs in the page. */
function describeFocus() {
    const control = document.activeElement;
    const place = globalThis.controls.indexOf(control);
    if (place < 0) {
        return null;
    }
    const style = getComputedStyle(control);
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    const box = control.getBoundingClientRect();
    const inside = box.width > 0 && box.bottom > 0 && box.right > 0 && box.left < innerWidth && box.top < innerHeight;
    return {
        place,
        html: control.outerHTML.slice(0, 100),
        text: control.textContent,
        visible: inside && (outlined || style.boxShadow !== "none"),
    };
}
