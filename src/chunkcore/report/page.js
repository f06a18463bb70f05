"use strict";
// What the page's programs share, and the switches. Text from the data only ever enters through textContent.

const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const all = (selector) => [...document.querySelectorAll(selector)];
const count = (number) => number.toLocaleString("en");

const element = (tag, kind, ...children) => {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.append(...children);
  return made;
};
const option = (value, text) => {
  const made = element("option", "", text);
  made.value = value;
  return made;
};

// ---- the switches: what the tables and plots show
const chosen = (name) => document.querySelector(`.switches input[name=${name}]:checked`).value;
const chosenK = () => Math.max(0, data.ks.indexOf(chosen("k")));

const showViews = () => {
  const k = chosen("k"), unit = chosen("unit");
  for (const view of all(".view")) view.hidden = view.dataset.k !== k || view.dataset.unit !== unit;
  for (const place of all(".k-now")) place.textContent = k;
};

// What is to be shown again when a switch changed.
const switched = [showViews];
{
  const switches = document.querySelector(".switches");
  for (const part of all(".needs-script")) part.hidden = false;
  switches.hidden = all(".switches fieldset:not([hidden])").length === 0;
  switches.addEventListener("change", () => switched.forEach((show) => show()));
  switches.addEventListener("submit", (event) => event.preventDefault());
}

// ---- a phone shows what to use and the scores first; the other sections open when their heading is tapped
if (matchMedia("(max-width: 700px)").matches) {
  for (const section of ["missed", "budgets", "differences", "collections", "left-out", "questions", "viewer", "made"].map(by).filter(Boolean)) {
    section.classList.add("folding", "folded");
    for (const heading of section.querySelectorAll("h2")) {
      heading.tabIndex = 0;
      heading.addEventListener("click", () => section.classList.toggle("folded"));
      heading.addEventListener("keydown", (event) => event.key === "Enter" && heading.click());
    }
    for (const link of all(`a[href="#${section.id}"]`)) link.addEventListener("click", () => section.classList.remove("folded"));
  }
  const fold = (title, part) => {
    const folded = element("details", "", element("summary", "", title));
    part.replaceWith(folded);
    folded.append(part);
  };
  for (const figure of all(".means")) fold("The interval of each system", figure);
  const advice = document.querySelector(".advice dl");
  const later = element("dl", "", ...[...advice.children].slice(3));
  if (later.children.length) {
    advice.after(later);
    fold("Why, what to avoid, what would settle it", later);
  }
  for (const code of all(".pasted details")) code.open = false;
  document.querySelector(".contents").hidden = true; // the headings below are its list
}

// ---- code to copy
for (const button of all("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // a page from a file may not be allowed to: select the code
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}

// ---- sortable columns: a heading sorts its table, numbers from high to low at first
const SIZES = { k: 1e3, M: 1e6, G: 1e9 };
const shownValue = (row, at) => {
  const text = (row.cells[at].querySelector("bdi") ?? row.cells[at]).textContent.trim();
  const found = /^[+−-]?[\d.,]+/.exec(text);
  if (!found) return text;
  return Number(found[0].replace(/,/g, "").replace("−", "-")) * (SIZES[text[found[0].length]] ?? 1);
};
for (const table of all(".scroll table")) {
  const rows = table.tBodies[0], headings = table.tHead.lastElementChild.cells;
  if (rows.rows.length < 3) continue;
  [...headings].forEach((heading, at) => {
    const button = element("button", "", ...heading.childNodes);
    button.type = "button";
    heading.append(button);
    button.addEventListener("click", () => {
      const number = heading.classList.contains("number");
      const up = heading.getAttribute("aria-sort") === (number ? "descending" : null);
      for (const each of headings) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      // What is no number, such as a dash, stays last.
      rows.append(...[...rows.rows].map((row) => [row, shownValue(row, at)]).sort(([, a], [, b]) =>
        typeof a === "number" && typeof b === "number" ? sign * (a - b)
          : typeof a === "number" ? -1 : typeof b === "number" ? 1 : sign * a.localeCompare(b)).map(([row]) => row));
    });
  });
}

// ---- what a question's shares look like
const chip = (index) => element("span", `chip s${index < 8 ? index + 1 : 0}`, String(index + 1));
const shade = (share) => (share === null ? 0 : share === 0 ? 0 : share === 100 ? 4 : share < 34 ? 1 : share < 67 ? 2 : 3);
const foundText = (index, share) => `${data.systems[index]}: ${share === null ? "not known" : `${share} % found`}`;

const cell = (index, share, tag = "span") => {
  const made = element(tag, `cell f${shade(share)}`, chip(index), share === null ? "–" : String(share));
  made.title = foundText(index, share);
  return made;
};
const strip = (shares) => element("span", "strip", ...shares.map((share, index) => cell(index, share)));

// A question's share under each system; those of its excerpts follow it.
const summary = (question, at) => question.found[at].map(([share]) => share);

// The arrow keys walk among these elements, Home and End to its ends.
const walkable = (list, selector) => {
  list.addEventListener("keydown", (event) => {
    const found = [...list.querySelectorAll(selector)];
    const now = found.indexOf(document.activeElement);
    const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: found.length - 1 }[event.key];
    if (now < 0 || next === undefined || !found[next]) return;
    event.preventDefault();
    found[next].focus();
  });
};

// The pages of a place, such as "pages 3–5, 7"; "" where the document has none.
const pagesOf = (document, spans) => {
  const flat = data.documents?.pages[document] ?? [], found = [];
  for (let at = 0; at < flat.length; at += 3) {
    if (!spans.some(([start, end]) => start < flat[at + 1] && end > flat[at])) continue;
    const last = found[found.length - 1];
    if (last?.[1] === flat[at + 2] - 1) last[1] = flat[at + 2]; else found.push([flat[at + 2], flat[at + 2]]);
  }
  const several = found.length > 1 || found.some(([from, to]) => to > from);
  return found.length ? `page${several ? "s" : ""} ${found.map(([from, to]) => (to > from ? `${from}–${to}` : from)).join(", ")}` : "";
};
