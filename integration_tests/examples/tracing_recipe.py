"""LangSmith, Langfuse, Phoenix: the passages and scores of a question as the records that each platform takes."""

import json

from chunkadapters.langchain import IndexRetriever, langsmith_evaluator
from chunkcore import load_dataset
from langchain_core.documents import Document


def span_attributes(question: str, passages: list[Document]) -> dict[str, str]:
    """The attributes of a retriever's span by OpenInference, which Phoenix reads."""
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for rank, passage in enumerate(passages):
        place = f"retrieval.documents.{rank}.document"
        attributes[f"{place}.content"] = passage.page_content
        attributes[f"{place}.metadata"] = json.dumps(passage.metadata)
    return attributes


def main() -> None:
    benchmark = load_dataset("lochmere")
    retriever = IndexRetriever(documents=list(benchmark.documents), max_tokens=1000)  # or yours
    evaluator = langsmith_evaluator(benchmark, ["Recall@1000tok", "Precision@1000tok"])
    for query in benchmark.queries[:3]:
        passages = retriever.invoke(query.text)
        # LangSmith calls the evaluator: client.evaluate(app, data="lochmere", evaluators=[evaluator])
        scores = evaluator({"question": query.text}, {"documents": passages})["results"]
        # langfuse.create_score(trace_id=trace_id, **record)
        langfuse = [{"name": score["key"], "value": score["score"], "data_type": "NUMERIC"} for score in scores]
        # client.spans.log_span_annotations(span_annotations=[record | {"span_id": span_id}])
        phoenix = [
            {"name": score["key"], "annotator_kind": "CODE", "result": {"score": score["score"]}} for score in scores
        ]
        span = span_attributes(query.text, passages)
        print(json.dumps({"span": span, "langsmith": scores, "langfuse": langfuse, "phoenix": phoenix}))


if __name__ == "__main__":
    main()
