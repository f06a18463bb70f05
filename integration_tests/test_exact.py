"""`exact`: what the user's configured splitter gives, text for text, with offsets that are right or unknown."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import pytest

pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from chunkadapters.exact import Aligned, exact, exact_chunker
from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkadapters.langchain import ChunkcoreTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser, PlacedNodeParser
from chunkadapters.llamaindex.retrieval import hit_of
from chunkcore import Chunk, DataError, Document, get_chunker
from chunkcore.locating import Locator
from chunkcore.tokens import TiktokenCounter
from haystack import Document as HaystackDocument
from haystack.components.preprocessors import DocumentSplitter, HierarchicalDocumentSplitter, RecursiveDocumentSplitter
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import (
    CharacterTextSplitter,
    HTMLHeaderTextSplitter,
    LatexTextSplitter,
    MarkdownHeaderTextSplitter,
    MarkdownTextSplitter,
    PythonCodeTextSplitter,
    RecursiveCharacterTextSplitter,
    RecursiveJsonSplitter,
    TextSplitter,
    TokenTextSplitter,
)
from llama_index.core import Document as LlamaDocument
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    HTMLNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
)
from llama_index.core.node_parser import TokenTextSplitter as LlamaTokenTextSplitter
from llama_index.core.utils import globals_helper
from tests.conftest import shared

pytestmark = pytest.mark.peers

# No look-alikes of special tokens: LangChain raises at them, LlamaIndex counts them as one; here they are text.
SPECIAL = re.compile(r"<\|(?:endoftext|endofprompt|fim_\w+)\|>")


@pytest.fixture(scope="module", autouse=True)
def _files_at_hand() -> None:
    """What the originals would download: nltk's sentences, which ship with LlamaIndex, and tiktoken's encodings."""
    assert globals_helper.punkt_tokenizer  # asking for it tells nltk where it is
    for encoding in ("cl100k_base", "o200k_base"):
        _ = TiktokenCounter(encoding).encoding


def plain(text: str) -> str:
    """Without what the originals can't read: unpaired surrogates, and look-alikes of special tokens."""
    return SPECIAL.sub("", "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text))


@lru_cache(maxsize=1)
def real_texts() -> list[str]:
    folder = shared("data/chroma/corpora")
    found = [path.read_text(encoding="utf-8")[:20_000] for path in sorted(folder.rglob("*.md"))]
    for name in ("cuad", "qmsum", "covid_qa"):
        with shared(f"data/{name}/documents.jsonl").open(encoding="utf-8") as lines:
            found.append(json.loads(next(lines))["text"][:20_000])
    found.append(f"<html><body><p>{found[0].replace('.', '.</p><p>')[:9000]}</p></body></html>")
    return found


def check(original: list[str], chunks: list[Chunk], text: str, *, joiner: str = "") -> None:
    """Text for text, and each chunk where it says it is."""
    assert [chunk.text for chunk in chunks] == original
    begins = [chunk.start for chunk in chunks]
    assert begins == sorted(begins)
    for chunk in chunks:
        if not chunk.derived:
            assert joiner.join(span.slice(text) for span in chunk.spans) == chunk.text


def cut(splitter: Any, text: str) -> list[Chunk]:
    return exact_chunker(splitter).chunk(Document("d", text))


# --- LangChain ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls", [RecursiveCharacterTextSplitter, MarkdownTextSplitter, LatexTextSplitter, PythonCodeTextSplitter]
)
def test_langchain_recursive_and_what_is_made_of_it(cls: type[RecursiveCharacterTextSplitter]) -> None:
    for size, overlap in ((300, 50), (90, 0)):
        splitter = cls(chunk_size=size, chunk_overlap=overlap)
        for text in real_texts():
            check(splitter.split_text(text), cut(splitter, text), text)


def test_langchain_splitters_by_tokens() -> None:
    for splitter in (
        RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=100, chunk_overlap=20),
        CharacterTextSplitter.from_tiktoken_encoder("o200k_base", chunk_size=80, chunk_overlap=0, separator="\n"),
        TokenTextSplitter("cl100k_base", chunk_size=60, chunk_overlap=30),
    ):
        for text in real_texts():
            if splitter.split_text(text) != [chunk.text for chunk in cut(splitter, text)]:
                assert isinstance(splitter, TokenTextSplitter)  # it cuts characters, and writes U+FFFD
                assert "\ufffd" in "".join(splitter.split_text(text))
        for chunk in exact(splitter).split_documents([LangChainDocument(page_content=text, metadata={"source": "a"})]):
            if "spans" not in chunk.metadata:  # several separators between its pieces, where the original wrote one
                assert text[chunk.metadata["start_index"] : chunk.metadata["end_index"]] == chunk.page_content


