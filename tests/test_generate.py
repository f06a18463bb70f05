"""Generated benchmarks: what a model writes becomes places in the documents or is rejected; no call is paid twice."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import chunkcore.chunkers.llm  # before `get_llm` is replaced, which it imports by name
import chunkcore.models
import numpy as np
import pytest
from chunkcore import DataError, Document, ModelError, Span, load_benchmark, load_documents
from chunkcore.cli import main
from chunkcore.errors import NoAnswerError
from chunkcore.models.llm import CachedLLM, CallableLLM, LLMCache
from chunkcore.questions import GenerationOptions, estimate_generation, generate_benchmark
from chunkcore.questions.label import LabelledQuestions
from chunkcore.questions.prompts import PROMPT_VERSION, NotVerbatimError, Sample, Schedule, draw_sample, locate_excerpts
from chunkcore.questions.validate import filter_questions
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fake_writers import SENTENCES, honest, mixed, passage, reply
from tests.fakes import FakeEmbedder, ScriptedLLM
from tests.strategies import hard_text

STORY = Document("story.txt", "\n".join(SENTENCES))
SHORT = Document("short.txt", "The lamp is green. The vent is shut.")
BLANK = Document("blank.txt", " \n… —\n")


def fake(function, **others) -> CallableLLM:
    return CallableLLM(function, name=function.__name__, **others)


def quick(questions: int, **others) -> GenerationOptions:
    return GenerationOptions(questions=questions, **{"sample_size": 400, **others})


@given(text=hard_text(), size=st.integers(100, 300), number=st.integers(0, 5), seed=st.integers(0, 3))
def test_a_sample_is_a_stretch_of_the_document_that_is_not_blank(text, size, number, seed):
    document = Document("d", text + "x")
    sample = draw_sample(document, size, seed, number)
    assert sample.text == document.text[sample.span.start : sample.span.end]
    assert 0 < len(sample.text) <= size
    assert sample.text == sample.text.strip()
    assert sample == draw_sample(document, size, seed, number)


def test_samples_begin_and_end_between_words_and_reach_every_part_of_a_document():
    words = [f"word{number}" for number in range(2_000)]
    document = Document("d", " ".join(words))
    seen = set()
    for number in range(200):
        inside = draw_sample(document, 1_000, 7, number).text.split()
        assert set(inside) <= set(words)
        assert len(inside) > 90
        seen |= set(inside)
    assert len(seen) > 0.97 * len(words)


def test_every_document_has_its_turn_before_one_has_two_and_long_ones_get_more():
    documents = [Document(f"d{size}", "word " * size) for size in (100, 1_000, 10, 400)]
    schedule = Schedule(documents, size=50, seed=3, patience=5)
    order = []
    for _ in range(34):
        sample = schedule.draw()
        order.append(sample.document.id)
        schedule.settle(sample, kept=True)
    assert len(set(order[:4])) == 4
    # D'Hondt with one each: over 44 are 1,000 / 22, 400 / 9 and 100 / 2; 1,000 / 23, 400 / 10 and 100 / 3 are not.
    assert Counter(order) == {"d1000": 22, "d400": 9, "d100": 2, "d10": 1}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("no idea", "expected a JSON object"),
        ('{"question": "Who?"}', "'excerpts'"),
        ('{"question": "?!", "excerpts": ["x"]}', "a question of words"),
        (reply("Who? " * 300, "x"), "of at most 1000 characters"),
        (reply("Who?", *"abcdef"), "type array, minItems 1, maxItems 5, got ['a', 'b'"),
        ('{"question": "Who?", "excerpts": "x"}', "got 'x'"),
        ('{"question": "Who?", "excerpts": ["x", 5]}', "'excerpts' with type string, got 5"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_to_the_model_and_then_rejected(answer, problem):
    llm = ScriptedLLM(answer)
    made = generate_benchmark([SHORT], llm, quick(1, patience=1, retries=1))
    assert not made.rows
    assert len(llm.asked) == 2
    assert problem in llm.asked[1][-1]["content"]
    assert [each.stage for each in made.rejections] == ["answer"]
    assert problem in made.rejections[0].reason


@pytest.mark.parametrize(
    ("excerpt", "problem"),
    [
        ("Three fell.", "does not stand in the passage"),
        ("one fell.", "does not stand in the passage"),
        ("fell", "stands at several places"),
        ("…", "neither a letter nor a digit"),
        ("Outside.", "does not stand in the passage"),
    ],
)
def test_one_bad_excerpt_rejects_them_all(excerpt, problem):
    text = "One fell. Two fell. …"
    sample = Sample(Document("d", text + " Outside."), Span(0, len(text)))
    with pytest.raises(NotVerbatimError, match=problem):
        locate_excerpts(sample, ["One fell.", excerpt])


@given(text=hard_text(), data=st.data())
def test_whatever_white_space_the_model_changes_the_place_is_the_one_it_copied(text, data):
    # Around every letter a number of its own, so that no stretch repeats.
    text = "".join(f"{number}{character} " for number, character in enumerate(text)) + "end"
    document = Document("d", text)
    start = data.draw(st.integers(0, len(text) - 1))
    copied = text[start : data.draw(st.integers(start + 1, len(text)))]
    altered = re.sub(r"\s+", lambda _: data.draw(st.sampled_from([" ", "\n\n", "\u3000", ""])), copied)
    if text.count(copied.strip()) > 1 or not any(map(str.isalnum, copied)):
        return
    try:
        found = locate_excerpts(Sample(document, Span(0, len(text))), [altered])
    except NotVerbatimError as error:
        if "several places" in str(error):  # without its white space it is another stretch's like
            return
        raise
    (span,) = found
    assert "".join(span.slice(text).split()) == "".join(copied.split())


def test_questions_have_places_that_hold_and_load_as_a_benchmark():
    made = generate_benchmark([STORY, SHORT, BLANK], fake(honest), quick(20, concurrency=3))
    assert len(made.rows) == 20
    assert not made.stopped
    benchmark = load_benchmark(made.documents, made.rows)
    assert len(benchmark.queries) == 20
    assert not benchmark.problems
    assert {query.evidence[0].document_id for query in benchmark.queries} == {"story.txt", "short.txt"}
    for row in made.rows:
        text = {"story.txt": STORY, "short.txt": SHORT}[row["document_id"]].text
        for each in row["evidence"]:
            assert text[each["start"] : each["end"]] == each["text"]
            assert row["sample"][0] <= each["start"] < each["end"] <= row["sample"][1]


def test_places_in_a_page_are_those_in_its_file(tmp_path):
    (tmp_path / "page.html").write_text("<h1>Mast</h1><p>The <b>mast</b> is tall.</p>")
    made = generate_benchmark(load_documents(tmp_path), ScriptedLLM(reply("How high?", "The mast is tall.")), quick(1))
    (tmp_path / "questions.jsonl").write_text(json.dumps(made.rows[0]))
    assert not load_benchmark(tmp_path).problems


@pytest.mark.parametrize("threads", [1, 4])
def test_the_questions_do_not_depend_on_which_answer_comes_first(threads):
    def slow(messages, schema):
        time.sleep(random.random() / 200)
        return mixed(messages, schema)

    options = quick(12, patience=50, concurrency=4, retries=0)
    expected = generate_benchmark([STORY, SHORT], fake(mixed), options)
    made = generate_benchmark([STORY, SHORT], fake(slow, concurrency=threads), options)
    assert (made.rows, made.rejections) == (expected.rows, expected.rejections)


def test_a_question_that_was_asked_before_or_stands_in_the_text_is_rejected():
    faq = Document("faq.txt", "How long is the warranty of the buoy? It is 24 months.\n" + "\n".join(SENTENCES))
    script = [
        reply("Who slept in Arbon?", SENTENCES[0]),
        reply("who SLEPT in arbon", SENTENCES[0]),
        reply("how long is the warranty of the  buoy", "It is 24 months."),
    ]
    made = generate_benchmark([faq], ScriptedLLM(*script), quick(3, sample_size=9_000, patience=2))
    assert [row["question"] for row in made.rows] == ["Who slept in Arbon?"]
    assert [(each.stage, each.id) for each in made.rejections] == [("question", "g2"), ("question", "g3")]
    assert "as g1" in made.rejections[0].reason
    assert "word for word" in made.rejections[1].reason
    assert made.stopped == "every document was given up after 2 rejections in a row"


@pytest.mark.parametrize(
    ("documents", "message"),
    [([], "none of the 0 documents"), ([BLANK], "none of the 1 documents"), ([SHORT, SHORT], "share an id")],
)
def test_documents_that_cannot_be_asked_about_are_an_error(documents, message):
    with pytest.raises(DataError, match=message):
        generate_benchmark(documents, fake(honest), quick(1))


@settings(max_examples=40)
@given(texts=st.lists(hard_text(), min_size=1, max_size=3), seed=st.integers(0, 99), concurrency=st.integers(1, 3))
def test_whatever_documents_hold_and_a_model_writes_all_that_is_kept_is_right(texts, seed, concurrency):
    documents = [Document(f"d{number}", f"{text} x{number}") for number, text in enumerate(texts)]

    def anything(messages, schema):
        chance = random.Random(f"{seed}{json.dumps(list(messages))}")
        text = passage(messages)
        start = chance.randrange(len(text))
        piece = text[start : start + chance.randint(1, 30)]
        excerpts = [piece, piece.replace(" ", "\n"), piece[::-1], text, "", 5, None][: chance.randint(0, 7)]
        chance.shuffle(excerpts)
        good = {"oath": 0, "question": f"{piece} {chance.random()}", "excerpts": excerpts}
        return chance.choice([json.dumps(good), json.dumps(good)[:-9], "[]", "", "null", None, 5, reply("?", piece)])

    options = quick(6, sample_size=100, patience=3, concurrency=concurrency)
    made = generate_benchmark(documents, ScriptedAnything(anything), options, embedder=FakeEmbedder())
    for row in made.rows:
        text = next(each.text for each in documents if each.id == row["document_id"])
        assert row["question"].strip()
        assert row["evidence"]
        for each in row["evidence"]:
            assert text[each["start"] : each["end"]] == each["text"]
            assert any(map(str.isalnum, each["text"]))
    if made.rows:
        assert len(load_benchmark(documents, made.rows).queries) == len(made.rows)
    assert len(made.rows) + len(made.rejections) == made.info["asked"]


class ScriptedAnything:
    """Hands on whatever a function answers, be it no text at all."""

    name = fingerprint = "anything"

    def __init__(self, function) -> None:
        self.complete = function


def cached(function, cache: LLMCache, **others) -> CachedLLM:
    return CachedLLM(fake(function, **others), cache)


def test_a_second_run_asks_nothing_that_was_answered_and_more_questions_add_to_those_that_are_there(tmp_path):
    llm = cached(mixed, LLMCache(tmp_path / "answers.sqlite"))
    first = generate_benchmark([STORY, SHORT], llm, quick(8, concurrency=1))
    again = generate_benchmark([STORY, SHORT], llm, quick(8, concurrency=1))
    assert (again.rows, again.rejections) == (first.rows, first.rejections)
    # Only answers that could be read are kept: the others are asked for again.
    assert again.usage.kept_answers == first.info["asked"] - sum(each.stage == "answer" for each in first.rejections)
    more = generate_benchmark([STORY, SHORT], llm, quick(14, concurrency=1))
    assert more.rows[:8] == first.rows
    assert more.usage.kept_answers == again.usage.kept_answers


def test_a_model_that_cannot_be_asked_ends_the_work_and_the_same_call_goes_on_from_there(tmp_path):
    calls = 0

    def dying(messages, schema):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ModelError("the key is wrong")
        return honest(messages, schema)

    options = quick(6, concurrency=1)
    llm = cached(dying, LLMCache(tmp_path / "answers.sqlite"))
    with pytest.raises(ModelError, match=r"the key is wrong\. What was answered is in the cache"):
        generate_benchmark([STORY], llm, options)
    generated = generate_benchmark([STORY], llm, options)
    assert generated.rows == generate_benchmark([STORY], fake(honest), options).rows
    assert (calls, generated.usage.calls, generated.usage.kept_answers) == (7, 3, 3)


def test_an_endpoint_that_is_down_stops_the_work_and_no_document_pays_for_it():
    calls = 0

    def down(messages, schema):
        nonlocal calls
        calls += 1
        if 5 <= calls < 15:
            raise NoAnswerError("HTTP 503")
        return honest(messages, schema)

    llm = cached(down, LLMCache())
    documents = [STORY, Document("other.txt", STORY.text[:1500]), Document("third.txt", STORY.text[1500:])]
    options = quick(12, concurrency=1)
    with pytest.raises(ModelError, match="10 questions in a row got no answer, the last one: HTTP 503"):
        generate_benchmark(documents, llm, options)
    generated = generate_benchmark(documents, llm, options)
    assert not generated.rejections
    assert generated.rows == generate_benchmark(documents, fake(honest), options).rows
    assert calls == 12 + 10


def test_invalid_answers_in_a_row_are_no_failure_of_the_endpoint_and_calls_of_any_model_count():
    calls = 0

    class Weak:  # a model of one's own, which counts no usage
        name = fingerprint = "weak"

        def complete(self, messages, schema=None):
            nonlocal calls
            calls += 1
            return "I would rather not."

    made = generate_benchmark([STORY], Weak(), quick(5, concurrency=1, patience=15))
    assert made.stopped == "every document was given up after 15 rejections in a row"
    assert {rejection.stage for rejection in made.rejections} == {"answer"}
    assert made.usage.calls == calls > 15


def test_failures_with_an_answer_between_them_do_not_stop_the_work():
    calls = 0

    def seldom(messages, schema):
        nonlocal calls
        calls += 1
        if calls % 10:
            raise NoAnswerError("HTTP 503" if calls % 2 else "")
        return honest(messages, schema)

    made = generate_benchmark([STORY], fake(seldom), quick(2, concurrency=1, patience=100))
    assert (len(made.rows), calls) == (2, 20)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_cap_on_calls_stops_cleanly_and_a_second_run_goes_on(concurrency):
    llm = cached(honest, LLMCache(), concurrency=concurrency)
    options = quick(12, concurrency=concurrency)
    for cap, rows in ((0, 0), (5, 5), (4, 9)):
        generated = generate_benchmark([STORY], llm, options, max_calls=cap)
        assert generated.stopped == f"the cap of {cap} calls is reached"
        assert (generated.usage.calls, len(generated.rows)) == (cap, rows)
    generated = generate_benchmark([STORY], llm, options, max_calls=100)
    assert not generated.stopped
    assert generated.rows == generate_benchmark([STORY], fake(honest), options).rows


def test_an_estimate_asks_nothing_and_is_near_what_is_used():
    options = quick(30, sample_size=4_000)
    foreseen = estimate_generation([STORY], options)
    made = generate_benchmark([STORY], fake(honest), options)
    repeated = estimate_generation([Document("r", "Home. News. " * 900)], options)
    assert foreseen.calls == made.usage.calls == repeated.calls == 30
    assert foreseen.input_tokens == pytest.approx(made.usage.input_tokens, rel=0.15)


class Fixed:
    """An embedder whose vectors are at stated angles, in degrees."""

    name, fingerprint, max_tokens = "fixed", "fixed", None

    def __init__(self, angles):
        self.angles = angles

    def embed_documents(self, texts):
        radians = np.radians([self.angles[text] for text in texts])
        return np.column_stack([np.cos(radians), np.sin(radians)]).astype(np.float32) * 3

    embed_queries = embed_documents


class Narrow(Fixed):
    """Its vectors share most of their length."""

    def embed_documents(self, texts):
        shared = np.full((len(texts), 1), 2.4)
        return np.hstack((super().embed_documents(texts), shared)).astype(np.float32)

    embed_queries = embed_documents


def test_filters_drop_the_later_of_two_alike_and_whoever_has_an_excerpt_that_does_not_belong():
    """Own excerpts are 4° away, one 80°; q1 is like q0 and q2 is like q1, but not q0: with q1 gone q2 stays."""
    angles = {"q0": 0, "q1": 20, "q2": 40, "q3": 160}
    angles |= {f"q{number}": 30 * (number - 2) + 60 for number in range(4, 24)}
    angles |= {f"e{number}": angles[f"q{number}"] + (80 if number == 3 else 4) for number in range(24)}
    questions = [f"q{number}" for number in range(24)]
    excerpts = [[f"e{number}"] for number in range(24)]
    done = filter_questions(questions, excerpts, Fixed(angles))
    assert done.relevance is not None
    first = {drop.place: (drop.stage, drop.reason) for drop in done.dropped}
    assert first[1] == ("duplicate", "it has cosine 0.940, over 0.900, with the question 'q0'")
    assert 2 not in first
    assert first[3][0] == "relevance"
    assert "an excerpt has cosine 0.174 with the question" in first[3][1]
    # A model without a cosine under 0.7 gives the same duplicates.
    narrow = filter_questions(questions, excerpts, Narrow(angles))
    assert [drop.place for drop in narrow.dropped if drop.stage == "duplicate"] == [
        index for index, (stage, _) in first.items() if stage == "duplicate"
    ]
    few = filter_questions(questions[:19], excerpts[:19], Fixed(angles))
    assert few.relevance is None
    assert 3 not in {drop.place for drop in few.dropped}


@pytest.fixture
def docs(tmp_path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for document in (STORY, SHORT):
        (folder / document.id).write_text(document.text)
    return folder


@pytest.fixture
def model(monkeypatch) -> CallableLLM:
    """A model in place of the one that --llm names."""
    llm = fake(honest, concurrency=4)
    monkeypatch.setattr(chunkcore.models.llm, "get_llm", lambda spec: llm)
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: FakeEmbedder())
    return llm


def command(docs: Path, output: Path, *more: str) -> list[str]:
    named = ["--docs", str(docs), "--llm", "openai:m@http://127.0.0.1:1/v1", "--output", str(output)]
    return ["questions", "generate", *named, "--sample-size", "400", *more]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_what_the_command_writes_is_told_loads_and_can_be_compared_on(docs, model, tmp_path, capsys):
    output = tmp_path / "out" / "questions.jsonl"
    assert main(command(docs, output, "-n", "25")) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == str(output)
    assert "25 of 25" in told.err
    names = sorted(each.name for each in output.parent.glob("[!.]*"))
    assert names == ["checksums.json", "questions.info.json", "questions.jsonl", "questions.rejected.jsonl"]
    benchmark = load_benchmark(docs, output)
    assert not benchmark.problems
    info = json.loads(output.with_suffix(".info.json").read_text())
    assert (info["options"]["seed"], info["model"], info["prompt"]) == (0, "honest", PROMPT_VERSION)
    assert (info["questions"], info["options"]["sample_size"]) == (len(benchmark.queries), 400)
    reasons = [json.loads(line)["reason"] for line in output.with_suffix(".rejected.jsonl").read_text().splitlines()]
    assert len(list(filter(None, reasons))) == info["rejected"] == 25 - len(benchmark.queries)
    arguments = [str(docs), "--questions", str(output), "--output", str(tmp_path / "report"), "--resamples", "100"]
    assert main(["compare", *arguments, "-s", "recursive:size=20", "-s", "sentence:size=20", "-r", "bm25"]) == 0


def test_a_dry_run_tells_calls_and_cost_and_writes_nothing(docs, model, tmp_path, capsys):
    more = ["--dry-run", "--input-price", "1", "--output-price", "10"]
    assert main(command(docs, tmp_path / "q.jsonl", *more)) == 0
    told = capsys.readouterr().out
    assert re.match(r"honest: 100 calls, [\d,]+ tokens in, [\d,]+ tokens out, cost 0\.\d+\n", told)
    assert ("Nothing was asked" in told, model.usage.calls) == (True, 0)
    assert not list(tmp_path.glob("q*"))


def test_questions_that_somebody_wrote_are_not_written_over(docs, model, tmp_path, capsys):
    output = tmp_path / "questions.jsonl"
    output.write_text("mine")
    assert main(command(docs, output)) == 2
    assert (output.read_text(), model.usage.calls) == ("mine", 0)
    output.unlink()
    assert main(command(docs, output, "-n", "25")) == main(command(docs, output, "-n", "25")) == 0
    LabelledQuestions(load_documents(docs), output).add("Mine?")
    assert main(command(docs, output)) == 2
    assert "questions.jsonl is there, and is not what chunkcore questions generate wrote" in capsys.readouterr().err
    assert "Mine?" in output.read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--output", "{docs}/questions.jsonl"], "would be taken for a document"),
        (["--output", "{docs}/../q.csv"], "ends in .jsonl"),
        (["--docs", "{docs}/none"], "does not exist"),
        (["--llm", "gpt"], "a language model is openai:MODEL@URL"),
        (["--llm", "openai:m@http://127.0.0.1:1/v1#tries=1"], "cannot be reached"),
    ],
)
def test_what_cannot_be_is_one_sentence(docs, tmp_path, capsys, more, message, monkeypatch):
    if "cannot be reached" in message and find_spec("openai") is None:
        pytest.skip("the package openai is not installed")
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: FakeEmbedder())
    assert main(command(docs, tmp_path / "q.jsonl", *(each.format(docs=docs) for each in more))) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("chunkcore: ")]
    assert len(told) == 1
    assert message in told[0]
