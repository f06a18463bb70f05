"use strict";
// Places are counted in code points, as the server does; a string's own length counts some characters twice.
const get = (id) => document.getElementById(id);
const points = (text) => Array.from(text).length;
const state = { questions: [], documents: [], now: -1, candidates: [], candidate: -1, shown: null, cursor: -1, last: -1, undo: [], versions: {}, note: "" };
let saving = Promise.resolve();
let waiting = 0;
let asked = 0; // the last thing asked for; an answer to anything earlier comes too late

const make = (tag, text = "", set = {}) => {
  const made = document.createElement(tag);
  made.textContent = text;
  return Object.assign(made, set);
};

const trouble = (text) => {
  get("trouble").textContent = text;
  get("trouble").hidden = !text;
};

const call = async (path, body) => {
  let answer;
  try {
    const options = body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    answer = await fetch(path, options || {});
  } catch {
    throw new Error("chunkcore questions label no longer answers: start it again with the same output");
  }
  const found = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(found.error), { stale: answer.status === 409 });
  return found;
};

const tell = (work) => work.then((found) => (trouble(""), found), (error) => trouble(error.message));

// The list of questions.

const isDone = (each) => each.evidence.length > 0 || each.without_evidence;

const showQuestions = () => {
  get("questions").replaceChildren(
    ...state.questions.map((each) => {
      const item = make("li");
      const button = make("button", each.question, { onclick: () => open(each.number), dir: "auto" });
      button.classList.toggle("done", isDone(each));
      if (each.number === state.now) button.setAttribute("aria-current", "true");
      item.append(button);
      return item;
    })
  );
  const done = state.questions.filter(isDone).length;
  get("count").textContent = `${done} of ${state.questions.length} done`;
  get("questions").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
};

const showEvidence = () => {
  const now = state.questions[state.now];
  get("asked").textContent = now ? now.question : "No question yet";
  const items = (now ? now.evidence : []).map((each, at) => {
    const item = make("li");
    const place = `${state.documents[each.document].name}: ${each.text}`;
    item.append(
      make("span", place.length > 300 ? place.slice(0, 300) + "…" : place, { onclick: () => read(each.document, each.start), dir: "auto" }),
      make("button", "×", { title: "not evidence", onclick: () => mark(now.evidence.filter((_, other) => other !== at)) })
    );
    return item;
  });
  if (now?.without_evidence) items.push(make("li", "Not answered in these documents", { className: "none" }));
  if (now?.problem) items.push(make("li", now.problem, { className: "none" }));
  get("evidence").replaceChildren(...items);
};

const open = async (number) => {
  Object.assign(state, { now: number, candidates: [], candidate: -1, shown: null });
  get("candidates").replaceChildren();
  get("text").replaceChildren();
  get("name").textContent = "";
  showQuestions();
  showEvidence();
  get("words").value = "";
  const now = state.questions[number];
  await seek(now.question, now.evidence[0]);
};

const next = (step) => {
  const size = state.questions.length;
  for (let k = 1; k <= size; k++) {
    const at = (((state.now + step * k) % size) + size) % size;
    if (step < 0 || !isDone(state.questions[at])) return open(at);
  }
  get("question").focus();
};

// Passages and the document.

const parts = new Intl.Segmenter(undefined, { granularity: "word" });
const wordOf = (text) => text.toLowerCase().slice(0, 5); // forms of a word begin alike

// The words asked for that tell candidates apart: at most half of these have them. Short Latin words tell nothing.
const tellingWords = (asked) => {
  const held = state.candidates.map((each) => new Set(Array.from(parts.segment(each.text), (part) => wordOf(part.segment))));
  const words = Array.from(parts.segment(asked)).filter((part) => part.isWordLike).map((part) => wordOf(part.segment));
  const few = (word) => 2 * held.filter((each) => each.has(word)).length <= Math.max(2, held.length);
  return new Set(words.filter((word) => !/^[a-z]{1,3}$/.test(word) && few(word)));
};

const emphasised = (text, telling) =>
  Array.from(parts.segment(text), ({ segment }) => (telling.has(wordOf(segment)) ? make("em", segment) : segment));

const seek = async (words, first) => {
  const turn = ++asked;
  const found = await tell(call("search?words=" + encodeURIComponent(words)));
  if (!found || turn !== asked) return;
  state.candidates = found.candidates;
  state.candidate = -1;
  const telling = tellingWords(words);
  get("candidates").replaceChildren(
    ...state.candidates.map((each, at) => {
      const item = make("li");
      const button = make("button", "", { onclick: () => pick(at), dir: "auto" });
      const page = each.pages.length ? `, page ${each.pages.join(", ")}` : "";
      button.append(make("b", state.documents[each.document].name + page), ...emphasised(each.text, telling));
      item.append(button);
      return item;
    })
  );
  if (!state.candidates.length) get("candidates").append(make("li", "No sentence shares a word with it: look for other words."));
  if (first) await read(first.document, first.start, first.end);
  else if (state.candidates.length) await pick(0);
};

