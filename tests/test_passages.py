"""`passages` scores every window of every size as embedding and BM25 of each window would."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from chunkcore import DataError, ModelError, OptionError, Retrieved, get_chunker, load_dataset
from chunkcore.retrieval import ChunkedCorpus, Passages, TextVectors, chunk_corpus, get_retriever
from chunkcore.retrieval.lexicon import word_keys
from chunkcore.retrieval.passages import windows as scoring
from chunkcore.retrieval.passages.candidates import Said
from chunkcore.retrieval.passages.units import reader_of
from chunkcore.text import Chunk, Document, Span, text_of_spans
from chunkcore.tokens import WordCounter, get_counter
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder

WORDS = ["fox", "foxes", "crow", "rain", "東京", "the", "a1"]


class Table:
    """An embedder of small whole numbers, by text, zeros among them."""

    def __init__(self, dimensions: int = 3, seed: int = 0) -> None:
        self.name = self.fingerprint = f"table-{dimensions}-{seed}"
        self.max_tokens = None
        self.dimensions, self.seed = dimensions, seed

    def embed_documents(self, texts):
        rows = [np.random.default_rng([self.seed, *text.encode()]).integers(-1, 3, self.dimensions) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimensions)

    embed_queries = embed_documents


@st.composite
def corpora(draw: st.DrawFn) -> ChunkedCorpus:
    """Units of documents, in any order, with empty ones, repeats and units without words."""
    documents, chunks = [], []
    for name in "cab"[: draw(st.integers(0, 3))]:
        texts = draw(
            st.lists(st.lists(st.sampled_from([*WORDS, "…"]), min_size=1, max_size=5).map(" ".join), max_size=9)
        )
        document = Document(name, "\n".join(texts) or "-")
        documents.append(document)
        start = 0
        for index, text in enumerate(texts):
            tokens = draw(st.integers(0, 9))
            chunks.append(Chunk(name, index, (Span(start, start + len(text)),), text, tokens))
            start += len(text) + 1
    if draw(st.booleans()):
        chunks = draw(st.permutations(chunks))
    return ChunkedCorpus(chunks, documents)


def windows(corpus: ChunkedCorpus, scale: int, is_shared: bool = False) -> list[list[int]]:
    """The chunks in each chunk's window; a wide one may be that of the middle one of some neighbours."""
    chunks = list(corpus)
    longest = max(Counter(chunk.document_id for chunk in chunks).values(), default=0)
    width = min(scale, longest)
    found = []
    for chunk in chunks:
        own = sorted(
            (i for i, each in enumerate(chunks) if each.document_id == chunk.document_id), key=lambda i: chunks[i].start
        )
        at = next(place for place, i in enumerate(own) if chunks[i] is chunk or chunks[i] == chunk)
        if is_shared and width >= scoring.SHARED:
            first = at - at % (width // 2)
            at = first + len(own[first : first + width // 2]) // 2
        found.append(own[max(0, at - scale) : at + scale + 1])
    return found


def dense(corpus: ChunkedCorpus, query: str, scale: int, model: Table) -> list[float]:
    """Pool each window's vectors and compare."""
    vectors = model.embed_documents([chunk.text for chunk in corpus]).astype(float)
    asked = model.embed_queries([query])[0].astype(float)
    scores = []
    for window in windows(corpus, scale):
        pooled = np.zeros(model.dimensions)
        for i in window:
            length = np.linalg.norm(vectors[i])
            if length:
                pooled += math.sqrt(corpus[i].token_count) * vectors[i] / length
        if scale == 0:
            pooled = vectors[window[0]]
        lengths = np.linalg.norm(pooled) * np.linalg.norm(asked)
        scores.append(float(pooled @ asked / lengths) if np.linalg.norm(pooled) > 1e-6 and lengths else 0.0)
    return scores


def lexical(corpus: ChunkedCorpus, query: str, scale: int, form: str, k1: float, b: float) -> list[float]:
    """BM25 of each window as a text. Single characters of a pair count as words, and make no text longer."""
    every, shared_windows = windows(corpus, scale), windows(corpus, scale, is_shared=True)
    texts, shared = (
        [Counter(word for i in window for word in word_keys(corpus[i].text, form, singles=True)) for window in rows]
        for rows in (every, shared_windows)
    )
    lengths = [len(word_keys(chunk.text, form)) for chunk in corpus]
    mean = sum(lengths[i] for window in every for i in window) / len(every) or 1.0
    scores = []
    for text, window in zip(shared, shared_windows, strict=True):
        score, size = 0.0, sum(lengths[i] for i in window)
        for word in word_keys(query, form, singles=True):
            holding = sum(word in each for each in texts)
            if text[word]:
                weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
                score += weight * text[word] / (text[word] + k1 * (1 - b + b * size / mean))
        scores.append(score)
    return scores


def standardised(values: list[float], largest: float) -> np.ndarray:
    found = np.array(values)
    deviation = math.sqrt(float(((found - found.mean()) ** 2).mean()))
    z = (found - found.mean()) / deviation if deviation > 1e-6 * largest else np.zeros(len(values))
    return z * abs(z)


SCALES = [None, (0,), (0, 1, 3, 7, 15, 31, 10**9), (10**9,), (2, 0), (5,)]
OPTIONS = st.fixed_dictionaries(
    {
        "kinds": st.sampled_from([("dense",), ("lexical",), ("dense", "lexical")]),
        "words": st.sampled_from(["whole", "first3"]),
        "k1": st.sampled_from([0.0, 1.2]),
        "b": st.sampled_from([0.0, 0.75, 1.0]),
        "balance": st.sampled_from([0.3, 0.7]),
    }
)


@settings(max_examples=150, deadline=None)
@given(
    corpora(),
    st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5).map(" ".join),
    OPTIONS,
    st.sampled_from(SCALES),
    st.integers(0, 9),
)
def test_scores_are_those_of_each_window_embedded_and_read_as_a_text(corpus, query, options, scales, seed):
    method = Passages(**options)
    model = Table(seed=seed)
    chosen = scoring.SCALES if scales is None else dict.fromkeys(scoring.SCALES, scales)
    with patch.dict(scoring.SCALES, chosen):
        hits = method.index(corpus, TextVectors(model)).search([query], max(1, len(corpus)))
    expected = np.zeros(len(corpus))
    shares = (
        {"dense": method.balance, "lexical": 1 - method.balance} if len(method.kinds) == 2 else {method.kinds[0]: 1.0}
    )
    for kind in method.kinds if len(corpus) else ():
        share = shares[kind] / len(chosen[kind])
        for scale in chosen[kind]:
            if kind == "dense":
                expected += share * standardised(dense(corpus, query, scale, model), 1.0)
                continue
            values = lexical(corpus, query, scale, method.words, method.k1, method.b)
            expected += share * standardised(values, max(values))
    found = np.zeros(len(corpus))
    found[hits.indices[0]] = hits.scores[0]
    assert sorted(hits.indices[0].tolist()) == list(range(len(corpus)))
    np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("spec", ["passages:lexical", "passages:dense", "passages"])
def test_of_equal_units_the_first_is_first(spec: str) -> None:
    documents = [
        Document(str(number), "A fox naps. Rain falls on a crow. The end of it. A fox naps.") for number in range(5)
    ]
    for size in (4, 5, 8):
        corpus = chunk_corpus(documents, get_chunker(f"sentence:size={size}"))
        index = get_retriever(spec).index(corpus, TextVectors(FakeEmbedder()))
        own = len(corpus) // 5
        for row in index.search(["fox", "rain crow"], 99).indices.tolist():
            assert all(row.index(unit) < row.index(unit + own) for unit in range(len(corpus) - own))


def test_an_answer_is_the_same_whatever_was_asked_before() -> None:
    """What answers to a question share is kept."""
    lochmere, passages = load_dataset("lochmere"), get_retriever("passages:lexical")
    corpus = chunk_corpus(lochmere.documents[:3], "sentence:size=50")
    questions = [query.text for query in lochmere.queries[:6]]
    hits = get_retriever("bm25").index(corpus).retrieve(questions[0], 20)
    kept = passages.index(corpus)
    for counter in map(get_counter, ("cl100k_base", "words")):
        for limits in ((None, 90), (None, 400), (1, None), (9, None)):
            answers = passages.index(corpus).answers(questions, *limits, counter=counter)
            assert kept.answers(questions, *limits, counter=counter) == answers
    ways = (hits, "hits", 0.3), (hits[::-1], "hits", 0.3), (hits, "whole", 0.3), (hits, "whole", 1)
    for some, show, balance in ways:
        for tokens in (200, 900):
            options = {"max_tokens": tokens, "show": show, "balance": balance}
            answer = passages.index(corpus).behind(questions[0], some, **options)
            assert kept.behind(questions[0], some, **options) == answer


def test_blocks_and_float32_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    documents = [Document(f"{i}", " ".join(rng.choice(WORDS, size)) + ".") for i, size in enumerate([900, 1, 40, 300])]
    corpus = chunk_corpus(documents, get_chunker("fixed_token:size=4,counter=words"))
    questions = ["fox rain the", "crow", "東京 a1 a1"]
    expected = get_retriever("passages").index(corpus, TextVectors(FakeEmbedder())).search(questions, 400)
    for block, wide in [(7, 10**6), (64, 0), (10**6, 0)]:
        monkeypatch.setattr(scoring, "VECTORS", block)
        monkeypatch.setattr(scoring, "WIDE", wide)
        found = get_retriever("passages").index(corpus, TextVectors(FakeEmbedder())).search(questions, 400)
        np.testing.assert_allclose(
            np.take_along_axis(found.scores, found.indices.argsort(), 1),
            np.take_along_axis(expected.scores, expected.indices.argsort(), 1),
            atol=1e-4 if not wide else 1e-9,
        )


@given(corpora(), st.sampled_from(WORDS), st.integers(1, 30), st.sampled_from(["words", "cl100k_base"]))
def test_passages_are_disjoint_whole_and_within_the_budget(corpus, query, budget, name):
    counter = get_counter(name)
    index = Passages(counter=name).index(corpus, TextVectors(Table()))
    found = index.retrieve(query, None, budget)
    assert found == index.retrieve(query, None, budget) == index.answers(["fox", query], None, budget)[1]
    assert sum(counter.count(each.text) for each in found) <= budget
    assert len(index.retrieve(query, 1)) <= min(1, len(corpus))
    places = sorted((each.document_id, span.start, span.end) for each in found for span in each.spans)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(places))
    units = {(chunk.document_id, chunk.spans) for chunk in corpus}
    texts = {document.id: document.text for document in corpus.documents}
    for passage in found:
        if passage.match != "part":
            assert all((part.document_id, part.spans) in units for part in passage.parts)
        if texts:
            (span,) = passage.spans
            assert passage.text == span.slice(texts[passage.document_id])


@pytest.mark.parametrize(
    "spec",
    ["passages", "passages:lexical", "passages:dense", "passages:lexical,words=whole,k1=2.0,b=0.5,counter=words"],
)
def test_a_string_describes_it(spec: str) -> None:
    method = get_retriever(spec)
    assert (method.name, get_retriever(method.name)) == (spec, method)
    assert method.embeds == ("lexical" not in spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("passages:sparse", "kinds are dense, lexical or both"),
        ("passages:dense,dense", "each once"),
        ("passages:scales=0", "has no option"),
        ("passages:k1=-1", "k1 is at least 0"),
        ("passages:b=2", "b is at least 0 and at most 1"),
        ("passages:balance=1.5", "balance is at least 0 and at most 1"),
        ("passages:words=stems", "words"),
        ("passages:counter=tokens", "unknown token counter"),
        ("passages:size=50", "has no option"),
    ],
)
def test_a_wrong_option_is_refused(spec: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        get_retriever(spec)


def test_lexical_alone_asks_no_model() -> None:
    class Asked(TextVectors):
        def chunks(self, *given: Any, **options: Any) -> Any:
            raise AssertionError("asked")

        queries = chunks

    documents = [Document(text, text) for text in ("A fox naps.", "A crow sings.", "Rain falls.")]
    corpus = chunk_corpus(documents, get_chunker("sentence:size=50"))
    index = get_retriever("passages:lexical").index(corpus, Asked(FakeEmbedder()))
    assert index.retrieve("crow", 1)[0].text == "A crow sings."
    assert get_retriever("passages:lexical").index(ChunkedCorpus()).retrieve("crow") == []


def test_another_threads_question_does_not_change_the_vectors_of_this_one() -> None:
    def meanwhile(step: str, done: int, total: int) -> None:
        if done and others:
            vectors.queries(others.pop())

    vectors, others = TextVectors(FakeEmbedder(), progress=meanwhile), [["crow"]]
    assert (vectors.queries(["fox"]) == FakeEmbedder().embed_queries(["fox"])).all()


CSV = Document("stock.csv", "part,stock\n" + "".join(f"pump {n},{n * 37 % 91}\n" for n in range(60)))
MARKDOWN = Document("t.md", "# Parts\n\n| part | note |\n|---|---|\n" + "".join(
    f"| pump {n} | {'long ' * (45 if n == 4 else 1)}|\n" for n in range(30)))  # fmt: skip
HTML = Document("t.html", "<p>Parts.</p><table><tr><th>part</th><th>stock</th></tr>" + "".join(
    f"<tr><td>pump {n}</td><td>{n * 37 % 91}</td></tr>" for n in range(30)) + "</table>")  # fmt: skip


@pytest.mark.parametrize("document", [CSV, MARKDOWN, HTML])
@pytest.mark.parametrize("budget", [30, 150, 9_999])
@pytest.mark.parametrize(("spec", "question"), [("auto:size=70", "pump 17, pump 18"), ("sentence:size=8", "pump 0")])
def test_rows_that_repeat_their_tables_header_make_passages_that_have_it_once(document, budget, spec, question) -> None:
    corpus = chunk_corpus([document], f"{spec},counter=cl100k_base")
    assert corpus.repeating or spec != "auto:size=70", "units of eight tokens part the header's two lines"
    found = get_retriever("passages:lexical").index(corpus).retrieve(question, max_tokens=budget)
    assert found
    spans = sorted(span for passage in found for span in passage.spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    for passage in found:
        assert passage.text == text_of_spans(document.text, passage.spans)


@pytest.mark.parametrize(
    ("document", "header"), [(CSV, "part,stock"), (MARKDOWN, "| part | note |"), (HTML, "part stock")]
)
@pytest.mark.parametrize("chunker", ["auto:size=70,counter=cl100k_base", "sentence:size=50"])
def test_a_row_of_a_table_comes_with_its_header_once(chunker, document, header) -> None:
    index = get_retriever("passages:lexical").index(chunk_corpus([document], chunker))
    found = index.retrieve("pump 17, pump 18", max_tokens=120)
    assert "pump 17" in found[0].text or "pump 18" in found[0].text
    assert "".join(passage.text for passage in found).count(header) == 1
    assert found[0].text.startswith(header)
    assert sum(get_counter("cl100k_base").count(passage.text) for passage in found) <= 120


TABLES = {
    "md": "| tea | heat |\n|---|---|\n| oolong | 90 |\n\n"
    "| cup | price |\n|---|---|\n| mug | 5 |\n\n| no | rule |\n| jug | 7 |",
    "html": "<table><tr><th>tea</th><th>heat</th></tr><tr><td>oolong</td><td>90</td></tr></table><p>mug</p>"
    "<table><tr><th>jug</th><td>7</td></tr></table>",
    "csv": "tea,heat\noolong,90\nsencha,70\n",
    "txt": "tea,heat\noolong,90\nsencha,70\n",
}


@pytest.mark.parametrize(
    ("kind", "row", "header"),
    [
        ("md", "| oolong", "| tea | heat |\n|---|---|"),
        ("md", "| mug", "| cup | price |\n|---|---|"),
        ("md", "| jug", ""),
        ("md", "| tea", ""),
        ("html", "oolong", "tea heat"),
        ("html", "mug", ""),
        ("html", "7", ""),
        ("html", "tea", ""),
        ("csv", "sencha", "tea,heat"),
        ("csv", "tea", ""),
        ("txt", "sencha", ""),
    ],
)
def test_a_row_has_the_header_of_its_own_table(kind, row, header) -> None:
    text = TABLES[kind]
    reader = reader_of(Document(f"a.{kind}", text))
    spans = reader(text, text.index(row)) if reader else ()
    assert text_of_spans(text, spans) == header


@pytest.mark.parametrize(("report", "part"), [("# {}\n\n", "## {}\n\n"), ("<h1>{}</h1>", "<h2><b>{}</b></h2>")])
def test_the_headings_above_a_unit_count_as_its_words(report, part) -> None:
    text = ""
    for year in (2021, 2022, 2023):
        text += report.format(f"Report {year}")
        for title in ("Staff", "Liquidity", "Outlook"):
            text += part.format(title) + "".join(f"<p>Sums of {n} were paid.</p>\n\n" for n in range(200))
    document = Document("report.html" if "<" in report else "report.md", text)
    index = get_retriever("passages:lexical").index(chunk_corpus([document], "sentence:size=20"))
    begin = text.index("Liquidity", text.index("Report 2022"))
    found = index.search(["What of liquidity in report 2022?"], len(index.corpus)).row(0)[0]
    far = [index.corpus[n].start for n in found.tolist() if "Sums of 100 " in index.corpus[n].text]
    assert (len(far), begin < far[0] < text.index("Outlook", begin)) == (9, True)


def test_interleaved_chunks_are_no_rows_of_a_table() -> None:
    document = Document("d", "one two three four")
    spans = [(Span(0, 3), Span(8, 13)), (Span(4, 7), Span(14, 18))]
    chunks = [Chunk("d", n, each, " ".join(s.slice(document.text) for s in each), 2) for n, each in enumerate(spans)]
    with pytest.raises(DataError, match="passages are made of chunks that do not overlap"):
        get_retriever("passages:lexical").index(ChunkedCorpus(chunks, [document]))


def test_chunks_that_overlap_and_vectors_of_another_model_get_a_sentence() -> None:
    chunks = [Chunk("d", 0, (Span(0, 9),), "A fox nap", 3), Chunk("d", 1, (Span(6, 11),), "naps.", 2)]
    corpus = ChunkedCorpus(chunks, [Document("d", "A fox naps.")])
    with pytest.raises(DataError, match="chunk 1 of 'd' starts at 6, before chunk 0 ends at 9; cut without overlap"):
        get_retriever("passages:lexical").index(corpus)
    other = SimpleNamespace(**{"name": "m", "fingerprint": "m", "max_tokens": None})
    other.embed_documents = lambda texts: np.ones((len(texts), 3), dtype=np.float32)
    other.embed_queries = lambda texts: np.ones((len(texts), 4), dtype=np.float32)
    index = get_retriever("passages").index(corpus.selected(np.array([0])), TextVectors(other))
    with pytest.raises(ModelError, match="embed both with the same model"):
        index.retrieve("fox")


def test_nothing_is_returned_for_a_question_that_vectors_and_words_relate_to_no_unit() -> None:
    topics = ["tea", "owls", "rust", "snow", "bread", "glue", "salt", "rope", "wool", "coal"]

    class Topics(Table):
        """An axis for each topic."""

        def embed_documents(self, texts):
            return np.array([[topic in text for topic in topics] for text in texts], dtype=np.float32)

        embed_queries = embed_documents

    documents = [Document(topic, f"This is a note on {topic}.") for topic in topics]
    corpus = chunk_corpus(documents, "sentence:size=50")
    for spec in ("passages", "passages:dense"):
        index = get_retriever(spec).index(corpus, TextVectors(Topics()))
        assert index.retrieve("This is a quux", max_tokens=50) == []  # words of every document say nothing
        assert index.retrieve("owlsome this?", max_tokens=8)[0].document_id == "owls"
        known = [index.is_related(text) for text in ("This is a quux", "owlsome this?", "a quux is not what rop is")]
        assert known == [False, True, False]
    index = get_retriever("passages").index(corpus, TextVectors(Table(64)))
    assert index.retrieve("a note on rope", k=1)
    unknown, third = (sum(index.is_related(f"{word} zap{n} qua{n}") for n in range(40)) for word in ("quux", "wool"))
    assert 0 < unknown < 16 < third < 32, "about a quarter by chance, more with a third of the words"
    words = get_retriever("passages:lexical").index(corpus)
    far = "wool, quux, qua, zip"  # a word of four
    assert (words.is_related("wool"), words.is_related(far), len(words.retrieve(far, k=1))) == (True, False, 1)
    whole = chunk_corpus([Document("d", "\n\n".join(document.text for document in documents))], "sentence:size=10")
    for question, expected in (("This is a quux", 0), ("this quux of rope", 1)):  # of one document by units
        assert len(get_retriever("passages").index(whole, TextVectors(Topics())).retrieve(question, k=1)) == expected


def test_a_budget_is_a_limit_and_no_target() -> None:
    crows, hens = (" ".join(f"The {kind} {n} sings." for n in range(40)) for kind in ("crow", "hen"))
    corpus = chunk_corpus([Document("d", f"{crows} The ferry leaves at noon. {hens}")], "sentence:size=10")
    found = get_retriever("passages:lexical").index(corpus).retrieve("when does the ferry leave", max_tokens=500)
    assert "The ferry leaves at noon." in found[0].text
    assert sum(get_counter("cl100k_base").count(passage.text) for passage in found) < 100


@pytest.mark.parametrize(
    "texts", [["A fox naps.", "The red fox hunts mice in the wood at night, and a fox rests by day."]]
)
@pytest.mark.parametrize("more", [[], ["A crow sings."], ["A crow sings.", "Foxes and crows; fox, fox, fox."]])
def test_in_a_tiny_collection_every_unit_with_a_word_of_the_question_may_be_returned(texts, more) -> None:
    documents = [Document(str(number), text) for number, text in enumerate([*texts, *more])]
    index = get_retriever("passages:lexical").index(chunk_corpus(documents, "sentence:size=50"))
    assert {"0", "1"} <= {passage.document_id for passage in index.retrieve("fox", max_tokens=500)}
    assert "2" not in {passage.document_id for passage in index.retrieve("red fox naps", k=2)}


def test_scales_beyond_the_longest_document_take_no_more_than_its_length(monkeypatch):
    documents = [Document(each, f"{each} fox. A crow. Some rain.") for each in "abc"]
    corpus = chunk_corpus(documents, get_chunker("sentence:size=4,counter=words"))
    found = []
    for scales in ((0, 3, 4), (0, 10**9, 10**12)):
        monkeypatch.setattr(scoring, "SCALES", dict.fromkeys(scoring.SCALES, scales))
        found.append(Passages().index(corpus, TextVectors(Table())).search(["fox rain"], 3))
    assert found[0].indices.tolist() == found[1].indices.tolist()
    np.testing.assert_array_equal(found[0].scores, found[1].scores)


GROUPS = ("Sailors", "Pupils", "Nurses", "Widows", "Farmers", "Bakers", "Judges", "Monks", "Poets")
FARES = "## Fares\n\n| Who | Fare |\n|---|---|\n" + "".join(
    f"| {who} of any age | {len(who)} crowns |\n" for who in GROUPS
)
FERRY = "The ferry leaves Arden at noon and needs an hour to cross the wide and often quite rough lake."
RAIN = "Rain falls on the roads of the whole valley and on all of its small rivers for a day. " * 20
PAGE = f"# Lake\n\n{RAIN}\n\n{FERRY} It carries forty cars. {RAIN}\n\n{FARES}\n{RAIN}"


def test_a_passage_is_a_whole_table_with_its_heading_or_sentences_with_what_they_refer_to() -> None:
    pages = [Document("ferry.md", PAGE), *(Document(f"{n}", f"Snow falls on field {n}.") for n in range(12))]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=24"))
    assert FARES.rstrip() in index.retrieve("What do widows pay?", max_tokens=300)[0].text
    found = index.retrieve("Does it carry forty cars?", max_tokens=150)
    assert f"{FERRY} It carries forty cars." in found[0].text


@pytest.mark.parametrize(
    ("named", "other", "is_found"),
    [
        ("Ana Holt", "Ana Holt grew up in Cork.", True),
        ("Ana Holt", "Ana Quint met Kim Holt in Cork.", False),
        ("case OPS-4412", "OPS-4412 began in Cork.", True),
        ("one Zorvax of old", "The Zorvax is from Cork.", True),
        ("Road Works", "Road Works sits in Cork.", False),  # most documents have it
    ],
)
def test_a_name_leads_to_another_document(named, other, is_found) -> None:
    pages = [
        Document("a", f"The Arden clock was built by {named}. It stands by the lake of the town."),
        Document("b", other),
    ]
    pages += [
        Document(f"n{n}", f"The {n} road clock was seen by Road Works. It was built by a road.") for n in range(20)
    ]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=40"))
    question = "Where is who built the Arden clock from?"
    answers = {"itself": index.retrieve(question, max_tokens=90)}
    hits = [index.corpus.retrieved[number] for number in (0, *range(2, 12), 1)]
    answers["hits"] = index.behind(question, hits, max_tokens=90)
    answers["hit documents"] = index.behind(question, hits[:1], max_tokens=90, show="whole")
    answers["all"] = index.behind(question, hits[:1], max_tokens=90, show="all")
    found = {name: "b" in {passage.document_id for passage in answer} for name, answer in answers.items()}
    assert found == {"itself": is_found, "hits": is_found, "hit documents": False, "all": is_found}


@pytest.mark.parametrize(
    ("spans", "tokens", "balance", "stays"),
    [
        ([Span(0, 31)], 60, 0.3, True),
        ([Span(0, 31)], 20, 0.3, False),  # over three tenths of the budget
        ([Span(0, 15), Span(16, 31)], 60, 0.3, True),
        ([Span(0, 4), Span(5, 10), Span(11, 15), Span(16, 31)], 34, 0.3, True),  # three in one unit
        ([Span(0, 31)], 60, 0.0, False),  # hits do not count
    ],
)
def test_a_short_first_hit_stays_whatever_its_words(spans, tokens, balance, stays) -> None:
    pages = [Document("first", "Cats sleep now.\nDogs also sleep.")]
    pages += [Document(f"{n}", f"The Arden ferry leaves pier {n} at noon.") for n in range(9)]
    pages += [Document(f"rain {n}", f"Some rain falls on road {n} all day.") for n in range(150)]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=8"))
    hits = [Retrieved("first", tuple(spans)), *(Retrieved(f"{n}", (Span(0, 38),)) for n in range(9))]
    answer = index.behind("When does the Arden ferry leave?", hits, max_tokens=tokens, balance=balance)
    assert ("first" in {passage.document_id for passage in answer}) == stays


@pytest.mark.parametrize("tokens", [20, 26])  # less than the best unit has; too few for both
def test_a_short_first_hit_stays_beside_a_best_unit_that_fills_the_budget(tokens) -> None:
    pages = [Document("best", "The Arden ferry leaves from the pier " + "and the road " * 5 + "at noon.")]
    pages += [Document("first", "Cats sleep now."), *(Document(f"{n}", f"Some rain falls on {n}.") for n in range(150))]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=40"))
    hits = [Retrieved("first", (Span(0, 15),)), Retrieved("best", (Span(0, pages[0].size),))]
    answer = index.behind("When does the Arden ferry leave?", hits, max_tokens=tokens)
    assert "Cats sleep now." in [passage.text for passage in answer]


class Reading(WordCounter):
    """Words; remembers what it counted."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def count(self, text: str) -> int:
        self.read.append(text)
        return super().count(text)

    def count_many(self, texts):
        return np.array([self.count(text) for text in texts])


def test_a_question_at_another_budget_counts_and_reads_no_text_again() -> None:
    pages = [Document(f"{n}", " ".join(f"Rain falls on road {n}-{m} and stays." for m in range(9))) for n in range(30)]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=10"))
    counter = Reading()
    for budget in (300, 299, 150):
        index.answers(["Where does rain stay?"], None, budget, counter=counter)
    assert len(counter.read) < len(set(counter.read)) + 5  # what is cut at the budget's end is counted anew
    with pytest.raises(OptionError, match="unknown token counter ''"):
        index.answers(["Where does rain stay?"], None, 100, counter="")  # type: ignore[arg-type]
    known: dict[str, Any] = {"Tea is hot.": ([], False)}
    Said({"tea": 1.0}, "whole", known).sayer("Tea is hot.", "a", 1)
    assert known == {"Tea is hot.": ([], False)}


def test_a_long_first_hit_is_not_counted_to_its_end() -> None:
    counter = Reading()
    page = Document("long", " ".join(f"Rain falls on road {number}." for number in range(2000)))
    index = get_retriever("passages:lexical").index(chunk_corpus([page], "sentence:size=10"))
    hits = [Retrieved("long", (Span(0, page.size),))]
    assert index.behind("Where does rain fall?", hits, max_tokens=20, counter=counter)
    assert len(counter.read) < 500


def test_a_hit_of_which_units_hold_nothing_is_a_passage_of_its_own() -> None:
    page = Document("tea", "Tea is hot." + " " * 20)
    index = get_retriever("passages:lexical").index(chunk_corpus([page], "sentence:size=10"))
    hits = [Retrieved("tea", (Span(20, 25),), text="A picture of tea."), Retrieved("tea", (Span(0, 11),))]
    assert [passage.text for passage in index.behind("Is tea hot?", hits)] == ["A picture of tea.", "Tea is hot."]


def test_passages_of_one_document_can_stand_in_its_order() -> None:
    rain = "Rain falls on the road and the river for a whole day. " * 8
    pages = [Document("a", f"The cat sleeps. {rain} The cat and the dog eat."), Document("b", f"A dog runs. {rain}")]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=16"))
    hits, options = [index.corpus.retrieved[n] for n in (9, 0, 10)], {"max_tokens": 90, "balance": 1.0}
    starts = {
        order: [(p.document_id, p.spans[0].start) for p in index.behind("?", hits, order=order, **options)]
        for order in ("score", "document")
    }
    assert starts == {"score": [("a", 449), ("a", 0), ("b", 0)], "document": [("a", 0), ("a", 449), ("b", 0)]}
    with pytest.raises(OptionError, match="order is score or document"):
        index.behind("?", hits, order="place")


@pytest.mark.parametrize(
    ("other", "is_copy"),
    [
        ("Version 2. The pump is primed with two litres of clean water.", True),
        ("Version 2. The pump is primed with two litres of fresh water.", True),
        ("Version 2. The pump is primed with three litres of clean water.", False),
        ("Version 2. The pump is not primed with two litres of clean water.", False),
        ("Version 2. The pump is primed by Ada with two litres of clean water.", False),
        ("Version 2. The pump is primed.", False),
        ("水泵需要两升清水。 The pump is primed with two litres of clean water.", True),
    ],
)  # fmt: skip
def test_a_text_that_repeats_another_document_is_a_source_of_its_passage(other, is_copy) -> None:
    first = "Version 1. The pump is primed with two litres of clean water."
    pages = [Document("a", f"{first} {first}"), Document("b", other)]
    pages += [Document(f"{n}", "Snow falls.") for n in range(9)]
    index = get_retriever("passages:lexical").index(chunk_corpus(pages, "sentence:size=40"))
    answer = index.retrieve("How is the pump primed?", max_tokens=80)
    sources = [(source.document_id, source.text) for passage in answer for source in passage.sources]
    assert {passage.document_id for passage in answer} == ({"a"} if is_copy else {"a", "b"})
    assert sources == ([("b", other)] if is_copy else [])


FIRMS = ["BestBuy_2019_10K.pdf", "Bolt_2019_10K.pdf", "Bolt_2020_10K.pdf"]


@pytest.mark.parametrize(
    ("names", "question", "expected"),
    [
        (FIRMS, "What was the rent of Best Buy in 2019?", 0),
        (FIRMS, "What was the rent of Bolt in FY2020?", 2),
        (["a", "b", "c"], "What was the rent of Bolt in FY2020?", 1),  # the text that says Bolt
        (["hen", "a", "the story of a rent and a crow"], "What was the rent?", 0),  # one word is chance
    ],
)
def test_the_name_of_a_document_counts_in_all_of_it(names, question, expected):
    fillers = [f"Firm{number}_{2001 + number % 20}_10K.pdf" for number in range(40)]
    texts = ["The rent was 7.", "The rent was 8 of Bolt.", "The rent was 9."]
    documents = [Document(name, f"{text} A crow sings.") for name, text in zip(names, texts, strict=True)]
    documents += [Document(name, "It rains. A hen naps.") for name in fillers]
    index = get_retriever("passages:lexical").index(chunk_corpus(documents, "sentence:size=4,counter=words"))
    first = index.retrieve(question, max_tokens=8)[0]
    assert (first.document_id, "rent" in first.text) == (names[expected], True)


def test_a_chinese_character_of_the_question_counts_where_its_pair_is_not():
    documents = [Document("west", "西は京都。"), Document("east", "東は京都。")]
    index = get_retriever("passages:lexical").index(chunk_corpus(documents, "sentence:size=20"))
    assert index.retrieve("東京都", max_tokens=8)[0].document_id == "east"
