"""Whether the answer is there, and how many tokens hold it: thresholds from labelled questions."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from chunkcore import Benchmark, Document, Evidence, OptionError, Query, Span, chunk_corpus, get_retriever, load_index
from chunkcore.cli import main
from chunkcore.questions.validate import label_states
from chunkcore.reading.opening import load_documents
from chunkcore.retrieval import TextVectors, WindowIndex
from chunkcore.retrieval.passages.units import MOST, levels, shown_units
from chunkcore.run import Retrieved
from chunkcore.study.enough import UnattainableError, calibrate, controlled, drift, index_changes, measure_needs
from chunkcore.study.experiment import run_retriever

from tests.test_passages import Table

THINGS = ("pump", "valve", "lamp", "rope", "sail", "oar", "hull", "mast", "wheel", "clock")
TOWNS = ("Tarn", "Valby", "Soria", "Arden", "Lyon", "Cork", "Izmir", "Porto")


def fact(thing: str, town: str) -> str:
    return f"The {thing} in {town} was built by the guild of {thing} makers of {town[::-1].lower()}."


def benchmark() -> Benchmark:
    """A document a town, a fact a thing, and a question for each fact."""
    filler = "Rain fell on the lake for days, and nobody came. Boats stayed in the harbour until the wind turned. "
    documents, queries = [], []
    for town in TOWNS:
        text = "".join(f"{fact(thing, town)} {filler}" for thing in THINGS)
        documents.append(Document(town, text))
        for thing in THINGS:
            start = text.index(fact(thing, town))
            span = Span(start, start + len(fact(thing, town)))
            queries.append(Query(f"{town}-{thing}", f"Who built the {thing} in {town}?", (Evidence(town, span),)))
    return Benchmark("towns", documents, queries)


def index_of(questions: Benchmark, spec: str = "passages:lexical", chunker: str = "sentence:size=30") -> WindowIndex:
    corpus = chunk_corpus(questions.documents, chunker)
    index = get_retriever(spec).index(corpus, TextVectors(Table(64)) if spec == "passages" else None)
    assert isinstance(index, WindowIndex)
    return index


def test_a_promise_holds_in_the_mean_and_too_much_is_refused_with_the_number_that_it_takes() -> None:
    generator = np.random.default_rng(0)
    risks = []
    for _ in range(400):
        level = controlled(generator.normal(size=30), 0.2)
        risks.append(np.mean(generator.normal(size=30) > level))
    assert 0.1 < np.mean(risks) <= 0.2
    assert 0.05 < np.mean(np.array(risks) > 0.25) <= 0.1
    cases = [
        (np.zeros(8), 0.1, "takes at least 20 questions, got 8"),
        (np.zeros(8), 0.0, "no number of questions"),
        (np.zeros(8), 1.5, "a promised share is at most 1, got 1.5"),
        (np.repeat([0.0, np.inf], [95, 5]), 0.05, "out of reach with any number"),
        (np.repeat([0.0, np.inf], [120, 30]), 0.2, "out of reach with any number"),
        (np.repeat([0.0, np.inf], [42, 3]), 0.1, "about 69 such questions"),
    ]
    for needs, miss, message in cases:
        with pytest.raises((OptionError, UnattainableError), match=message):
            controlled(needs, miss)
    some = np.concatenate((np.arange(95.0), np.full(5, np.inf)))
    levels = [controlled(some, 0.1), controlled(np.zeros(20), 0.1)]
    assert levels == [90.0, 0.0], "nine of 100, five of which are out of reach"


def test_a_higher_level_shows_all_of_a_lower_one_and_the_best_unit_is_always_shown() -> None:
    generator = np.random.default_rng(1)
    scores, sizes = generator.normal(size=500).round(1), generator.integers(1, 200, 500)
    scores[::7] = -np.inf
    order, rising = levels(scores, sizes)
    assert (np.diff(rising[np.isfinite(rising)]) >= 0).all()
    assert np.isfinite(scores[order]).all()
    shown: set[int] = set()
    for level in (-np.inf, *rising[np.isfinite(rising)][::40].tolist(), 99.0):
        units = shown_units(scores, sizes, level).tolist()
        assert units
        assert shown <= set(units)
        shown = set(units)
    assert sizes[list(shown)].sum() <= MOST
    assert not len(shown_units(np.array([-np.inf]), np.array([1]), 0.0))


@pytest.mark.parametrize("spec", ["passages:lexical", "passages"])
def test_a_calibrated_index_gives_each_question_what_it_needs_and_keeps_that_when_saved(tmp_path, spec):
    towns = benchmark()
    index = index_of(towns, spec)
    with pytest.raises(OptionError, match="calibrate the index"):
        index.retrieve("Who built the pump in Tarn?", max_tokens="auto")
    calibrated = calibrate(index, towns, 0.1)
    assert index.enough is None
    missed = []
    for query in towns.queries:
        passages = calibrated.retrieve(query.text, max_tokens="auto")
        text = "".join(passage.text for passage in passages)
        missed.append(fact(*reversed(query.id.split("-"))) not in text)
    assert np.mean(missed) <= 0.1
    loaded = load_index(calibrated.save(tmp_path / "index"), embedder=Table(64) if spec == "passages" else None)
    question = towns.queries[3].text
    expected = calibrated.retrieve(question, max_tokens="auto")
    for same in (loaded, loaded.update([Document("new", "Nothing is new.")]), loaded.within(list(TOWNS))):
        assert same.enough == calibrated.enough
    assert loaded.retrieve(question, max_tokens="auto") == expected
    assert len(loaded.retrieve(question, 1, "auto")) == 1
    manifest = json.loads((tmp_path / "index" / "manifest.json").read_text())
    assert manifest["enough"]["questions"] == len(towns.queries)


def test_what_is_not_there_is_called_unrelated_at_the_promised_rate() -> None:
    towns = benchmark()
    calibrated = calibrate(index_of(towns), towns, 0.1, refuse=0.1)
    assert isinstance(calibrated, WindowIndex)
    refused = [not calibrated.is_related(query.text) for query in towns.queries]
    assert np.mean(refused) <= 0.1
    gone = [calibrated.is_related(f"Who built the {thing} in Narvik?") for thing in THINGS]
    assert not any(gone)
    passages = calibrated.retrieve("Who built the pump in Narvik?", max_tokens="auto")
    assert calibrated.missing_words("Who built the pump in Narvik?", passages) == ["who", "narvik"]


def test_behind_a_retriever_only_its_hits_are_shown_and_evidence_outside_of_them_is_missed() -> None:
    towns = benchmark()
    index = index_of(towns)
    chunks = get_retriever("bm25").index(chunk_corpus(towns.documents, "recursive:size=100"))
    calibrated = calibrate(index, towns, 0.2, behind=run_retriever(chunks, towns, 20))
    hits = chunks.retrieve("Who built the pump in Tarn?", 20)
    passages = calibrated.behind("Who built the pump in Tarn?", hits, max_tokens="auto")
    assert fact("pump", "Tarn") in passages[0].text
    assert sum(len(p.text) for p in passages) < sum(len(hit.text) for hit in hits)
    with pytest.raises(OptionError, match="of this index alone"):
        calibrated.retrieve("Who built the pump in Tarn?", max_tokens="auto")
    halves = [Retrieved(hit.document_id, (Span(0, 40),), text="x" * 40) for hit in hits]
    level, _ = index.needed("Who?", [Retrieved("Tarn", (Span(0, 41),))], halves)
    assert level == np.inf
    assert index.needed("Who built?", [Retrieved("Tarn", (Span(0, 40),))], halves)[0] < np.inf


def test_needs_tell_tokens_against_evidence_and_what_passes_without_documents() -> None:
    towns = benchmark()
    needs = measure_needs(index_of(towns), towns)
    level = float(needs.curves[0][0][2])
    shown = [tokens[max(1, (rising <= level).sum()) - 1] for rising, tokens in needs.curves]
    assert needs.tokens(np.array([level])) == pytest.approx(np.mean(shown))
    curve = needs.curve()
    tokens, shares = [point.tokens for point in curve], [point.share for point in curve]
    assert (tokens, shares) == (sorted(set(tokens)), sorted(shares))
    assert all(point.low <= point.share <= point.high for point in curve)
    share, low, high = needs.passing(needs.enough(0.1).least)
    assert low <= share <= high < 0.5
    one = Benchmark("one", towns.documents[:1], towns.queries[:10])
    needs = measure_needs(index_of(one, chunker="sentence:size=12"), one)
    assert (needs.absent[:, 0] > 0).all(), "only the evidence is taken out"
    copy = Document("copy", towns.documents[0].text.replace("makers", "carvers"))
    both = replace(towns, documents=[*towns.documents, copy])
    again = measure_needs(index_of(both), both)
    copied = {f"{TOWNS[0]}-{thing}": "copy" for thing in THINGS}
    assert again.enough(0.1).repeated == copied, "the copy answers these as well"
    assert len(again.absent) == len(again.unanswered) == len(towns.queries) - len(THINGS)
    pump = fact("pump", "Tarn")
    sayers = [index_of(towns).sayer(pump, evidence) for evidence in (pump, f"{pump} Not in 1950.", f"{pump} Never.")]
    assert sayers == ["Tarn", None, None], "a number or a negation is missing"
    other = get_retriever("bm25").index(chunk_corpus(towns.documents, "sentence:size=30"))
    for miss, message in ((0.1, "an index of the retriever passages.* by chunkcore index"), (1.5, "miss is at most 1")):
        with pytest.raises(OptionError, match=message):
            calibrate(other, towns, miss)


def test_the_command_prints_the_curve_and_keeps_the_thresholds_or_says_what_it_would_take(tmp_path, capfd):
    towns = benchmark()
    (tmp_path / "docs").mkdir()
    for document in towns.documents:
        (tmp_path / "docs" / f"{document.id}.txt").write_text(document.text)
    rows = [{"id": q.id, "question": q.text, "evidence": [fact(*reversed(q.id.split("-")))]} for q in towns.queries]
    questions = tmp_path / "questions.jsonl"
    index = str(tmp_path / "index")
    assert main(["index", str(tmp_path / "docs"), "-o", index]) == 0
    for count, code, message in ((80, 0, 'max_tokens="auto"'), (10, 1, "takes at least 20 questions, got 10")):
        questions.write_text("\n".join(map(json.dumps, rows[:count])))
        assert main(["calibrate", index, "--questions", str(questions)]) == code
        shown = capfd.readouterr()
        assert message in " ".join((shown.out + shown.err).split())
    kept = load_index(index)
    assert getattr(kept.enough, "questions", 0) == 80
    assert kept.retrieve("Who built the pump in Tarn?", max_tokens="auto")
    (tmp_path / "docs" / "copy.txt").write_text(towns.documents[0].text.replace("was", "is"))
    assert main(["index", str(tmp_path / "docs"), "-o", index]) == 0
    assert load_index(index).enough == kept.enough
    questions.write_text("\n".join(map(json.dumps, rows)))
    assert main(["calibrate", index, "--questions", str(questions)]) == 0
    assert f"left out there: copy.txt answers {TOWNS[0]}-pump as well" in capfd.readouterr().out
    assert main(["check", index, "--questions", str(questions)]) == 0
    assert "presence is as it was" in capfd.readouterr().out
    questions.write_text('{"question": "Why?"}')
    assert main(["check", index, "--questions", str(questions)]) == 2
    questions.write_text("\n".join(json.dumps({**row, "question": "Why does it rain?"}) for row in rows))
    assert main(["check", index, "--questions", str(questions)]) == 1


def test_drift_gives_a_false_alarm_in_one_of_twenty_runs_and_sees_a_change() -> None:
    generator = np.random.default_rng(2)
    for sizes in ((90, 60), (300, 90), (20, 15)):
        one, other = ([generator.normal(size=size) for _ in range(1000)] for size in sizes)
        assert np.mean([drift(a, b) < 0.05 for a, b in zip(one, other, strict=True)]) <= 0.055
        assert np.mean([drift(a, b + 2) < 0.05 for a, b in zip(one, other, strict=True)]) > 0.9
    assert drift([], [1.0]) == 1.0


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("It rains. The oar lay by the door. The hull was red and old.", "there"),
        ("Today it rains. The oar lay by  the door. The hull was red and old.", "moved"),
        ("It rains. The oar lay by the door. Nobody came for days. The hull was red and old.", "split"),
        ("It rains. The oar lay by the gate. The hull was red and old.", "changed"),
        ("It rains. The hull was red and old.", "changed"),
        ("It rains.", "gone"),
    ],
)
def test_each_label_is_there_moved_split_changed_or_gone(tmp_path, capfd, text, state):
    excerpt = "The oar lay by the door. The hull was red and old."
    evidence = [{"document": "boat.txt", "start": 10, "end": 10 + len(excerpt), "text": excerpt}]
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps({"id": "q", "question": "Which?", "evidence": evidence}))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "boat.txt").write_text(text)
    code = main(["check", str(tmp_path / "docs"), "--questions", str(file), "--no-cache"])
    assert code == (state not in ("there", "moved"))
    assert f"1 excerpt: 1 {state}" in capfd.readouterr().out
    (tmp_path / "docs" / "other.txt").write_text(excerpt)
    (tmp_path / "docs" / "boat.txt").write_text("It rains.")
    (label,) = label_states(load_documents(tmp_path / "docs"), file)
    assert (label.state, label.found[0].document_id) == ("moved", "other.txt")


def test_another_embedder_and_a_lost_part_are_named_and_an_unchanged_index_is_not() -> None:
    towns = benchmark()
    calibrated = calibrate(index_of(towns, "passages"), towns, 0.1)
    assert isinstance(calibrated, WindowIndex)
    questions = [query.text for query in towns.queries]
    corpus = calibrated.corpus
    other = get_retriever("passages").index(corpus, TextVectors(Table(32)))
    small = Benchmark("small", [Document(d.id, d.text[:-200]) for d in towns.documents], ())
    cases = {"": calibrated, "embedder": other, "lost": calibrated.within(list(TOWNS[1:]))}
    cases |= {"units": index_of(small, "passages"), "words": index_of(towns)}
    changes = {}
    for name, index in cases.items():
        assert isinstance(index, WindowIndex)
        index.enough = calibrated.enough
        changes[name] = index_changes(index, questions)
    assert changes[""] == {}
    assert "embedder" in changes["embedder"]
    assert changes["words"]["embedder"].startswith("the embedder is none, calibrated was ")
    assert changes["lost"]["lost"] == "1 of 8 documents are gone: 'Tarn'"
    assert "a part is lost" in changes["units"]["lost"]
    assert index_changes(index_of(towns), questions) == {}


class Narrow:
    """An embedder whose cosines are all from 0.75 to 1."""

    name = fingerprint = "narrow"
    max_tokens = None

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def embed_documents(self, texts: list[str]) -> np.ndarray:
        rows = [
            [topic in text for topic in self._topics] + [not any(t in text for t in self._topics)] for text in texts
        ]
        topics = np.array(rows, dtype=np.float32)
        topics /= np.linalg.norm(topics, axis=1, keepdims=True)
        return np.column_stack((topics, np.full(len(texts), 3**0.5, dtype=np.float32)))

    embed_queries = embed_documents


def test_related_is_seen_where_all_cosines_are_high() -> None:
    topics = [f"{thing}s" for thing in THINGS]
    documents = [Document(topic, f"This is a note on {topic}.") for topic in topics]
    corpus = chunk_corpus([*documents, Document("lake", "Rain fell.")], "sentence:size=50")
    index = get_retriever("passages").index(corpus, TextVectors(Narrow(topics)))
    assert isinstance(index, WindowIndex)
    questions = {"lampshade lampsx": True, "zebra crossing": False, "who sails to mars": True, "quux of rop": False}
    assert {text: index.is_related(text) for text in questions} == questions