def test_a_length_function_of_the_users_own_is_asked() -> None:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=5, chunk_overlap=1, length_function=lambda text: text.count("e")
    )
    text = real_texts()[0][:4000]
    check(splitter.split_text(text), cut(splitter, text), text)


class Shouting(CharacterTextSplitter):
    def split_text(self, text: str) -> list[str]:
        return text.upper().split(". ")


class Bare(TextSplitter):
    split_text = Shouting.split_text  # type: ignore[assignment]


@pytest.mark.parametrize("splitter", [Shouting(), Bare()])
def test_a_splitter_that_is_not_known_cuts_as_it_does_and_is_found_in_order(splitter: TextSplitter) -> None:
    text = "The fox naps here. The dog ran off.\n\nThe fox naps here. The cat sat down."
    chunks = cut(splitter, text)
    assert chunks[0].text == "THE FOX NAPS HERE"
    assert [chunk.start for chunk in chunks] == [0, 19, 56]
    assert chunks[0].derived
    assert chunks[0].metadata["located"] in ("order", "folded")


# --- LlamaIndex -----------------------------------------------------------------------------------------------


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def words(text: str) -> list[str]:
    return text.split()


LLAMA = [
    SentenceSplitter(chunk_size=256, chunk_overlap=64),
    SentenceSplitter(chunk_size=60, chunk_overlap=0, paragraph_separator="\n\n"),
    SentenceSplitter(chunk_size=30, chunk_overlap=30, secondary_chunking_regex="[^,]+,?"),
    SentenceSplitter(chunk_size=40, chunk_overlap=10, tokenizer=words, secondary_chunking_regex=None),
    SentenceSplitter(chunk_size=50, chunk_overlap=5, chunking_tokenizer_fn=lines),
    LlamaTokenTextSplitter(chunk_size=100, chunk_overlap=20),
    LlamaTokenTextSplitter(chunk_size=25, chunk_overlap=25, separator="\n", backup_separators=[". ", " "]),
    LlamaTokenTextSplitter(chunk_size=30, chunk_overlap=0, keep_whitespaces=True),
]


@pytest.mark.parametrize("splitter", LLAMA, ids=lambda each: f"{type(each).__name__}-{each.chunk_size}")
def test_llamaindex_on_real_texts(splitter: Any) -> None:
    for text in real_texts():
        text = plain(text[:10_000])
        check(splitter.split_text(text), cut(splitter, text), text)


def test_a_function_that_gives_empty_sentences_does_not_hang() -> None:
    splitter = SentenceSplitter(
        chunk_size=3, chunk_overlap=0, tokenizer=words, chunking_tokenizer_fn=lambda text: [text, ""]
    )
    assert [chunk.text for chunk in cut(splitter, "one two three four")] == ["one two three", "four"]


@pytest.mark.parametrize("cls", [SentenceSplitter, LlamaTokenTextSplitter])
def test_metadata_take_their_room_as_in_the_original(cls: Any) -> None:
    parser = cls(chunk_size=120, chunk_overlap=110)
    text = plain(real_texts()[0][:8000])
    documents = [
        LlamaDocument(text=text, metadata={"file_path": "a/long/way/to/the/file.md", "author": "Someone Else"}),
        LlamaDocument(text=text, metadata={"author": "Me"}, excluded_embed_metadata_keys=["author"]),
        LlamaDocument(text=text),
    ]
    ours, theirs = (each.get_nodes_from_documents(documents) for each in (exact(parser), parser))
    assert [node.text for node in ours] == [node.text for node in theirs]
    for node in ours:
        assert text[node.start_char_idx : node.end_char_idx] == node.text


