"""Ask back where the answer is not in the documents: python enough_recipe.py langgraph, or haystack."""

import sys
from typing import TypedDict

from chunkcore import chunk_corpus, get_retriever, load_dataset
from chunkcore.retrieval import WindowIndex
from chunkcore.study import calibrate

QUESTIONS = ("How many days of samples does the buoy keep in its memory?", "Which wine goes with grilled salmon?")
REFUSAL = "That is not in the documents. What do you mean by: "


def make_index() -> WindowIndex:
    lochmere = load_dataset("lochmere")
    index = get_retriever("passages:lexical").index(chunk_corpus(lochmere.documents, "sentence:size=50"))
    return calibrate(index, lochmere, miss=0.2, refuse=0.2)  # once; then save it, and load_index


def ask_back(index: WindowIndex, question: str) -> str:
    return REFUSAL + ", ".join(index.missing_words(question, index.retrieve(question, max_tokens="auto")))


class State(TypedDict, total=False):
    question: str
    answer: str


def with_langgraph(index: WindowIndex) -> None:
    from langgraph.graph import END, START, StateGraph

    def passages(state: State) -> State:  # a model answers from them
        found = index.retrieve(state["question"], max_tokens="auto")
        return {"answer": "\n".join(passage.text for passage in found)}

    def refuse(state: State) -> State:
        return {"answer": ask_back(index, state["question"])}

    graph = StateGraph(State)
    graph.add_node("passages", passages)
    graph.add_node("refuse", refuse)
    graph.add_conditional_edges(
        START, lambda state: "passages" if index.is_related(state["question"]) else "refuse", ["passages", "refuse"]
    )
    graph.add_edge("passages", END)
    graph.add_edge("refuse", END)
    for question in QUESTIONS:
        print(graph.compile().invoke({"question": question})["answer"])


def with_haystack(index: WindowIndex) -> None:
    from chunkadapters.haystack import ChunkcoreIndexRetriever
    from haystack import Pipeline
    from haystack.components.routers import ConditionalRouter

    pipeline = Pipeline()
    route = {"output": "{{question}}", "output_type": str}
    routes = [
        {"condition": "{{related}}", "output_name": "related", **route},
        {"condition": "{{not related}}", "output_name": "unrelated", **route},
    ]
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.add_component("passages", ChunkcoreIndexRetriever(index, max_tokens="auto"))
    pipeline.connect("router.related", "passages.query")
    for question in QUESTIONS:
        result = pipeline.run({"router": {"question": question, "related": index.is_related(question)}})
        if "passages" in result:
            print("\n".join(passage.content for passage in result["passages"]["documents"]))
        else:
            print(ask_back(index, question))


if __name__ == "__main__":
    {"langgraph": with_langgraph, "haystack": with_haystack}[sys.argv[1]](make_index())
