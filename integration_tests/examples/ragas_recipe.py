"""ragas: its test set becomes a benchmark, and a retriever's answers become its records. ragas is not needed."""

import json

from chunkcore import Benchmark, chunk_corpus, get_retriever, load_benchmark, load_dataset


def to_testset(benchmark: Benchmark) -> list[dict[str, object]]:
    """Rows as ``testset.to_list()`` of ragas gives them."""
    texts = {document.id: document.text for document in benchmark.documents}
    return [
        {
            "user_input": query.text,
            "reference_contexts": [
                texts[evidence.document_id][evidence.span.start : evidence.span.end] for evidence in query.evidence
            ],
            "reference": str(query.metadata.get("answer", "")),
        }
        for query in benchmark.queries
    ]


def main() -> None:
    lochmere = load_dataset("lochmere")
    testset = to_testset(lochmere)

    benchmark = load_benchmark(lochmere.documents, testset, name="testset")  # each context is found in the documents
    print(f"{len(benchmark.queries)} of {len(testset)} questions have their evidence")
    for problem in benchmark.problems[:2]:
        print(f"left out: {problem.reason}")

    retriever = get_retriever("passages:lexical").index(chunk_corpus(benchmark.documents, "sentence:size=50"))
    records = [  # for ragas: EvaluationDataset.from_list(records)
        row | {"retrieved_contexts": [passage.text for passage in retriever.retrieve(row["user_input"], 5)]}
        for row in testset
    ]
    print(json.dumps(records[0], indent=1))


if __name__ == "__main__":
    main()