def test_parents_and_children_stay_and_children_are_placed_in_their_parents() -> None:
    text = "Tea is hot. Tea is hot. Milk is cold. " * 6 + "The end."
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[60, 15], chunk_overlap=0)
    nodes = exact(parser).get_nodes_from_documents([LlamaDocument(text=text)])
    parents = {node.node_id: node for node in nodes if node.child_nodes}
    children = [node for node in nodes if node.parent_node]
    assert len(parents) > 1
    assert {child.node_id for node in parents.values() for child in node.child_nodes} == {c.node_id for c in children}
    known = [node for node in nodes if node.start_char_idx is not None]
    assert {node.text for node in known} >= {node.text for node in parents.values()}
    for node in known:
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        if parent := parents.get(getattr(node.parent_node, "node_id", "")):
            assert parent.start_char_idx <= node.start_char_idx < node.end_char_idx <= parent.end_char_idx


def test_what_a_parser_writes_into_its_nodes_stays() -> None:
    windows = exact(SentenceWindowNodeParser.from_defaults(window_size=1))
    assert [chunk.start for chunk in cut(windows.parser, "A \ud800 naps. The fox runs.")] == [0, 10]
    text = "The fox naps. The dog runs. The fox naps. The end."
    nodes = windows.get_nodes_from_documents([LlamaDocument(text=text, id_="d")])
    assert [node.start_char_idx for node in nodes] == [0, 14, 28, 42]
    assert {Locator({"d": Document("d", text)}).locate(hit_of(node)).kind for node in nodes} == {"placed"}
    assert nodes[0].metadata["window"].split() == ["The", "fox", "naps.", "The", "dog", "runs."]
    assert {"window", "original_text"} <= set(nodes[0].excluded_llm_metadata_keys)
    parser = PlacedNodeParser.from_dict(exact(MarkdownNodeParser()).to_dict())
    (first, second) = parser.get_nodes_from_documents([LlamaDocument(text="# A\n\nTea.\n\n## B\n\nSea.")])
    assert [first.metadata["header_path"], second.metadata["header_path"]] == ["/", "/A/"]
    assert (first.start_char_idx, second.start_char_idx) == (0, 11)


def test_nodes_of_a_chain_are_placed_in_the_document() -> None:
    document = LlamaDocument(text="# A\n\nTea is hot. Tea is hot.\n\n# B\n\nTea is hot.", id_="a")
    sections = MarkdownNodeParser().get_nodes_from_documents([document])
    nodes = exact(SentenceWindowNodeParser.from_defaults()).get_nodes_from_documents(sections)
    assert [node.start_char_idx for node in nodes][-1] == document.text.rindex("# B")
    assert all(document.text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)


# --- Haystack -------------------------------------------------------------------------------------------------


HAYSTACK: list[Callable[[], Any]] = [
    lambda: DocumentSplitter(split_by="word", split_length=30, split_overlap=10, split_threshold=15),
    lambda: DocumentSplitter(split_by="line", split_length=3, split_overlap=1),
    lambda: DocumentSplitter(split_by="period", split_length=4, split_overlap=3, split_threshold=4),
    lambda: DocumentSplitter(split_by="sentence", split_length=5, split_overlap=1),
    lambda: DocumentSplitter(split_by="word", split_length=40, split_overlap=15, respect_sentence_boundary=True),
    lambda: RecursiveDocumentSplitter(split_length=40),
    lambda: RecursiveDocumentSplitter(split_length=200, split_overlap=50, split_unit="char"),
    lambda: RecursiveDocumentSplitter(split_length=60, split_overlap=20, split_unit="token"),
]


def check_haystack(number: int, text: str) -> int:
    """Texts, ids and metadata are the splitter's, places are right or absent; how many are absent."""
    theirs, ours = HAYSTACK[number](), exact(HAYSTACK[number]())
    theirs.warm_up()
    document = HaystackDocument(content=text, meta={"title": "T"})
    before, after = (each.run(documents=[document])["documents"] for each in (theirs, ours))
    assert [(row.id, row.content) for row in after] == [(row.id, row.content) for row in before]
    unknown = 0
    for row in after:
        assert row.meta["title"] == "T"
        start, end = row.meta.get("split_idx_start"), row.meta.get("split_idx_end")
        unknown += start is None
        if start is not None and not row.meta.get("derived"):
            assert text[start:end] == row.content
            assert row.meta["page_number"] == 1 + text.count(
                "\f", 0, start + len(row.content) - len(row.content.lstrip("\f"))
            )
    return unknown


