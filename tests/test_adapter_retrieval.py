"""Scoring a retriever of no framework: what is reported, retried and refused."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction, signature

import pytest
from chunkadapters.behind import core_documents
from chunkadapters.scores import DeployedRetriever, QuestionScorer, RetrieverHooks
from chunkcore import Benchmark, DataError, Evidence, OptionError, Query, chunk_corpus, get_retriever, load_dataset
from chunkcore.locating import Hit, StatedPlace
from chunkcore.text import Document, Span

TEXT = "Tea is hot. The sea is deep. \ud800 Fees are low."
QUESTIONS = ["tea", "sea \ud800", "fee"]
BENCHMARK = Benchmark(
    "b",
    [Document("d", TEXT)],
    [Query(f"q{i}", text, (Evidence("d", Span(0, 11)),)) for i, text in enumerate(QUESTIONS)],
)


class Toy:
    """Answers with the question's own words and the first sentence; raises on some questions."""

    def __init__(self, *fails: str) -> None:
        self.fails = set(fails)
        self.asked: list[str] = []

    def ask(self, question: str) -> list[Hit]:
        self.asked.append(question)
        if question in self.fails:
            raise ConnectionError("nobody there")
        return [Hit(TEXT[:11], 0.5, ("d",), StatedPlace((Span(0, 11),))), Hit(question)]

    async def aask(self, question: str) -> list[Hit]:
        await asyncio.sleep(0)
        return self.ask(question)


HOOKS: RetrieverHooks[Toy] = RetrieverHooks(
    lambda toy: DeployedRetriever("toy", toy.ask, toy.aask), lambda hit: hit, Hit, "hits"
)


def run(toy: Toy, way: str = "run", **options):
    options = {"retries": 0, **options}
    if way == "run":
        return HOOKS.run_retriever(toy, BENCHMARK, **options)
    return asyncio.run(HOOKS.arun_retriever(toy, BENCHMARK, **options))


both = pytest.mark.parametrize("way", ["run", "arun"])


@both
def test_progress_counts_answers_and_failures(way):
    calls: list[tuple] = []
    with pytest.warns(UserWarning, match="1 of 3 questions went unanswered"):
        failures = run(Toy("fee"), way, progress=lambda *call: calls.append(call)).failures
    assert calls == [("retrieve", done, 3) for done in (1, 2, 3)]
    assert set(failures) == {"q2"}


def evaluated(toy: Toy, way: str = "run", benchmark=BENCHMARK, **options):
    options = {"retries": 0, **options}
    if way == "run":
        return HOOKS.evaluate_retriever(toy, benchmark, **options)
    return asyncio.run(HOOKS.aevaluate_retriever(toy, benchmark, **options))


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["Foo@5"]}, "Foo"),
        ({"measures": ["TokenF1"]}, "TokenF1"),
        ({"measures": []}, "no measure to score"),
        ({"k": 0}, "0"),
        ({"k": [5, "many"]}, "many"),
        ({"counter": "none-such"}, "none-such"),
        ({"benchmark": "none-such"}, "none-such"),
        ({"benchmark": 3}, "expected a Benchmark or a collection's name, got int"),
        ({"metric": "Recall@5"}, "did you mean 'measures'"),
        ({"inputs": {}}, "inputs: only for Haystack"),
    ],
)
def test_a_mistake_is_told_before_the_first_question(way, options, message):
    toy = Toy()
    with pytest.raises(OptionError, match=message):
        evaluated(toy, way, **options)
    assert toy.asked == []


def test_help_names_the_options():
    for function in (HOOKS.evaluate_retriever, HOOKS.aevaluate_retriever):
        assert {"measures", "pool", "retries"} < signature(function).parameters.keys()


def test_a_shipped_collection_goes_by_its_name():
    toy = Toy()
    with pytest.warns(UserWarning, match="was the index built from other texts"):
        assert evaluated(toy, benchmark="lochmere", k=1).benchmark == "lochmere"
    assert len(toy.asked) == len(load_dataset("lochmere").queries)


class Keyed:
    """Holds a key two objects deep, and tells it in its errors."""

    def __init__(self, api_key: str) -> None:
        self.client = Client(api_key)

    def ask(self, question: str) -> list[Hit]:
        if question == "tea":
            return []
        raise PermissionError(f"{self.client.api_key} is wrong; so are sk-abcdefgh1234 and http://me:pass@host/a")

    async def aask(self, question: str) -> list[Hit]:
        return self.ask(question)


class Client:
    def __init__(self, api_key: str) -> None:
        self.api_key = api_key
        self.vector_key = "is wrong"  # a store's, no secret


