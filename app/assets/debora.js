// What the pages cannot do without a script: say when they were last updated and when they are stale, show numbers at the
// pointer, and send a form once however often its button is pressed. Without it they are read the same, and reloaded by hand.
"use strict";

(() => {
  // Three answers missed: one may be lost on the way.
  const STALE_AFTER = 16_000;
  const SILENT = "The server does not answer.";
  let answered = Date.now();

  const live = () => document.querySelector("#live[hx-get]");

  function clock(xhr) {
    // The server's clock, as all other times on the page are.
    const time = Date.parse(xhr.getResponseHeader("date") ?? "");
    // A proxy may drop the header, or send it twice.
    const date = new Date(Number.isNaN(time) ? Date.now() : time);
    return date.toISOString().slice(11, 19) + " UTC";
  }

  function fresh(xhr) {
    answered = Date.now();
    const updated = document.getElementById("updated");
    if (updated) updated.textContent = clock(xhr);
    const stale = document.getElementById("stale");
    if (!stale.hidden) {
      stale.hidden = true;
      document.body.classList.remove("stale");
    }
  }

  function stale(why) {
    const note = document.getElementById("stale");
    if (!live() || !note.hidden) return;
    const updated = document.getElementById("updated");
    note.textContent = `${why} What is shown is as of ${updated.textContent}; it is asked again every few seconds.`;
    note.hidden = false;
    document.body.classList.add("stale");
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    // A page that nobody sees asks for nothing.
    if (event.detail.elt.id === "live" && document.hidden) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.elt.id !== "live" || event.detail.xhr.status === 204) return;
    // Logged out, or no longer there: the whole page says so.
    if (!/\bid="?live\b/.test(event.detail.serverResponse)) {
      event.detail.shouldSwap = false;
      if (event.detail.xhr.status < 500) location.reload();
    }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt.id !== "live") return;
    if (event.detail.successful) fresh(event.detail.xhr);
    // It answers that others are before us, or not at all.
    else stale(event.detail.xhr.status === 503 ? "The server is too busy." : SILENT);
  });
  document.addEventListener("visibilitychange", () => {
    // A page that was hidden is old without being stale: it has not asked.
    if (!document.hidden) answered = Date.now();
  });
  setInterval(() => {
    if (!document.hidden && Date.now() - answered > STALE_AFTER) stale(SILENT);
  }, 1_000);

  // Numbers at the pointer: at once, and on touch, where titles never appear.
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;

  function textOf(strip) {
    // Taken out of the figure, or the browser would show it a second time. Held by the strip itself: the figure may be morphed.
    const title = strip.querySelector("title");
    if (title) {
      strip.setAttribute("data-tip", title.textContent);
      title.remove();
    }
    return strip.getAttribute("data-tip") ?? "";
  }

  function show(event) {
    const strip = event.target.closest?.("rect.tip");
    if (!strip) {
      tip.hidden = true;
      return;
    }
    tip.textContent = textOf(strip);
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
  }

  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => (tip.hidden = true), true);
  document.addEventListener("DOMContentLoaded", () => document.body.append(tip));

  // A second click would have the browser drop the answer to the first. Not for good: a person who stops it
  // stays on the page.
  const SENT_FOR = 10_000;
  const sent = new Set();

  function disable(form, disabled) {
    for (const button of form.querySelectorAll("button")) button.disabled = disabled;
  }

  function release(form) {
    sent.delete(form);
    disable(form, false);
  }

  // Heard last, so that a form which a script sends by itself is known by now.
  window.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if (sent.has(form)) {
      event.preventDefault();
      return;
    }
    sent.add(form);
    // Later: what is disabled while a form is read is not sent with it, and the button may say what is asked for.
    setTimeout(disable, 0, form, true);
    setTimeout(release, SENT_FOR, form);
  });
  // Back on a page that the browser kept as it was.
  window.addEventListener("pageshow", () => sent.forEach(release));

  // What is long and must be exact is copied by a button; without a script, or over plain HTTP, the button is not there.
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = !navigator.clipboard;
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    navigator.clipboard.writeText(button.dataset.copy).then(() => {
      button.textContent = "Copied";
    });
  });
})();
