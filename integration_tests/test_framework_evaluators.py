"""Span measures in each framework's own evaluation style: the same numbers as `evaluate_retriever`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from integration_tests.toys import BENCHMARK, TEXTS

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

SIZES = {"size": 12, "overlap": 0, "counter": "words"}
MEASURES = ["Recall@3", "Precision@3", "IoU@3", "F1@3"]


def rows(report: Any) -> list[list[float]]:
    return [[float(value) for value in report.values(measure)] for measure in MEASURES]


def langchain_retriever() -> Any:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import ChunkcoreEmbeddings, ChunkcoreTextSplitter
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore
    from tests.fakes import FakeEmbedder

    documents = [Document(page_content=text, metadata={"source": name}) for name, text in TEXTS.items()]
    store = InMemoryVectorStore(ChunkcoreEmbeddings(FakeEmbedder()))
    store.add_documents(ChunkcoreTextSplitter("recursive", **SIZES).split_documents(documents))
    return store.as_retriever(search_kwargs={"k": 3})


def test_langsmith_s_evaluators():
    evaluation = pytest.importorskip("langsmith.evaluation", reason="langsmith is not installed")
    retriever = langchain_retriever()
    import uuid
    from datetime import datetime, timezone

    from chunkadapters.langchain import evaluate_retriever, langsmith_evaluator
    from langsmith.schemas import Example, Run

    expected = rows(evaluate_retriever(retriever, BENCHMARK, measures=MEASURES))
    evaluator = evaluation.run_evaluator(langsmith_evaluator(BENCHMARK, MEASURES))
    now = datetime.now(timezone.utc)
    for place, query in enumerate(BENCHMARK.queries):
        said = {"inputs": {"question": query.text}, "outputs": {"documents": retriever.invoke(query.text)}}
        run = Run(id=uuid.uuid4(), name="app", run_type="chain", start_time=now, trace_id=uuid.uuid4(), **said)
        example = Example(id=uuid.uuid4(), dataset_id=uuid.uuid4(), inputs=run.inputs, created_at=now)
        told = evaluator.evaluate_run(run, example)["results"]
        assert [each.key for each in told] == MEASURES
        assert [each.score for each in told] == [row[place] for row in expected]


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({"question": "wine"}, {"documents": []}, "the benchmark has no question 'wine'"),
        ({"question": "espresso"}, {"documents": [{"text": "tea"}]}, "expected a document with page_content"),
        ({"question": "espresso"}, {"documents": ["tea"]}, "expected LangChain documents, got a str among the answers"),
        ({"question": "espresso"}, {}, "expected 'documents' in the example, got nothing: did the app fail?"),
    ],
)
def test_langsmith_s_evaluators_tell_what_is_missing(inputs, outputs, message):
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import langsmith_evaluator

    with pytest.raises(ValueError, match=message):
        langsmith_evaluator(BENCHMARK)(inputs, outputs)


def test_haystack_s_evaluator():
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreDocumentSplitter, ChunkcoreSpanEvaluator, evaluate_retriever
    from haystack import Pipeline
    from haystack.components.retrievers import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.evaluation import EvaluationRunResult

    documents = [haystack.Document(id=name, content=text) for name, text in TEXTS.items()]
    store = InMemoryDocumentStore()
    splitter = ChunkcoreDocumentSplitter("recursive", options=SIZES)
    store.write_documents(splitter.run(documents)["documents"])
    retriever = InMemoryBM25Retriever(store, top_k=3)
    expected = rows(evaluate_retriever(retriever, BENCHMARK, measures=MEASURES))
    questions = [query.text for query in BENCHMARK.queries]
    answers = [retriever.run(query=question)["documents"] for question in questions]

    pipeline = Pipeline()
    for measure in MEASURES:
        pipeline.add_component(measure.replace("@", "_at_"), ChunkcoreSpanEvaluator(BENCHMARK, measure))
    given = {"questions": questions, "retrieved_documents": answers}
    told = pipeline.run({measure.replace("@", "_at_"): given for measure in MEASURES})
    for measure, values in zip(MEASURES, expected, strict=True):
        found = told[measure.replace("@", "_at_")]
        assert found["individual_scores"] == values
        assert found["score"] == pytest.approx(sum(values) / len(values))
    result = EvaluationRunResult("drinks", inputs={"question": questions}, results=told)
    assert "Recall_at_3" in str(result.aggregated_report(output_format="json"))


def test_haystack_s_evaluator_in_yaml_and_bad_input():
    pytest.importorskip("haystack", reason="haystack-ai is not installed")
    from chunkadapters.haystack import ChunkcoreSpanEvaluator
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("iou", ChunkcoreSpanEvaluator("lochmere", "IoU@5"))
    assert Pipeline.loads(pipeline.dumps()).get_component("iou").measure == "IoU@5"
    evaluator = ChunkcoreSpanEvaluator(BENCHMARK)
    with pytest.raises(ValueError, match="cannot be written down"):
        evaluator.to_dict()
    wrong = [("green tea", [], "shorter"), ("wine", [[]], "no question"), ("wine", [["tea"]], "a list of Documents")]
    for question, answers, message in wrong:
        with pytest.raises((ValueError, TypeError), match=message):
            evaluator.run([question], answers)
    for benchmark, measure in (("no such", "Recall@5"), (5, "Recall@5"), (BENCHMARK, "Recal@5")):
        with pytest.raises(ValueError, match=r"no such|expected a Benchmark|Recal"):
            ChunkcoreSpanEvaluator(benchmark, measure)


def test_langsmith_measures_are_checked_when_the_evaluator_is_built():
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from chunkadapters.langchain import langsmith_evaluator

    with pytest.raises(ValueError, match="Foo"):
        langsmith_evaluator(BENCHMARK, ["Foo"])
    told = langsmith_evaluator(BENCHMARK, "Recall@5")({"question": BENCHMARK.queries[0].text}, {"documents": []})
    assert told == {"results": [{"key": "Recall@5", "score": 0.0}]}