@both
def test_keys_in_a_retrievers_errors_are_told_to_nobody(way):
    hooks: RetrieverHooks[Keyed] = RetrieverHooks(
        lambda keyed: DeployedRetriever("keyed", keyed.ask, keyed.aask, keyed), lambda hit: hit, Hit, "hits"
    )
    keyed = Keyed("hunter2hunter2")
    ways = {
        "run": lambda: hooks.run_retriever(keyed, BENCHMARK, retries=0),
        "arun": lambda: asyncio.run(hooks.arun_retriever(keyed, BENCHMARK, retries=0)),
    }
    with pytest.warns(UserWarning, match="2 of 3 questions went unanswered") as warned:
        found = ways[way]()
    reason = "PermissionError: [secret] is wrong; so are [secret] and http://[secret]@host/a"
    assert found.failures == {"q1": reason, "q2": reason}
    assert "hunter2" not in str(warned[0].message)


def test_what_is_awaited_is_a_coroutine_function_and_suggests_its_options():
    hooks: RetrieverHooks[Keyed] = RetrieverHooks(lambda keyed: keyed, lambda hit: hit, Hit, "hits")  # type: ignore[arg-type,return-value]
    for ask in (hooks.arun_retriever, hooks.aevaluate_retriever):
        assert iscoroutinefunction(ask)
        with pytest.raises(OptionError, match="did you mean 'retries'"):
            asyncio.run(ask(Keyed("k"), BENCHMARK, retrys=1))  # type: ignore[call-arg]


@both
def test_questions_of_one_text_are_each_scored(way):
    queries = [*BENCHMARK.queries, Query("again", "tea", (Evidence("d", Span(12, 28)),))]
    report = evaluated(Toy(), way, benchmark=Benchmark("b", BENCHMARK.documents, queries), measures="Recall@5")
    assert report.values("Recall@5").tolist() == [1, 1, 1, 0]
    scorer = QuestionScorer(Benchmark("b", BENCHMARK.documents, queries))
    hits = [Hit(TEXT[:11], names=("d",))]
    assert scorer.scores("tea", hits, ["Recall@5"]) == [0.5]  # of both
    assert scorer.scores("again", hits, ["Recall@5"]) == [0]
    with pytest.raises(DataError, match="no question 'wine'"):
        scorer.scores("wine", hits, ["Recall@5"])


@both
def test_an_equal_budget_comes_first(way):
    names = [str(measure) for measure in evaluated(Toy(), way).scores]
    assert names[0] == "Recall@1000tok"
    assert "Recall@5" in names


class Summaries(Toy):
    """Answers mostly with what is in no document."""

    def ask(self, question: str) -> list[Hit]:
        lost = "A summary of it all, by a model.", "Another one of these.", "And a third."
        return [*super().ask(question), *map(Hit, lost)]


@both
def test_a_warning_has_the_share_of_answers_in_no_document(way):
    with pytest.warns(UserWarning, match=r"of 15 answers \(.* %\) stand in no document"):
        evaluated(Summaries(), way)


def test_a_method_that_is_not_indexed_says_how():
    for method in (get_retriever("bm25"), "bm25"):
        with pytest.raises(OptionError, match=r"retriever = get_retriever\('bm25'\)\.index\(corpus\)"):
            HOOKS.run_retriever(method, BENCHMARK)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="an index is scored by chunkcore's score"):
        HOOKS.run_retriever(get_retriever("bm25").index(chunk_corpus([], "sentence")), BENCHMARK)  # type: ignore[arg-type]


class Odd(Toy):
    """Gives no list at one question."""

    def ask(self, question: str) -> list[Hit]:
        return 7 if question == "fee" else super().ask(question)  # type: ignore[return-value]


@both
def test_an_odd_answer_is_named_and_the_others_count(way):
    with pytest.warns(UserWarning, match="1 of 3 questions went unanswered"):
        found = run(Odd(), way)
    assert found.failures == {"q2": "DataError: expected a list of hits, got a int"}
    assert len(found.results) == 2


