"""LlamaIndex: an ingestion pipeline with a docstore embeds a document again only after the document has changed."""

from chunkadapters.llamaindex import ChunkcoreNodeParser
from chunkcore import load_dataset
from llama_index.core import Document, MockEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore


def main() -> None:
    documents = [
        Document(id_=document.id, text=document.text)  # ids of your own: a changed document keeps its id
        for document in load_dataset("lochmere").documents
    ]
    store = SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[ChunkcoreNodeParser("recursive:size=200"), MockEmbedding(embed_dim=64)],  # your embeddings
        docstore=SimpleDocumentStore(),  # pipeline.persist(folder) keeps it for the next run
        docstore_strategy=DocstoreStrategy.UPSERTS,
        vector_store=store,
        disable_cache=True,
    )

    def run(what: str) -> None:
        nodes = pipeline.run(documents=documents)
        print(f"{what}: {len(nodes)} nodes embedded, {len(store.data.embedding_dict)} in the store")

    run("first run")
    run("nothing changed")
    documents[0] = Document(id_=documents[0].id_, text="A notice in front.\n\n" + documents[0].text)
    run("one document changed")


if __name__ == "__main__":
    main()