@pytest.mark.parametrize("number", range(len(HAYSTACK)))
def test_haystack_on_real_texts(number: int) -> None:
    assert sum(check_haystack(number, text[:10_000]) for text in real_texts()) == 0


def test_where_two_places_fit_none_is_claimed() -> None:
    splitter = DocumentSplitter(split_by="function", splitting_function=repeated)
    text = "la la la la la la"
    chunks = exact(splitter).run([HaystackDocument(content=text)])["documents"]
    assert [chunk.content for chunk in chunks] == ["la la"]
    assert "split_idx_start" not in chunks[0].meta
    assert chunks[0].meta["located"] == "ambiguous"
    (document,) = ChunkcoreTextSplitter(Aligned(split=repeated)).create_documents([text])
    assert (document.metadata["start_index"], document.metadata["located"]) == (-1, "ambiguous")


def repeated(text: str) -> list[str]:
    return ["la la"]


def test_a_haystack_splitter_is_written_into_yaml() -> None:
    from haystack import Pipeline
    from haystack.components.preprocessors import MarkdownHeaderSplitter

    pipeline = Pipeline()
    pipeline.add_component("splitter", exact(DocumentSplitter(split_by="word", split_length=3)))
    pipeline.add_component("headers", exact(MarkdownHeaderSplitter()))  # which has no `to_dict`
    documents = [HaystackDocument(content="one two one two one two")]
    inputs = {name: {"documents": documents} for name in ("splitter", "headers")}
    chunks = Pipeline.loads(pipeline.dumps()).run(inputs)["splitter"]["documents"]
    assert [(row.meta["split_idx_start"], row.meta["split_idx_end"]) for row in chunks] == [(0, 12), (12, 23)]


def test_a_hierarchy_of_haystack_keeps_its_links() -> None:
    text = "One two three four. Five six seven eight. Nine ten."
    splitter = HierarchicalDocumentSplitter(block_sizes={4, 2}, split_overlap=0, split_by="word")
    documents = exact(splitter).run([HaystackDocument(content=text)])["documents"]
    by_id = {document.id: document for document in documents}
    for document in documents[1:]:
        parent = by_id[document.meta["__parent_id"]]
        assert document.id in parent.meta["__children_ids"]
        assert parent.content[document.meta["split_idx_start"] : document.meta["split_idx_end"]] == document.content


def test_overlaps_are_in_the_neighbours_characters() -> None:
    splitter = exact(DocumentSplitter(split_by="word", split_length=3, split_overlap=1))
    first, second = splitter.run([HaystackDocument(content="one two three four five")])["documents"]
    for chunk, neighbour in ((first, second), (second, first)):
        (overlap,) = chunk.meta["_split_overlap"]
        assert overlap["doc_id"] == neighbour.id
        assert neighbour.content[slice(*overlap["range"])] == "three "


def test_langchains_headings_come_with_the_places_of_what_stands_under_them() -> None:
    text = "# Tea\n\nIt is green.\n\n## Black\n\nIt is green.\nNo, black.\n"
    original = MarkdownHeaderTextSplitter([("#", "title"), ("##", "part")])
    found = exact(original).create_documents([text])
    assert [each.page_content for each in found] == [each.page_content for each in original.split_text(text)]
    places = [slice(each.metadata["start_index"], each.metadata["end_index"]) for each in found]
    assert list(map(text.__getitem__, places)) == ["It is green.", "It is green.\nNo, black."]
    assert found[1].metadata["start_index"] == text.rindex("It is")
    assert [(each.metadata["title"], each.metadata.get("part")) for each in found] == [("Tea", None), ("Tea", "Black")]


def test_a_documents_own_heading_is_not_overwritten_by_the_splitters() -> None:
    document = LangChainDocument(page_content="# Tea\n\nIt is green.", metadata={"title": "Drinks"})
    (found,) = exact(MarkdownHeaderTextSplitter([("#", "title")])).split_documents([document])
    assert (found.metadata["title"], found.metadata["chunk_title"]) == ("Drinks", "Tea")