const pick = async (at) => {
  if (!(at in state.candidates)) return;
  get("candidates").querySelector("[aria-current]")?.removeAttribute("aria-current");
  state.candidate = at;
  const button = get("candidates").children[at].firstChild;
  button.setAttribute("aria-current", "true");
  button.scrollIntoView({ block: "nearest" });
  const { document: number, start, end } = state.candidates[at];
  await read(number, start, end);
};

// Puts the cursor on the sentences from `at` to `end`; on one sentence without `end`.
const read = async (number, at, end = at + 1) => {
  const shown = state.shown;
  const turn = ++asked;
  if (!shown || shown.document !== number || at < shown.start || at >= shown.end) {
    const found = await tell(call(`text?document=${number}&at=${at}`));
    if (!found || turn !== asked) return;
    state.shown = found;
  }
  get("name").textContent = state.documents[number].name;
  get("before").hidden = state.shown.start === 0;
  get("after").hidden = state.shown.end >= state.shown.size;
  showText();
  const holds = (place) => state.shown.units.findLastIndex(([start]) => start <= place);
  go(Math.max(0, holds(at)), Math.max(0, holds(end - 1)), "center");
};

// A unit's text as nodes: marked where evidence covers it.
const fill = (span, start, text, marks) => {
  const letters = Array.from(text);
  const cuts = new Set([0, letters.length]);
  for (const each of marks) for (const at of [each.start - start, each.end - start]) if (at > 0 && at < letters.length) cuts.add(at);
  const places = [...cuts].sort((a, b) => a - b);
  span.replaceChildren();
  for (let k = 0; k + 1 < places.length; k++) {
    const part = letters.slice(places[k], places[k + 1]).join("");
    const inside = marks.some((each) => each.start <= start + places[k] && each.end >= start + places[k + 1]);
    span.append(inside ? make("mark", part) : part);
  }
};

const showText = () => {
  const { document: number, units } = state.shown;
  const now = state.questions[state.now];
  const marks = (now ? now.evidence : []).filter((each) => each.document === number);
  const spans = units.map(([start, text], at) => {
    const span = make("span", "", { onclick: () => clicked(at) });
    const end = start + points(text);
    span.dataset.start = start;
    fill(span, start, text, marks.filter((each) => each.start < end && each.end > start));
    return span;
  });
  get("text").replaceChildren(...spans);
  showCursor();
};

// The sentences under the cursor stand out; one before and one after stay legible; the rest is dimmed.
const showCursor = () => {
  [...get("text").children].forEach((span, at) => {
    span.classList.toggle("here", at >= state.cursor && at <= state.last);
    span.classList.toggle("near", at === state.cursor - 1 || at === state.last + 1);
  });
};

const go = (first, last = first, block = "nearest") => {
  if (!state.shown || !(first in state.shown.units) || !(last in state.shown.units)) return;
  Object.assign(state, { cursor: first, last });
  showCursor();
  get("text").children[first].scrollIntoView({ block });
};

const walk = (step) => {
  const { shown } = state;
  const to = (step > 0 ? state.last : state.cursor) + step;
  if (!shown || to in shown.units) return go(to);
  const at = step > 0 ? shown.end : shown.start - 1; // over the edge of what is shown
  return at >= 0 && at < shown.size ? read(shown.document, at) : undefined;
};

// The cursor takes in one sentence more.
const grow = (step) => {
  if (!state.shown) return;
  go(Math.min(state.cursor, state.cursor + step), Math.max(state.last, state.last + step));
  get("text").children[step > 0 ? state.last : state.cursor].scrollIntoView({ block: "nearest" });
};

// Marking. Every change is sent at once, in order; what the server kept is what is shown.

const same = (one, other) => one.document === other.document && one.start === other.start && one.end === other.end;

// A question that was changed elsewhere keeps what was marked there and what was marked here.
const save = async (now, evidence, without) => {
  const places = evidence.map(({ document: number, start, end }) => ({ document: number, start, end }));
  const version = state.versions[now.id] ?? now.version;
  try {
    const kept = await call("mark", { number: now.number, version, evidence: places, without_evidence: without });
    state.versions[kept.id] = kept.version;
    return kept;
  } catch (error) {
    if (!error.stale) throw error;
    state.questions = (await call("all")).questions;
    Object.assign(state, { versions: {}, undo: [] });
    const kept = state.questions.find((each) => each.question === now.question);
    if (!kept || (without && kept.evidence.length)) throw error;
    const added = evidence.filter((each) => !kept.evidence.some((other) => same(each, other)));
    const both = await save(kept, [...kept.evidence, ...added], without);
    state.note = "This question was changed elsewhere meanwhile: both marks are kept";
    return both;
  }
};