@both
def test_the_filter_of_a_question_goes_to_the_retriever(way):
    queries = [Query(name, "tea", (Evidence("d", Span(0, 11)),), where={"tenant": name}) for name in "ab"]
    seen: list[str] = []

    def filtered(where):
        seen.append(where["tenant"])
        return DeployedRetriever("toy", Toy().ask, Toy().aask)

    hooks: RetrieverHooks[Toy] = RetrieverHooks(
        lambda toy: DeployedRetriever("toy", toy.ask, toy.aask, None, filtered), lambda hit: hit, Hit, "hits"
    )
    benchmark = Benchmark("b", BENCHMARK.documents, queries)
    ways = {
        "run": lambda: hooks.evaluate_retriever(Toy(), benchmark, measures="Recall@5"),
        "arun": lambda: asyncio.run(hooks.aevaluate_retriever(Toy(), benchmark, measures="Recall@5")),
    }
    assert ways[way]().mean("Recall@5") == 1
    assert seen == ["a", "b"]
    with pytest.raises(OptionError, match=r"question a has a filter \(where\), and toy takes none in a call"):
        HOOKS.run_retriever(Toy(), benchmark, retries=0)
    more_than_values: list[dict] = [
        {"tags": ["x", "y"]}, {"tenant": None}, {"year": {"$gt": 1}}, {"tenant": {"name": "a"}}, {"year": float("nan")}
    ]  # fmt: skip
    for where in more_than_values:
        queries = [Query("a", "tea", (Evidence("d", Span(0, 11)),), where=where)]
        with pytest.raises(OptionError, match="where"):
            hooks.run_retriever(Toy(), Benchmark("b", BENCHMARK.documents, queries))
    assert seen == ["a", "b"]


@both
def test_a_refused_option_is_not_tried_again_and_a_wrong_pool_is_told_first(way):
    calls = []

    class Refusing(Toy):
        def ask(self, question):
            calls.append(question)
            raise OptionError("k is 1 at least")

    with pytest.raises(OptionError, match="question q2: k is 1 at least"):
        run(Refusing(), way, retries=3, retry_wait=9)
    assert calls == QUESTIONS
    unasked = Toy()
    with pytest.raises(TypeError):
        run(unasked, way, pool=7)
    assert unasked.asked == []


PAGE = "<html><p>Never open the <em>lid</em> of the tank.</p>" + "<p>Turn the <code>valve</code>.</p>" * 20 + "</html>"
SEEN = "Valves\nNever open the lid of the tank.\n" + "Turn it to the left, by and by.\n" * 20


@pytest.mark.parametrize(("text", "expected"), [(SEEN, 1.0), (SEEN[40:] + SEEN, 0.0), (SEEN[40:], 0.0)])
def test_a_hit_of_another_loader_counts_for_the_evidence_that_it_quotes(text, expected):
    place = PAGE.index("Never"), PAGE.index("</p>")
    query = Query("q", "May I open it?", (Evidence("valves.html", Span(*place)),))
    benchmark = Benchmark("b", [Document("valves.html", PAGE)], [query])
    system = DeployedRetriever("app", lambda question: [Hit(text, names=("/srv/valves.html",))], Toy().aask)
    hooks: RetrieverHooks[DeployedRetriever] = RetrieverHooks(lambda system: system, lambda hit: hit, Hit, "hits")
    with pytest.warns(UserWarning, match=r"the text differs of valves\.html"):
        report = hooks.evaluate_retriever(system, benchmark, measures=["Recall@100tok", "Precision@5[character]"])
    assert report.mean("Recall@100tok") == expected  # words behind the cut do not count
    if expected:
        assert report.located == {"quoted": 1}
        seen = "Never open the", "lid", "of the tank."  # without the tags
        assert report.mean("Precision@5[character]") == pytest.approx(sum(map(len, seen)) / len(text))


D_COPY = {"source_id": "d", "start": 0, "end": 11}
COPIES = [D_COPY], [D_COPY | {"source_id": "/srv/d"}], [D_COPY | {"source_id": "5f", "file_path": "d", "page": 3}]


@pytest.mark.parametrize("also", [None, "x", [5], [{}], [D_COPY | {"end": 0}], [D_COPY | {"end": 10**30}], *COPIES])
def test_copies_that_another_program_states_are_no_places(also: object) -> None:
    class Copies(Toy):
        def ask(self, question: str) -> list[Hit]:
            place = StatedPlace((Span(0, 11),))
            return [Hit(TEXT[:11], 0.5, ("d",), place, metadata={"also_in": also})]

    copies = [piece.sources for piece in run(Copies()).results["q0"]]
    assert [bool(sources) for sources in copies] == [also in COPIES]


def test_one_document_is_told_to_stand_in_a_list() -> None:
    fields = [("page_content", "Tea is hot.")]  # pydantic's objects give these where they are iterated
    with pytest.raises(DataError, match="got tuple in it: put one document into a list"):
        core_documents(fields, str, "LangChain", lambda text: Document("tea", text))  # type: ignore[arg-type]
