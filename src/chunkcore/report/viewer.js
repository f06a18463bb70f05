// The viewer: a document with one system's chunks, what that retrieved for one question, and the question's evidence.
// Offsets are code points, as everywhere in the report; JavaScript's strings count UTF-16 units.

// ---- unpacking
const unpacked = new Map();
const unpack = (id) => {
  if (!unpacked.has(id)) unpacked.set(id, inflate(by(id).textContent));
  return unpacked.get(id);
};
const inflate = async (text) => {
  const bytes = Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

// A text that is sliced by code points.
class Text {
  constructor(start, text) {
    this.start = start;
    this.text = text;
    this.wide = [];  // the code points that take two units
    for (let unit = 0, point = 0; unit < text.length; unit += 1, point += 1) {
      if (text.charCodeAt(unit) >= 0xD800 && text.charCodeAt(unit) < 0xDC00) { this.wide.push(point); unit += 1; }
    }
    this.end = start + text.length - this.wide.length;
  }
  unit(offset) {
    const point = offset - this.start;
    return point + firstAtLeast(this.wide, point);
  }
  slice(start, end) { return this.text.slice(this.unit(start), this.unit(end)); }
}

// Where in ascending numbers the first one stands that is not less.
const firstAtLeast = (numbers, wanted) => {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
};

// What is carried of a document: its parts, in order.
const documentParts = async (number) => {
  if (number >= data.documents.ids.length) return [];
  const flat = await unpack(`text-${number}`);
  const parts = [];
  for (let at = 0; at < flat.length; at += 2) parts.push(new Text(flat[at], flat[at + 1]));
  return parts;
};

// One system's pieces and answers.
const read = new Map();
const systemAnswers = async (system) => {
  const id = data.documents.answers[system];
  if (!id) return null;
  if (!read.has(id)) read.set(id, fromRows(await unpack(id)));
  return read.get(id);
};
const grouped = (flat, size) => Array.from({ length: flat.length / size }, (_, at) => flat.slice(size * at, size * at + size));
const fromRows = ({ pool, pieces: rows, answers }) => {
  const pieces = rows.map(([document, number, spans, text], index) => {
    return { index, document, number, text, spans: grouped(spans, 2).map(([start, length]) => [start, start + length]) };
  });
  const byDocument = new Map();
  for (const piece of pieces) {
    if (!byDocument.has(piece.document)) byDocument.set(piece.document, []);
    byDocument.get(piece.document).push(piece);
  }
  const answer = (question) => {
    const [all, hits] = answers[question];
    return { all, hits: hits.map(([piece, score, how, sure, parts], at) => ({
      rank: at + 1, piece: pieces[piece], score, how, sure,
      parts: grouped(parts, 3).map(([start, length, score]) => ({ start, end: start + length, score })),
    })) };
  };
  return { pool, byDocument, answer };
};
// ---- cutting a document into rows, each under the same chunks
const rowsOf = (parts, pieces, size) => {
  const rows = [];
  let reached = 0;
  const gap = (start, end) => { if (end > start) rows.push({ start, end, gap: true, under: [] }); };
  for (const part of parts) {
    gap(reached, part.start);
    const events = [[part.start, 0, null], [part.end, 0, null]];
    for (const piece of pieces) {
      for (const [start, end] of piece.spans) {
        if (end > part.start && start < part.end) events.push([Math.max(start, part.start), 1, piece], [Math.min(end, part.end), -1, piece]);
      }
    }
    events.sort((a, b) => a[0] - b[0]);
    const under = new Map();  // a piece may cover a place twice
    let from = part.start;
    for (const [offset, step, piece] of events) {
      if (offset > from) {
        const text = part.slice(from, offset);
        // White space alone would be an empty row, and where no chunk has it, it is no loss.
        if (text.trim()) rows.push({ start: from, end: offset, part, under: [...under.keys()].sort((a, b) => a.number - b.number) });
        from = offset;
      }
      if (!piece) continue;
      const times = (under.get(piece) ?? 0) + step;
      if (times) under.set(piece, times); else under.delete(piece);
    }
    reached = part.end;
  }
  gap(reached, size);
  return rows;
};

// ---- the viewer
const viewer = (() => {
  const BATCH = 80;  // rows that are made at a time
  const HITS = 10;  // answers that are listed at first
  const usable = data.documents && data.documents.ids.length && data.questions.length;
  by("viewer").hidden = !usable;
  if (!usable) return { open: () => {}, beside: () => {} };

  const state = { question: 0, system: 0, other: -1, document: 0 };
  const status = (text) => { by("v-status").textContent = text; };
  const question = () => data.questions[state.question];
  const name = (document) => data.documents.ids[document] ?? "a document that is not in this page";
  const button = (kind, ...children) => {
    const made = element("button", kind, ...children);
    made.type = "button";
    return made;
  };
  const overlap = (spans, [start, end]) => spans.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, start)), 0);

  // ---- the question, its evidence and its answers
  const showQuestion = () => {
    by("v-question").value = String(state.question);
    by("v-asked").textContent = question().text;
    by("v-answer").textContent = question().answer ? `Answer: ${question().answer}` : "";
    by("v-previous").disabled = state.question === 0;
    by("v-next").disabled = state.question === data.questions.length - 1;
    by("v-strip").replaceChildren(...summary(question(), chosenK()).map((share, index) => {
      const made = cell(index, share, "button");
      made.type = "button";
      made.setAttribute("aria-label", `System ${index + 1}, ${foundText(index, share)}`);
      made.setAttribute("aria-pressed", String(index === state.system));
      made.addEventListener("click", () => choose({ system: index }));
      return made;
    }));
    by("v-evidence").replaceChildren(...question().evidence.map(([id, start, end, excerpt, document], index) => {
      const words = element("span", "words", excerpt.slice(0, 300));
      words.dir = "auto";
      const made = button("hit", element("span", "head", element("b", "", `Evidence ${index + 1}`), " ", element("bdi", "", id), " ", pagesOf(document, [[start, end]])), words);
      made.title = `characters ${count(start)} to ${count(end)}`;
      made.disabled = document < 0;
      made.addEventListener("click", () => goTo(document, start, `evidence ${index + 1}`));
      return element("li", "", made);
    }));
  };

  // So many of a system's answers count at the chosen depth; Infinity where that is not known.
  const depth = (system) => {
    const k = data.ks[chosenK()];
    return Number(k) || data.documents.within[k]?.[system]?.[state.question] || Infinity;
  };
  const evidenceIn = (piece) => question().evidence.flatMap(([, start, end, , document], index) => {
    const shared = document === piece.document && document >= 0 ? overlap(piece.spans, [start, end]) : 0;
    const share = Math.round((100 * shared) / (end - start));
    return shared ? [`${share ? Math.min(share, 100) : "<1"} % of evidence ${index + 1}`] : [];
  });

  const hitItem = (hit, last) => {
    const { piece, rank, score, how, sure } = hit;
    const made = button("hit");
    const holds = evidenceIn(piece);
    const head = element("span", "head", element("b", "rank", String(rank)), element("bdi", "", piece.document < 0 ? "Not in any listed document" : name(piece.document)));
    if (score !== null) head.append(element("span", "score", `score ${score}`));
    const words = element("span", "words", piece.text);
    words.dir = "auto";
    const where = element("span", "where");
    if (piece.spans.length) {
      const places = piece.spans.map(([start, end]) => `${count(start)}–${count(end)}`).join(" and ");
      where.append([pagesOf(piece.document, piece.spans), piece.number ? `chunk ${count(piece.number)}` : "", `characters ${places}`].filter(Boolean).join(", "));
    }
    if (how > 0 || sure < 100) where.append(`${piece.spans.length ? "; " : ""}located ${data.documents.hows[how]}${piece.spans.length ? `, ${sure} % sure` : ""}`);
    made.append(head, words, where);
    if (holds.length) made.append(element("span", "holds", `✓ holds ${holds.join(", ")}`));
    if (hit.parts.length > 1) {
      const most = Math.max(...hit.parts.map((part) => part.score));
      made.append(element("span", "parts", ...hit.parts.map((part) => {
        const bar = element("i", "");
        bar.style.width = `${Math.max(4, Math.round(100 * Math.max(0, part.score / (most || 1))))}%`;
        const shown = element("span", "part", bar, `${part.score}`);
        shown.title = `part at characters ${count(part.start)}–${count(part.end)}, score ${part.score}`;
        return shown;
      })));
    }
    made.disabled = !piece.spans.length;
    if (made.disabled) made.classList.add("nowhere");
    else {
      made.addEventListener("click", () => goTo(piece.document, piece.spans[0][0], `rank ${rank}`));
      if (!piece.text) snippet(piece).then((text) => { words.textContent = text; }, showFailure);
    }
    const item = element("li", holds.length ? "good" : "", made);
    if (rank === last) item.classList.add("last");
    return item;
  };
  const snippet = async (piece) => {
    const parts = await documentParts(piece.document);
    return piece.spans.map(([start, end]) => {
      const part = parts.find((each) => each.start < end && each.end > start);
      return part ? part.slice(Math.max(start, part.start), Math.min(end, part.end, start + 220)) : "(not carried in this page)";
    }).join(" … ").slice(0, 300);
  };

  // ---- one system's answers and its chunks of the document; a second pane shows another's beside it
  const makePane = (suffix) => {
  const part = (name) => by(`v-${name}${suffix}`);
  const view = { system: 0, rows: [], from: 0, to: 0, hits: new Map(), evidence: [], passages: [], pieces: [] };
  const showHits = (answer, listed = 0) => {
    const last = depth(view.system);
    listed ||= Math.max(HITS, Number.isFinite(last) ? last : 0);
    part("hits-title").textContent = `Retrieved by ${data.systems[view.system]}`;
    part("hits").replaceChildren(...(answer?.hits ?? []).slice(0, listed).map((hit) => hitItem(hit, last)));
    part("more-hits").hidden = !answer || answer.hits.length <= listed;
    part("more-hits").onclick = () => {
      showHits(answer, answer.hits.length);
      part("hits").children[listed]?.querySelector("button").focus();
    };
    const left = answer ? answer.all - answer.hits.length : 0;
    part("hits-note").textContent = !answer ? "The run of this system is not in this page."
      : !answer.all ? "Nothing was retrieved." : left ? `${count(left)} more are not in this page.` : "";
  };

  // ---- the document
  // A passage over its chunks is no overlap.
  const overlaps = ({ under }) => (under.filter((piece) => piece.number).length || under.length) > 1;
  const sign = (row) => {
    const gutter = element("div", "");
    const ranks = row.under.flatMap((piece) => view.hits.get(piece) ?? []).sort((a, b) => a - b);
    gutter.append(...ranks.map((rank) => element("b", "rank", `rank ${rank}`)));
    const numbers = row.under.filter((piece) => piece.number).map((piece) => count(piece.number));
    if (numbers.length) gutter.append(element("span", "", `chunk${numbers.length > 1 ? "s" : ""} ${numbers.join(", ")}`));
    // A page's number stands where it begins.
    const before = row === view.rows[0] ? "" : pagesOf(state.document, [[row.start - 1, row.start]]);
    const page = pagesOf(state.document, [[row.start, row.end]]);
    if (page && page !== before) gutter.append(element("small", "", page));
    if (overlaps(row)) gutter.append(element("small", "", "overlap"));
    if (!row.under.length && view.complete) gutter.append(element("small", "", "in no chunk"));
    return element("div", "gutter", gutter);
  };
  const wordsOf = (row) => {
    const made = element("div", "words");
    made.dir = "auto";
    const inside = ({ start, end }) => end > row.start && start < row.end;
    const within = view.evidence.filter(inside), scored = view.passages.filter(inside);
    const edges = [...new Set([row.start, row.end, ...[...within, ...scored].flatMap(({ start, end }) => [Math.max(start, row.start), Math.min(end, row.end)])])].sort((a, b) => a - b);
    edges.slice(0, -1).forEach((from, index) => {
      const to = edges[index + 1];
      let text = row.part.slice(from, to);
      if (from === row.start) text = text.replace(/^\n+/, "");
      if (to === row.end) text = text.replace(/\n+$/, "");
      const held = scored.find(({ start, end }) => start < to && end > from);
      const place = held ? element("span", "scored") : made;
      if (held) {
        place.style.setProperty("--share", held.share);
        place.title = `part of passage ${held.rank}, score ${held.score}`;
        made.append(place);
      }
      const over = within.filter(({ start, end }) => start < to && end > from);
      if (!over.length) { place.append(text); return; }
      const mark = element("mark", "");
      for (const { start, number } of over) if (start >= from) mark.append(element("span", "tag", `evidence ${number}`));
      mark.append(text);
      mark.title = over.map(({ number }) => `evidence ${number}`).join(", ");
      place.append(mark);
    });
    return made;
  };
  const rowElement = (row) => {
    if (row.gap) return element("li", "row gap", `${count(row.end - row.start)} characters are not carried in this page`);
    const kinds = ["row"];
    if (row.under.some((piece) => view.hits.has(piece))) kinds.push("retrieved");
    if (overlaps(row)) kinds.push("overlap");
    if (!row.under.length && view.complete) kinds.push("outside");
    if (view.evidence.some(({ start, end }) => end > row.start && start < row.end)) kinds.push("holds-evidence");
    return element("li", kinds.join(" "), sign(row), wordsOf(row));
  };

  const pane = part("text"), list = part("rows");
  const extend = (up) => {
    if (up && view.from > 0) {
      const from = Math.max(0, view.from - BATCH), before = pane.scrollHeight;
      list.prepend(...view.rows.slice(from, view.from).map(rowElement));
      view.from = from;
      pane.scrollTop += pane.scrollHeight - before;
    } else if (!up && view.to < view.rows.length) {
      const to = Math.min(view.rows.length, view.to + BATCH);
      list.append(...view.rows.slice(view.to, to).map(rowElement));
      view.to = to;
    }
    part("earlier").hidden = view.from === 0;
    part("later").hidden = view.to === view.rows.length;
  };
  const showRowsAround = (offset) => {
    const found = view.rows.findIndex((row) => row.end > offset);
    const at = found < 0 ? Math.max(0, view.rows.length - 1) : found;
    if (at < view.from || at >= view.to) {
      view.from = view.to = Math.max(0, at - 20);
      list.replaceChildren();
      extend(false);
    }
    const row = list.children[at - view.from];
    if (!row) return;
    for (const each of list.querySelectorAll(".here")) each.classList.remove("here");
    row.classList.add("here");
    const below = (each) => each.getBoundingClientRect().top - pane.getBoundingClientRect().top;
    pane.scrollTop += below(row) - 12;
    // Where evidence begins deep inside of a long row, its mark is what to scroll to.
    const mark = view.evidence.some(({ start }) => start === offset) ? row.querySelector("mark") : null;
    if (mark && below(mark) > 0.6 * pane.clientHeight) pane.scrollTop += below(mark) - 0.4 * pane.clientHeight;
  };

  const showMap = () => {
    const size = Math.max(1, data.documents.sizes[state.document]);
    const band = (kind, start, end, text) => {
      const made = element("span", kind, text);
      made.style.left = `${(100 * start) / size}%`;
      made.style.width = `max(4px, ${(100 * (end - start)) / size}%)`;
      return made;
    };
    const starts = view.pieces.length <= 600 ? view.pieces.flatMap((piece) => piece.spans.map(([start]) => band("tick", start, start, ""))) : [];
    const hits = [...view.hits].filter(([piece]) => piece.document === state.document).sort((a, b) => b[1] - a[1])
      .flatMap(([piece, rank]) => piece.spans.map(([start, end], index) => band("got", start, end, index ? "" : String(rank))));
    part("map").replaceChildren(...starts, ...hits, ...view.evidence.map(({ start, end }) => band("proof", start, end, "")));
  };

  const show = async (chosen, mine) => {
    const [parts, system] = await Promise.all([documentParts(state.document), systemAnswers(chosen)]);
    if (mine !== turn) return;
    view.system = chosen;
    const answer = system?.answer(state.question) ?? null;
    const k = depth(chosen);
    view.hits = new Map();
    for (const { piece, rank } of answer?.hits ?? []) if (rank <= k && !view.hits.has(piece)) view.hits.set(piece, rank);
    view.passages = (answer?.hits ?? []).filter(({ piece, rank }) => rank <= k && piece.document === state.document).flatMap(({ parts: own, rank }) => {
      const most = Math.max(...own.map((each) => each.score));
      return own.map((each) => ({ ...each, rank, share: Math.max(0.1, Math.min(1, each.score / (most || 1))) }));
    });
    view.evidence = question().evidence.flatMap(([, start, end, , document], index) => (document === state.document ? [{ start, end, number: index + 1 }] : []));
    view.pieces = (system?.byDocument.get(state.document) ?? []).filter((piece) => piece.number || view.hits.has(piece));
    view.complete = Boolean(system?.pool);
    view.rows = rowsOf(parts, view.pieces, data.documents.sizes[state.document]);
    view.from = view.to = 0;
    list.replaceChildren();
    showHits(answer);
    showMap();
    part("title").textContent = name(state.document);
    const chunks = view.complete ? `${count(view.pieces.length)} chunk${view.pieces.length === 1 ? "" : "s"}, ` : "";
    part("size").textContent = `${chunks}${count(data.documents.sizes[state.document])} characters${Number.isFinite(k) ? "" : "; all that was retrieved is marked, also beyond this depth"}`;
  };

  part("earlier").addEventListener("click", () => extend(true));
  part("later").addEventListener("click", () => extend(false));
  walkable(part("hits"), "button");
  part("map").addEventListener("click", (event) => {
    const place = part("map").getBoundingClientRect();
    showRowsAround(Math.floor(((event.clientX - place.left) / place.width) * data.documents.sizes[state.document]));
  });
  const near = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      extend(target === part("earlier"));
      // Scrolled to again before the next frame, it would have left and come back without a change to tell of.
      near.unobserve(target);
      near.observe(target);
    }
  }, { root: pane, rootMargin: "200px" });
  for (const name of ["earlier", "later"]) near.observe(part(name));
  return { view, show, showRowsAround, list };
  };
  const panes = [makePane(""), makePane("-2")];
  const shownPanes = () => (state.other < 0 ? panes.slice(0, 1) : panes);
  const showRowsAround = (offset) => { for (const each of shownPanes()) each.showRowsAround(offset); };
  const showFailure = () => {
    const text = "This browser cannot unpack the documents; one of 2023 or later can.";
    panes[0].list.replaceChildren(element("li", "row gap", text));
    status(text);
  };

  // ---- choosing
  let turn = 0;
  const choose = async (change, to = null) => {
    const asked = "question" in change;
    Object.assign(state, change);
    const mine = ++turn;
    if (asked && !("document" in change)) state.document = Math.max(0, question().evidence[0]?.[4] ?? 0);
    by("v-system").value = String(state.system);
    if (state.other === state.system) state.other = -1;
    by("v-other").value = String(state.other);
    by("v-pane-2").hidden = state.other < 0;
    by("v-panes").classList.toggle("two", state.other >= 0);
    showQuestion();
    showChoices();
    try {
      await Promise.all(shownPanes().map((each, at) => each.show(at ? state.other : state.system, mine)));
    } catch { showFailure(); return; }
    if (mine !== turn) return;
    const { view } = panes[0];
    const first = view.evidence[0]?.start ?? [...view.hits.keys()].find((piece) => piece.document === state.document)?.spans[0][0] ?? 0;
    showRowsAround(to ?? first);
    status(`Question ${state.question + 1} of ${count(data.questions.length)}, ${data.systems[state.system]}, ${name(state.document)}`);
  };
  // The documents that matter to the question come first, with why.
  const showChoices = async () => {
    const system = await systemAnswers(state.system).catch(() => null);
    const ranks = new Map(question().evidence.filter((each) => each[4] >= 0).map((each) => [each[4], []]));
    for (const { piece, rank } of system?.answer(state.question).hits.slice(0, HITS) ?? []) {
      if (piece.spans.length) ranks.set(piece.document, [...(ranks.get(piece.document) ?? []), rank]);
    }
    const why = (document, found) => [
      ...(question().evidence.some((each) => each[4] === document) ? ["evidence"] : []),
      ...(found.length ? [`rank${found.length > 1 ? "s" : ""} ${found.join(", ")}`] : []),
    ].join("; ");
    by("v-near").replaceChildren(...[...ranks].map(([document, found]) => option(document, `${name(document)} (${why(document, found)})`)));
    const near = [...by("v-near").children].find((each) => each.value === String(state.document));
    if (near) near.selected = true; else by("v-document").value = String(state.document);
  };
  const goTo = async (document, offset, what) => {
    if (document === state.document) showRowsAround(offset); else await choose({ document }, offset);
    status(`${name(state.document)}, ${what}`);
  };
  const step = (by_) => {
    const next = state.question + by_;
    if (next >= 0 && next < data.questions.length) choose({ question: next });
  };

  // ---- start
  by("v-question").append(...data.questions.map(({ text }, index) => option(index, `${index + 1}. ${text.length > 90 ? `${text.slice(0, 90)}…` : text}`)));
  for (const id of ["v-system", "v-other"]) by(id).append(...data.systems.map((system, index) => option(index, `${index + 1}. ${system}`)));
  by("v-other-label").hidden = data.systems.length < 2;
  by("v-all").append(...data.documents.ids.map((id, index) => option(index, id)));
  for (const key of ["question", "system", "other", "document"]) by(`v-${key}`).addEventListener("change", (event) => choose({ [key]: Number(event.target.value) }));
  by("v-previous").addEventListener("click", () => step(-1));
  by("v-next").addEventListener("click", () => step(1));
  walkable(by("v-evidence"), "button");
  by("viewer").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select, input")) return;
    const by_ = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by_) { event.preventDefault(); step(by_); }
  });
  switched.push(() => { if (turn) choose({}); });
  // Nothing is unpacked before somebody comes near.
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((each) => each.isIntersecting)) return;
    observer.disconnect();
    if (!turn) choose({ question: questionList.first() });
  }, { rootMargin: "600px" }).observe(by("viewer"));

  const open = async (number, evidence) => {
    const [, start, , , document] = data.questions[number].evidence[evidence];
    const opened = choose({ question: number, document }, start);
    by("viewer").classList.remove("folded");
    by("viewer").scrollIntoView();
    by("v-heading").focus({ preventScroll: true });
    await opened;
  };
  // A question that is opened in the list is shown beside it, where both fit.
  const beside = (number) => { if (matchMedia("(min-width: 1200px)").matches && state.question !== number) choose({ question: number }); };
  return { open, beside };
})();
