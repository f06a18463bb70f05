"use strict";
// The switches and the list of questions. Text from the data only ever enters through textContent.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const PAGE = 30;

  const element = (tag, kind, ...children) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...children);
    return made;
  };
  const chosen = (name) => document.querySelector(`.switches input[name=${name}]:checked`).value;

  // ---- the switches
  const showViews = () => {
    const k = chosen("k"), unit = chosen("unit");
    for (const view of all(".view")) view.hidden = view.dataset.k !== k || view.dataset.unit !== unit;
    for (const place of all(".k-now")) place.textContent = k;
  };

  // ---- the questions
  const chip = (index) => element("span", `chip s${(index % 8) + 1}`, String(index + 1));
  const shade = (share) => (share === 0 ? 0 : share === 100 ? 4 : share < 34 ? 1 : share < 67 ? 2 : 3);

  const cell = (index, share) => {
    const made = element("span", share === null ? "cell f0" : `cell f${shade(share)}`, chip(index), share === null ? "–" : String(share));
    made.title = `${data.systems[index]}: ${share === null ? "not known" : `${share} % found`}`;
    return made;
  };
  const strip = (shares) => element("span", "strip", ...shares.map((share, index) => cell(index, share)));

  // A question's share under each system: the mean over its excerpts, weighted by their length.
  const summary = (question, at) => {
    const lengths = question.evidence.map(([, start, end]) => end - start);
    const whole = lengths.reduce((sum, length) => sum + length, 0);
    return question.found[at].map((shares) => {
      if (!shares.length || !whole || shares.includes(null)) return null;
      if (shares.every((share) => share === 100)) return 100;
      if (shares.every((share) => share === 0)) return 0;
      const mean = shares.reduce((sum, share, index) => sum + share * lengths[index], 0) / whole;
      return Math.min(99, Math.max(1, Math.round(mean)));
    });
  };

  const body = (question, at) => {
    const made = element("div", "body");
    if (question.answer) made.append(element("p", "note", `Answer: ${question.answer}`));
    question.evidence.forEach(([name, start, end, excerpt], index) => {
      const place = element("p", "place", element("bdi", "", name), `, characters ${start.toLocaleString("en")} to ${end.toLocaleString("en")}`);
      const quote = element("blockquote", "", excerpt);
      quote.dir = "auto";
      made.append(place, quote, strip(question.found[at].map((shares) => (index < shares.length ? shares[index] : null))));
    });
    made.append(element("p", "place", question.collection ? `${question.id}, ${question.collection}` : question.id));
    return made;
  };

  const item = ({ question, shares }, at) => {
    const text = element("span", "text", question.text);
    text.dir = "auto";
    const details = element("details", "", element("summary", "", text, strip(shares)));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(body(question, at));
    });
    return element("li", "", details);
  };

  const haystacks = data.questions.map((question) =>
    [question.id, question.text, question.collection, ...question.evidence.flatMap(([name, , , excerpt]) => [name, excerpt])].join("\n").toLowerCase());

  const known = (shares) => shares.filter((share) => share !== null);
  const least = (shares) => Math.min(...known(shares), 101);
  const most = (shares) => Math.max(...known(shares), -1);
  const total = (shares) => known(shares).reduce((sum, share) => sum + share, 0);
  const keeps = {
    all: () => true,
    incomplete: (shares) => least(shares) < 100,
    apart: (shares) => least(shares) < most(shares),
    missed: (shares) => most(shares) === 0,
  };
  const orders = {
    given: () => 0,
    worst: (a, b) => total(a.shares) - total(b.shares),
    spread: (a, b) => (most(b.shares) - least(b.shares)) - (most(a.shares) - least(a.shares)),
  };

  let rows = [], shown = 0, at = 0;
  const showMore = () => {
    by("list").append(...rows.slice(shown, shown + PAGE).map((row) => item(row, at)));
    shown = Math.min(rows.length, shown + PAGE);
    by("more").hidden = shown >= rows.length;
    const [seen, fitting, whole] = [shown, rows.length, data.questions.length].map((count) => count.toLocaleString("en"));
    by("count").textContent = !rows.length ? "No question fits. Clear the search, or show all questions."
      : fitting === whole ? `${seen} of ${whole} questions shown.` : `${seen} of ${fitting} fitting questions shown, out of ${whole}.`;
  };
  const showQuestions = () => {
    at = Math.max(0, data.ks.indexOf(chosen("k")));
    const words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const collection = by("collection").value;
    rows = data.questions
      .map((question, index) => ({ question, index, shares: summary(question, at) }))
      .filter(({ question, index, shares }) => keeps[by("mode").value](shares)
        && (!collection || question.collection === collection)
        && words.every((word) => haystacks[index].includes(word)))
      .sort(orders[by("order").value]);
    shown = 0;
    by("list").replaceChildren();
    showMore();
  };

  // ---- start
  for (const part of all(".needs-script")) part.hidden = false;
  document.querySelector(".switches").hidden = all(".switches fieldset:not([hidden])").length === 0;
  const hasQuestions = data.questions.length > 0;
  by("questions").hidden = !hasQuestions;
  if (hasQuestions) {
    const names = [...new Set(data.questions.map((question) => question.collection))].filter(Boolean).sort();
    by("collection").append(...names.map((name) => {
      const option = element("option", "", name);
      option.value = name;
      return option;
    }));
    by("collection-label").hidden = names.length < 2;
    let waiting = 0;
    by("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(showQuestions, 120); });
    for (const id of ["mode", "order", "collection"]) by(id).addEventListener("change", showQuestions);
    by("more").addEventListener("click", showMore);
    showQuestions();
  }
  document.querySelector(".switches").addEventListener("change", () => {
    showViews();
    if (hasQuestions) showQuestions();
  });
  document.querySelector(".switches").addEventListener("submit", (event) => event.preventDefault());
})();
