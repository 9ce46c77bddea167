// The page of a new experiment: what is typed is sent a moment later, and form, text and plan follow. Without this script its
// buttons do the same.
"use strict";

(() => {
  const PAUSE = 300;
  const form = () => document.getElementById("draft");
  let edits = 0;
  let timer = 0;
  let asking = null;
  // Where it was typed last.
  let typed = null;

  // Beside each guess a slider, made when it is first seen: there may be thousands.
  function slide(details) {
    for (const guess of details.querySelectorAll(".guess")) {
      const number = guess.querySelector("input[type=number]");
      let slider = guess.querySelector(".slider");
      if (!slider) {
        slider = document.createElement("input");
        slider.type = "range";
        slider.className = "slider";
        slider.step = "any";
        slider.tabIndex = -1;
        slider.setAttribute("aria-hidden", "true");
        number.before(slider);
        slider.addEventListener("input", () => (number.value = round(slider.value, slider.max - slider.min)));
      }
      [slider.min, slider.max, slider.value] = [number.min, number.max, number.value];
    }
  }

  // A thousandth of the range is as fine as a hand can slide.
  const round = (value, span) => Number(value).toFixed(Math.max(0, 3 - Math.floor(Math.log10(span))));

  function open() {
    document.querySelectorAll("details.guesses[open]").forEach(slide);
  }

  function say(text) {
    const stale = document.getElementById("stale");
    stale.textContent = text;
    stale.hidden = !text;
  }

  // Only what changed is touched: focus, open parts and sliders stay.
  const kept = {
    morphStyle: "outerHTML",
    callbacks: {
      beforeAttributeUpdated: (name) => name !== "open",
      beforeNodeRemoved: (node) => !node.classList?.contains("slider"),
    },
  };

  function take(answer) {
    const focused = document.activeElement;
    const { value: before, selectionStart: start, selectionEnd: end, scrollTop } = focused;
    const next = new DOMParser().parseFromString(answer, "text/html").getElementById("draft");
    // A field that is being typed into keeps its blanks, which the spec has not. All else must say what the answer says, the text
    // too: where an old value stays, it counts as typed the next time, and undoes what was changed on the other side.
    const ignoreActiveValue = focused === typed && focused.matches("input");
    Idiomorph.morph(form(), next, { ...kept, ignoreActiveValue });
    const after = focused.value;
    if (!focused.isConnected || typeof start !== "number" || after === before) return;
    // The caret stays between the letters where it was.
    let same = 0;
    while (same < start && before[same] === after[same]) same += 1;
    const moved = (place) => (place <= same ? place : place + after.length - before.length);
    focused.setSelectionRange(moved(start), moved(end));
    focused.scrollTop = scrollTop;
  }

  async function send(asked) {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    const sent = edits;
    const body = new URLSearchParams(new FormData(form()));
    body.set("do", asked);
    let answer;
    try {
      const response = await fetch("/new/draft", { method: "POST", body, signal: asking.signal });
      answer = await response.text();
      if (!response.ok || response.redirected) {
        say(response.redirected ? "You are logged out: log in in another tab, then go on here." : "The server refused the draft; what you typed is still here.");
        return;
      }
    } catch (error) {
      if (error.name !== "AbortError") say("The server does not answer: the plan is that of an earlier draft. What you typed is still here.");
      return;
    }
    say("");
    // What was typed in the meantime is sent in its turn, and this answer knows nothing of it.
    if (sent !== edits) return;
    const focused = document.activeElement;
    take(answer);
    open();
    // To the name of the new row; and a row that is gone takes the focus with it.
    const names = { "add-action": "actions", "add-cost": "cost" }[asked];
    const inputs = names ? document.querySelectorAll(`input[name^="${names}."]`) : [];
    const last = [...inputs].filter((input) => /^(actions\.\d+|cost\.\d+\.name)$/.test(input.name)).pop();
    if (last) {
      last.focus();
      last.select();
    }
    if (!last && !focused.isConnected) document.querySelector("#fields input")?.focus();
  }

  // Whether a name is that of another row. Half typed, it would take over what is said of that row by its name.
  function isAnothers(input) {
    const list = input.name?.match(/^actions(?=\.\d+$)|^cost(?=\.\d+\.name$)/)?.[0];
    if (!list) return false;
    const names = [...form().querySelectorAll(list === "cost" ? 'input[name^="cost."][name$=".name"]' : 'input[name^="actions."]')];
    return names.some((other) => other !== input && other.value.trim() === input.value.trim());
  }

  function follow(event, isTyped) {
    if (!event.target.closest("#draft")) return;
    edits += 1;
    typed = event.target;
    clearTimeout(timer);
    // A guess changes nothing but what is simulated, and that is asked for.
    if (event.target.closest(".guesses") || (isTyped && isAnothers(event.target))) return;
    timer = setTimeout(send, PAUSE, "plan");
  }

  document.addEventListener("input", (event) => follow(event, true));
  // A name that was left so is meant so.
  document.addEventListener("change", (event) => {
    if (isAnothers(event.target)) follow(event, false);
  });
  document.addEventListener("submit", (event) => {
    const asked = event.submitter?.value ?? "plan";
    // Not by its id: the form has a field of that name, which stands in its way.
    if (!event.target.matches("#draft") || asked === "create") return;
    event.preventDefault();
    edits += 1;
    document.getElementById("draft").classList.toggle("busy", asked === "simulate");
    send(asked).finally(() => document.getElementById("draft").classList.remove("busy"));
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.guesses[open]")) slide(event.target);
  }, true);
  document.addEventListener("DOMContentLoaded", () => {
    document.documentElement.classList.add("scripted");
    open();
  });
})();
