"""LangGraph: an agent whose tool answers with passages, in place of whole chunks."""

from chunkadapters.langchain import ChunkcoreTextSplitter, PassageRetriever
from chunkcore import load_dataset
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

QUESTION = "How many days of samples does the buoy keep in its memory?"


def make_retriever() -> BaseRetriever:
    documents = [
        Document(page_content=document.text, metadata={"source": document.id})
        for document in load_dataset("lochmere").documents
    ]
    chunks = ChunkcoreTextSplitter("recursive:size=200").split_documents(documents)
    store = InMemoryVectorStore.from_documents(
        chunks, DeterministicFakeEmbedding(size=64)
    )  # your store, your embeddings
    return PassageRetriever(store.as_retriever(search_kwargs={"k": 10}), documents=documents, max_tokens=500)


def main() -> None:
    tool = create_retriever_tool(make_retriever(), "search_documents", "Finds passages about the Lochmere buoys.")
    call = {"name": "search_documents", "args": {"query": QUESTION}, "id": "call-1"}
    replies = [AIMessage("", tool_calls=[call]), AIMessage("The answer is in the passages above.")]
    model = GenericFakeChatModel(messages=iter(replies))  # yours: ChatOpenAI(...).bind_tools([tool])

    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    for message in graph.compile().invoke({"messages": [("user", QUESTION)]})["messages"]:
        print(f"{message.type}: {message.text}")


if __name__ == "__main__":
    main()
