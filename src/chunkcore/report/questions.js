// The list of questions.
const questionList = (() => {
  const PAGE = 30;

  const body = (question, index, at) => {
    const made = element("div", "body");
    if (question.answer) made.append(element("p", "note", `Answer: ${question.answer}`));
    question.evidence.forEach(([name, start, end, excerpt, document], number) => {
      const place = element("p", "place", element("bdi", "", name),
        `, ${[pagesOf(document, [[start, end]]), `characters ${count(start)} to ${count(end)} `].filter(Boolean).join(", ")}`);
      if (data.documents && document >= 0) {
        const open = element("button", "small", "Show in the document");
        open.type = "button";
        open.addEventListener("click", () => viewer.open(index, number));
        place.append(open);
      }
      const quote = element("blockquote", "", excerpt);
      quote.dir = "auto";
      made.append(place, quote, strip(question.found[at].map(([, ...shares]) => shares[number] ?? null)));
    });
    made.append(element("p", "place", question.collection ? `${question.id}, ${question.collection}` : question.id));
    return made;
  };

  const item = ({ question, index, shares }, at) => {
    const text = element("span", "text", question.text);
    text.dir = "auto";
    const details = element("details", "", element("summary", "", text, strip(shares)));
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) details.append(body(question, index, at));
      if (details.open) viewer.beside(index);
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
    const [seen, fitting, whole] = [shown, rows.length, data.questions.length].map(count);
    by("count").textContent = !rows.length ? "No question fits. Clear the search, or show all questions."
      : fitting === whole ? `${seen} of ${whole} question${rows.length === 1 ? "" : "s"} shown.`
      : `${seen} of ${fitting} fitting question${rows.length === 1 ? "" : "s"} shown, out of ${whole}.`;
  };
  const show = () => {
    at = chosenK();
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

  by("questions").hidden = data.questions.length === 0;
  if (data.questions.length === 0) return { first: () => 0 };
  const names = [...new Set(data.questions.map((question) => question.collection))].filter(Boolean).sort();
  by("collection").append(...names.map((name) => option(name, name)));
  by("collection-label").hidden = names.length < 2;
  let waiting = 0;
  by("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(show, 120); });
  for (const id of ["mode", "order", "collection"]) by(id).addEventListener("change", show);
  by("more").addEventListener("click", () => {
    const first = shown;
    showMore();
    all("#list summary")[first].focus();
  });
  walkable(by("list"), "summary");
  switched.push(show);
  show();
  return { first: () => rows[0]?.index ?? 0 };
})();