# --- all ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: exact("recursive"), r"expected a configured LangChain TextSplitter.* got str"),
        (lambda: exact(RecursiveJsonSplitter()), r"expected a splitter of texts.*RecursiveJsonSplitter"),
        (lambda: exact(LlamaDocument(text="a")), "expected a"),
        (lambda: exact(InMemoryBM25Retriever(InMemoryDocumentStore())), "expected a"),
        (lambda: Aligned(split="a"), "split is a function"),
        (lambda: Aligned(split=lambda text: [7]).chunk(Document("d", "text")), "expected the splitter to give texts"),  # type: ignore[list-item]
        (
            lambda: cut(
                SentenceSplitter(chunk_size=2, chunk_overlap=0, secondary_chunking_regex="(a+)(b+)"), "aab aab aab aab"
            ),
            "one group at most",
        ),
        (
            lambda: exact(SentenceSplitter(chunk_size=10, chunk_overlap=0))(
                [LlamaDocument(text="One.", metadata={"path": "a/b/c/d/e/f/g/h/i"})]
            ),
            r"the metadata count \d+, which leaves nothing of size=10",
        ),
    ],
)
def test_what_cuts_no_text_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            partial(Shouting, separator=" ", chunk_size=9, chunk_overlap=0),
            partial(Shouting, separator="\n", chunk_size=9, chunk_overlap=0),
        ),
        (SentenceWindowNodeParser, MarkdownNodeParser),
        (
            lambda: DocumentSplitter(split_by="function", splitting_function=str.split),
            lambda: DocumentSplitter(split_by="function", splitting_function=str.splitlines),
        ),
        (lambda: MarkdownHeaderTextSplitter([("#", "a")]), lambda: MarkdownHeaderTextSplitter([("#", "b")])),
    ],
    ids=["option", "class", "function", "headings"],
)
def test_what_cuts_otherwise_has_another_fingerprint(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    assert exact_chunker(first()).fingerprint == exact_chunker(first()).fingerprint
    assert exact_chunker(first()).fingerprint != exact_chunker(second()).fingerprint


def test_a_key_makes_no_other_fingerprint() -> None:
    first, second = (Shouting(separator=" ", chunk_size=9, chunk_overlap=0) for _ in range(2))
    first.api_key, second.api_key = "sk-one", "sk-two"
    assert exact_chunker(first).fingerprint == exact_chunker(second).fingerprint


@pytest.mark.parametrize(
    "splitter",
    [
        RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=20, chunk_overlap=0),
        CharacterTextSplitter(separator=" ", chunk_size=20, chunk_overlap=0),
        LLAMA[0],
        LLAMA[5],
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_exact_chunker_survives_a_pickle_and_its_own_dictionary(splitter: Any) -> None:
    chunker = exact_chunker(splitter)
    text = "One is here. Two is here. " * 40
    assert pickle.loads(pickle.dumps(chunker)).split_text(text) == chunker.split_text(text)
    options = chunker.to_dict()
    assert get_chunker(options.pop("name"), **options).split_text(text) == chunker.split_text(text)


def test_what_is_nowhere_has_no_place_in_any_framework() -> None:
    text = "Tea is hot, and milk is cold."
    chunker = Aligned(split=made_up)
    chunks = chunker.chunk(Document("d", text))
    assert [chunk.text for chunk in chunks] == ["Tea ", "qqq zzz", "cold."]
    assert (chunks[1].derived, chunks[1].metadata["located"]) == (True, "unlocated")
    assert [(span.start, span.end) for span in chunks[1].spans] == [(4, len(text) - 5)]
    documents = ChunkcoreTextSplitter(chunker).create_documents([text])
    assert [row.metadata["start_index"] for row in documents] == [0, -1, len(text) - 5]
    nodes = ChunkcoreNodeParser(chunker).get_nodes_from_documents([LlamaDocument(text=text)])
    assert [node.start_char_idx for node in nodes] == [0, None, len(text) - 5]
    rows = ChunkcoreDocumentSplitter(chunker).run([HaystackDocument(content=text)])["documents"]
    assert [row.meta.get("split_idx_start") for row in rows] == [0, None, len(text) - 5]
    with pytest.raises(DataError, match="stands nowhere"):
        Aligned(split=made_up, unplaced="refuse").chunk(Document("d", text))


def test_pieces_of_a_page_are_placed_or_marked() -> None:
    pytest.importorskip("bs4", reason="beautifulsoup4 is not installed")
    page = "<html><body><h1>Tea</h1><p>It is <b>hot</b> and <i>green</i>.</p><p>Coffee is long.</p></body></html>"
    splitter = HTMLHeaderTextSplitter([("h1", "one"), ("h2", "two")])
    chunks = exact(splitter).create_documents([page])
    assert [chunk.page_content for chunk in chunks] == [chunk.page_content for chunk in splitter.split_text(page)]
    assert page[chunks[0].metadata["start_index"] : chunks[0].metadata["end_index"]] == "Tea"
    parser = HTMLNodeParser(tags=["h1", "p"])
    document = LlamaDocument(text=page)
    theirs, placed = (each.get_nodes_from_documents([document]) for each in (parser, exact(parser)))
    assert [(node.text, node.metadata["tag"]) for node in placed] == [(n.text, n.metadata["tag"]) for n in theirs]
    assert placed[0].start_char_idx == page.index("Tea")


def test_a_parser_that_exact_wrote_is_loaded_where_nobody_asked_for_exact() -> None:
    data = json.dumps(exact(LLAMA[0]).to_dict())
    program = (
        "import json, sys; from chunkadapters.llamaindex import ChunkcoreNodeParser; "
        "print(ChunkcoreNodeParser.from_dict(json.loads(sys.argv[1])).chunker.name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, data], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "llamaindex_sentence"


def made_up(text: str) -> list[str]:
    return [text[:4], "qqq zzz", text[-5:]]


def test_an_empty_separator_parts_nothing() -> None:
    text = "The fox naps here. The dog ran off, and the cat sat down."
    for splitter in (
        SentenceSplitter(separator="", chunk_size=60, chunk_overlap=0),
        LlamaTokenTextSplitter(separator="", chunk_size=60, chunk_overlap=0),
    ):
        check(splitter.split_text(text), cut(splitter, text), text)
    long = "naps" * 30
    small = SentenceSplitter(separator="", chunk_size=8, chunk_overlap=0, secondary_chunking_regex=None)
    assert "".join(chunk.text for chunk in cut(small, long)) == long  # the original raises ValueError


def test_groups_of_a_kept_expression_change_nothing() -> None:
    text = "one1two22three"
    for keep, wanted in (("start", ["one", "1two", "22three"]), ("end", ["one1", "two22", "three"])):
        options: Any = {"is_separator_regex": True, "keep_separator": keep, "chunk_size": 5, "chunk_overlap": 0}
        grouped, plainly = (CharacterTextSplitter(separator=each, **options) for each in (r"(\d)+", r"\d+"))
        assert exact(grouped).split_text(text) == exact(plainly).split_text(text) == wanted


@pytest.mark.parametrize("splitter", [CharacterTextSplitter, RecursiveCharacterTextSplitter])
def test_no_chunk_holds_the_expression_or_glued_words(splitter: Any) -> None:
    text = "red  fox\n\nblue owl and crow"
    separator = {"separators": [r"\s+"]} if splitter is RecursiveCharacterTextSplitter else {"separator": r"\s+"}
    original = splitter(**separator, is_separator_regex=True, keep_separator=False, chunk_size=15, chunk_overlap=0)
    with pytest.warns(UserWarning, match="the document's own text stands there"):
        chunks = exact(original).create_documents([text])
    assert len(chunks) > 1
    for chunk in chunks:
        assert text[chunk.metadata["start_index"] : chunk.metadata["end_index"]] == chunk.page_content
    around = CharacterTextSplitter(separator="(?= )", is_separator_regex=True, chunk_size=15, chunk_overlap=0)
    assert exact(around).split_text(text) == around.split_text(text)


def test_a_subclass_of_the_sentence_splitter_gives_what_it_gave() -> None:
    """Metadata take their room, and nodes are linked as before."""

    class Sentences(SentenceSplitter):
        pass

    documents = [
        LlamaDocument(text=plain(real_texts()[0][:8000]), metadata={"path": "a/long/way/to/the/file.md"}, id_="a")
    ]
    parser = Sentences(chunk_size=60, chunk_overlap=20)
    theirs, placed = (each.get_nodes_from_documents(documents) for each in (parser, exact(parser)))
    assert [node.text for node in placed] == [node.text for node in theirs]
    assert [bool(node.next_node) for node in placed] == [bool(node.next_node) for node in theirs]
    for node in placed:
        assert node.metadata["path"] == documents[0].metadata["path"]
        assert documents[0].text[node.start_char_idx : node.end_char_idx] == node.text