const mark = (evidence, without = false, undoing = false) => {
  const now = state.questions[state.now];
  if (!now) return trouble("Type a question first");
  if (!undoing) state.undo.push([now.number, now.evidence, now.without_evidence]);
  Object.assign(now, { evidence, without_evidence: without, problem: "" });
  showEvidence();
  if (state.shown) showText();
  waiting++;
  saving = saving.then(async () => {
    try {
      state.note = "";
      const kept = await save(now, evidence, without);
      // A later click stands on what this one showed: it is not overwritten.
      if (waiting === 1) state.questions[kept.number] = kept;
      trouble(state.note);
    } catch (error) {
      trouble(`Not saved: ${error.message}`);
      const kept = await call("all").catch(() => null);
      if (kept) Object.assign(state, { questions: kept.questions, versions: {} });
    }
    if (--waiting) return;
    showQuestions();
    showEvidence();
    if (state.shown) showText();
  });
  return saving;
};

const without = (evidence, number, start, end) =>
  evidence.flatMap((each) =>
    each.document !== number || each.end <= start || each.start >= end
      ? [each]
      : [{ ...each, end: start }, { ...each, start: end }].filter((part) => part.start < part.end)
  );

// Marks the sentences, or takes their marks away.
const toggle = (from, to = from) => {
  const now = state.questions[state.now];
  if (!now) return trouble("Type a question first");
  const { document: number, units } = state.shown;
  const text = units.slice(from, to + 1).map((each) => each[1]).join("");
  const first = units[from][0] + points(text) - points(text.trimStart());
  const end = units[from][0] + points(text.trimEnd());
  if (first >= end) return undefined;
  const covered = now.evidence.some((each) => each.document === number && each.start <= first && each.end >= end);
  const rest = without(now.evidence, number, first, end);
  return mark(covered ? rest : [...now.evidence, { document: number, start: first, end, text: text.trim() }]);
};

// Marks the sentences under the cursor unless something is marked, and goes to the next open question.
const accept = async () => {
  const now = state.questions[state.now];
  if (!now || (!isDone(now) && !state.shown)) return;
  if (!isDone(now)) toggle(state.cursor, state.last);
  await saving;
  if (now.number === state.now && isDone(state.questions[state.now])) await next(1);
};

const undo = async () => {
  if (!state.undo.length) return;
  const [number, ...before] = state.undo.pop();
  const opened = number !== state.now && open(number);
  await mark(...before, true);
  await opened;
};

const selected = () => {
  const chosen = getSelection();
  if (chosen.isCollapsed || !chosen.rangeCount) return null;
  const range = chosen.getRangeAt(0);
  const place = (node, offset) => {
    const span = (node.nodeType === 1 ? node : node.parentElement).closest("#text > span");
    if (!span) return null;
    const before = document.createRange();
    before.setStart(span, 0);
    before.setEnd(node, offset);
    return Number(span.dataset.start) + points(before.toString());
  };
  const start = place(range.startContainer, range.startOffset);
  const end = place(range.endContainer, range.endOffset);
  return start === null || end === null || end <= start ? null : [start, end];
};

const clicked = (at) => {
  if (selected()) return;
  go(at);
  toggle(at);
};

get("text").addEventListener("mouseup", () => {
  const found = selected();
  const now = state.questions[state.now];
  if (!found || !now) return;
  const number = state.shown.document;
  getSelection().removeAllRanges();
  mark([...without(now.evidence, number, ...found), { document: number, start: found[0], end: found[1], text: "…" }]);
});

// Fields, buttons and keys.

get("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = get("question").value.trim();
  if (!question) return;
  const found = await tell(call("add", { question }));
  if (!found) return;
  get("question").value = "";
  get("question").blur();
  state.questions = (await call("all")).questions; // another tab may have added some
  await open(found.number);
});

get("seek").addEventListener("submit", async (event) => {
  event.preventDefault();
  get("words").blur();
  await seek(get("words").value || state.questions[state.now]?.question || "");
});

get("before").addEventListener("click", () => read(state.shown.document, Math.max(0, state.shown.start - 1)));
get("after").addEventListener("click", () => read(state.shown.document, state.shown.end));

const KEYS = {
  Enter: accept,
  n: () => pick(state.candidate + 1),
  p: () => pick(state.candidate - 1),
  ArrowRight: () => pick(state.candidate + 1),
  ArrowLeft: () => pick(state.candidate - 1),
  j: () => walk(1),
  k: () => walk(-1),
  ArrowDown: () => walk(1),
  ArrowUp: () => walk(-1),
  J: () => grow(1),
  K: () => grow(-1),
  " ": () => state.shown && toggle(state.cursor, state.last),
  a: () => get("question").focus(),
  f: () => get("words").focus(),
  u: undo,
  x: () => mark([], true),
  ",": () => next(-1),
  ".": () => next(1),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input");
  if (event.key === "Escape" && field) return field.blur();
  if (field || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const button = event.target.closest("button");
  if (button && !button.closest("#candidates") && (event.key === "Enter" || event.key === " ")) return undefined;
  const name = (event.shiftKey && { ArrowDown: "J", ArrowUp: "K" }[event.key]) || event.key;
  const act = event.repeat && name === "Enter" ? undefined : KEYS[name];
  if (!act) return undefined;
  event.preventDefault();
  return act();
});

tell(call("all")).then((found) => {
  if (!found) return;
  Object.assign(state, found);
  document.title = `${found.file}: mark the evidence`;
  showQuestions();
  if (state.questions.length) next(1);
  else get("question").focus();
});
