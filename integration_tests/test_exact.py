"""`exact`: what the user's configured splitter gives, text for text, with offsets that are right."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from haystack import Document as HaystackDocument
from haystack.components.preprocessors import DocumentSplitter, RecursiveDocumentSplitter
from haystack.components.retrievers import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.documents import Document as LangChainDocument
from langchain_text_splitters import (
    CharacterTextSplitter,
    LatexTextSplitter,
    MarkdownHeaderTextSplitter,
    MarkdownTextSplitter,
    PythonCodeTextSplitter,
    RecursiveCharacterTextSplitter,
    RecursiveJsonSplitter,
    TokenTextSplitter,
)
from llama_index.core import Document as LlamaDocument
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.node_parser import TokenTextSplitter as LlamaTokenTextSplitter
from llama_index.core.utils import globals_helper

from chunkadapters.exact import Aligned, exact, exact_chunker
from chunkadapters.exact.haystack import sentence_pieces
from chunkadapters.haystack import ChunkcoreDocumentSplitter
from chunkadapters.langchain import ChunkcoreTextSplitter
from chunkadapters.llamaindex import ChunkcoreNodeParser
from chunkcore import Chunk, DataError, Document, OptionError
from chunkcore.tokens import TiktokenCounter
from tests.conftest import shared
from tests.strategies import hard_text, prose

pytestmark = pytest.mark.peers
few = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
texts = hard_text() | prose() | hard_text(max_parts=120)

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

CHARACTER_GRID = [
    {
        "separator": separator,
        "chunk_size": size,
        "chunk_overlap": overlap,
        "keep_separator": keep,
        "strip_whitespace": strip,
    }
    for separator, (size, overlap), keep, strip in product(
        ["\n\n", " ", ", "], [(300, 0), (120, 60)], [False, "start", "end"], [True, False]
    )
]


@pytest.mark.parametrize("options", CHARACTER_GRID, ids=str)
def test_langchain_character_on_real_texts(options: dict[str, Any]) -> None:
    splitter = CharacterTextSplitter(**options)
    joiner = "" if options["keep_separator"] else options["separator"]
    for text in real_texts():
        check(splitter.split_text(text), cut(splitter, text), text, joiner=joiner)


@given(
    texts, st.sampled_from(["\n\n", "\n", " ", "a", "。", ""]), st.sampled_from([False, "start", "end"]),
    st.integers(1, 30).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size))), st.booleans(),
)  # fmt: skip
@few
@example(" ,,a", ",", False, (9, 0), True)
def test_langchain_character_on_generated_text(
    text: str, separator: str, keep: Any, sizes: tuple[int, int], strip: bool
) -> None:
    splitter = CharacterTextSplitter(
        separator=separator, keep_separator=keep, chunk_size=sizes[0], chunk_overlap=sizes[1], strip_whitespace=strip
    )
    check(splitter.split_text(text), cut(splitter, text), text, joiner="" if keep else separator)


@pytest.mark.parametrize("pattern", [r"(?<=[.!?])\s+", r"(?=\n)", r"\n+"])
@pytest.mark.parametrize("keep", ["start", "end"])
def test_langchain_character_with_regular_expressions(pattern: str, keep: str) -> None:
    splitter = CharacterTextSplitter(
        separator=pattern, is_separator_regex=True, keep_separator=keep, chunk_size=200, chunk_overlap=20
    )
    for text in real_texts():
        check(splitter.split_text(text), cut(splitter, text), text)


@pytest.mark.parametrize(
    "cls", [RecursiveCharacterTextSplitter, MarkdownTextSplitter, LatexTextSplitter, PythonCodeTextSplitter]
)
def test_langchain_recursive_and_what_is_made_of_it(cls: type[RecursiveCharacterTextSplitter]) -> None:
    for options in (
        {"chunk_size": 300, "chunk_overlap": 50},
        {"chunk_size": 90, "chunk_overlap": 0, "keep_separator": False},
    ):
        if cls is not RecursiveCharacterTextSplitter:
            options.pop("keep_separator", None)
        splitter = cls(**options)
        for text in real_texts():
            check(splitter.split_text(text), cut(splitter, text), text)


def test_langchain_splitters_by_tokens() -> None:
    from langchain_core.documents import Document as LangChainDocument

    for splitter in (
        RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=100, chunk_overlap=20),
        CharacterTextSplitter.from_tiktoken_encoder("o200k_base", chunk_size=80, chunk_overlap=0, separator="\n"),
        TokenTextSplitter("cl100k_base", chunk_size=60, chunk_overlap=30),
    ):
        for text in real_texts():
            if splitter.split_text(text) != [chunk.text for chunk in cut(splitter, text)]:
                assert isinstance(splitter, TokenTextSplitter)  # it cuts characters, and writes U+FFFD
                assert "\ufffd" in "".join(splitter.split_text(text))
        made = exact(splitter).split_documents([LangChainDocument(page_content=text, metadata={"source": "a"})])
        for each in made:
            if "spans" in each.metadata:  # several separators between its pieces, where the original wrote one
                continue
            assert text[each.metadata["start_index"] : each.metadata["end_index"]] == each.page_content


def test_a_length_function_of_the_users_own_is_asked() -> None:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=5, chunk_overlap=1, length_function=lambda text: text.count("e")
    )
    text = real_texts()[0][:4000]
    check(splitter.split_text(text), cut(splitter, text), text)


class Shouting(CharacterTextSplitter):
    """A subclass that cuts in its own way."""

    def split_text(self, text: str) -> list[str]:
        return [part.upper() for part in super().split_text(text)]


def test_a_splitter_that_is_not_known_cuts_as_it_does_and_is_found_in_order() -> None:
    text = "The fox naps here. The dog ran off.\n\nThe fox naps here. The cat sat down."
    chunks = cut(Shouting(separator=". ", chunk_size=20, chunk_overlap=0), text)
    assert chunks[0].text == "THE FOX NAPS HERE"
    assert [chunk.start for chunk in chunks] == [0, 19, 56]
    assert chunks[0].derived
    assert chunks[0].metadata["located"] in ("order", "folded")


# --- LlamaIndex -----------------------------------------------------------------------------------------------


def error_of(function: Callable[[str], object], text: str) -> str:
    try:
        function(text)
    except ValueError as error:
        return str(error)
    return ""


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


@given(texts, st.sampled_from(range(len(LLAMA))))
@few
def test_llamaindex_on_generated_text(text: str, number: int) -> None:
    text = plain(text)
    original = LLAMA[number].split_text(text) if text else []
    check(original, cut(LLAMA[number], text), text)


@given(hard_text(max_parts=60), st.integers(8, 40), st.integers(0, 8))
@few
def test_llamaindex_small_sizes_on_generated_text(text: str, size: int, overlap: int) -> None:
    text = plain(text)
    for splitter in (
        SentenceSplitter(chunk_size=size, chunk_overlap=overlap, paragraph_separator="\n\n"),
        LlamaTokenTextSplitter(chunk_size=size, chunk_overlap=overlap),
    ):
        if text and (raised := error_of(splitter.split_text, text)):
            assert "Single token" in raised
            with pytest.raises(ValueError, match="choose a larger size"):
                cut(splitter, text)
        else:
            check(splitter.split_text(text) if text else [], cut(splitter, text), text)


def test_a_sentence_splitter_that_loses_white_space_gives_chunks_of_several_spans() -> None:
    text = "One is here.\n\n\n   Two is a longer one. Three is the longest one of them all."
    splitter = SentenceSplitter(chunk_size=16, chunk_overlap=0, tokenizer=words)
    small = SentenceSplitter(chunk_size=13, chunk_overlap=0, tokenizer=words)
    for each in (splitter, small):
        check(each.split_text(text), cut(each, text), text)


def test_a_function_that_gives_empty_sentences_does_not_hang() -> None:
    splitter = SentenceSplitter(
        chunk_size=3, chunk_overlap=0, tokenizer=words, chunking_tokenizer_fn=lambda text: [text, ""]
    )
    assert [chunk.text for chunk in cut(splitter, "one two three four")] == ["one two three", "four"]


def test_a_function_whose_sentences_have_no_white_space_between_them() -> None:
    def stripped(text: str) -> list[str]:
        return [each.strip() for each in re.split(r"(?<=[.])", text) if each.strip()]

    text = "One two. Three four. Five six seven. Eight."
    for size in (2, 4, 6):
        splitter = SentenceSplitter(
            chunk_size=size, chunk_overlap=0, tokenizer=words, chunking_tokenizer_fn=stripped, paragraph_separator="@"
        )
        found = cut(splitter, text)
        assert all(text[span.start : span.end].strip() for chunk in found for span in chunk.spans)
        assert {place for chunk in found for span in chunk.spans for place in range(span.start, span.end)} >= {
            place for place, letter in enumerate(text) if letter != " "
        }


@pytest.mark.parametrize("overlap", [2, 3, 5])
def test_shared_sentences_give_way_to_a_long_one(overlap: int) -> None:
    splitter = SentenceSplitter(chunk_size=8, chunk_overlap=overlap, tokenizer=words)
    text = "One. Two two. Three here. Four is. Five is a sentence of seven. Six. Seven now. Eight of them. Nine too."
    check(splitter.split_text(text), cut(splitter, text), text)


def test_a_pattern_of_phrases_has_one_group_at_most() -> None:
    with pytest.raises(OptionError, match="one group at most"):
        cut(SentenceSplitter(chunk_size=2, chunk_overlap=0, secondary_chunking_regex="(a+)(b+)"), "aab aab aab aab")


def test_pieces_that_fill_the_overlap_exactly_are_shared() -> None:
    splitter = SentenceSplitter(chunk_size=4, chunk_overlap=2, tokenizer=words, secondary_chunking_regex=None)
    text = "one two three four five six seven"
    found = [chunk.text for chunk in cut(splitter, text)]
    assert found == splitter.split_text(text) == ["one two three four", "three four five six", "five six seven"]


def test_nodes_are_the_originals_with_right_offsets_and_links() -> None:
    parser = SentenceSplitter(chunk_size=60, chunk_overlap=20, include_prev_next_rel=False)
    documents = [
        LlamaDocument(text=plain(text[:8000]), id_=str(number)) for number, text in enumerate(real_texts()[:3])
    ]
    ours, theirs = (each.get_nodes_from_documents(documents) for each in (exact(parser), parser))
    assert [node.text for node in ours] == [node.text for node in theirs]
    assert not any(node.prev_node for node in ours)
    for node in ours:
        assert documents[int(node.ref_doc_id or 0)].text[node.start_char_idx : node.end_char_idx] == node.text


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


def test_metadata_that_leave_no_room_are_told() -> None:
    parser = exact(SentenceSplitter(chunk_size=10, chunk_overlap=0))
    with pytest.raises(ValueError, match=r"the metadata count \d+, which leaves nothing of size=10"):
        parser.get_nodes_from_documents([LlamaDocument(text="One.", metadata={"path": "a/b/c/d/e/f/g/h/i"})])


def test_another_node_parser_is_aligned() -> None:
    parser = SentenceWindowNodeParser.from_defaults(window_size=1)
    text = "The fox naps. The dog runs. The fox naps. The end."
    assert [chunk.start for chunk in cut(parser, text)] == [0, 14, 28, 42]


# --- Haystack -------------------------------------------------------------------------------------------------


def haystack_texts(splitter: Any, text: str) -> list[str]:
    splitter.warm_up()
    return [each.content for each in splitter.run(documents=[HaystackDocument(content=text)])["documents"]]


HAYSTACK_VERSION = tuple(map(int, version("haystack-ai").split(".")[:2]))
HAYSTACK: list[Callable[[], Any]] = [
    lambda: DocumentSplitter(split_by="word", split_length=50, split_overlap=0),
    lambda: DocumentSplitter(split_by="word", split_length=30, split_overlap=10, split_threshold=15),
    lambda: DocumentSplitter(split_by="line", split_length=3, split_overlap=1),
    lambda: DocumentSplitter(split_by="passage", split_length=2, split_threshold=2),
    lambda: DocumentSplitter(split_by="period", split_length=4, split_overlap=3, split_threshold=4),
    lambda: DocumentSplitter(split_by="page", split_length=1),
    lambda: DocumentSplitter(split_by="sentence", split_length=5, split_overlap=1),
    lambda: DocumentSplitter(split_by="word", split_length=40, split_overlap=15, respect_sentence_boundary=True),
    lambda: DocumentSplitter(
        split_by="word" if HAYSTACK_VERSION < (3, 2) else "token",  # before, it knew no tokens
        split_length=40,
        split_overlap=10,
        split_threshold=20,
    ),
    lambda: RecursiveDocumentSplitter(split_length=40),
    lambda: RecursiveDocumentSplitter(split_length=40, split_overlap=10),
    lambda: RecursiveDocumentSplitter(split_length=200, split_overlap=50, split_unit="char"),
    lambda: RecursiveDocumentSplitter(split_length=60, split_unit="token", separators=["\n\n", "\n", " "]),
    lambda: RecursiveDocumentSplitter(split_length=60, split_overlap=20, split_unit="token"),
]


@pytest.mark.parametrize("number", range(len(HAYSTACK)))
def test_haystack_on_real_texts(number: int) -> None:
    splitter = HAYSTACK[number]()
    for text in real_texts():
        text = text[:10_000]
        check(haystack_texts(splitter, text), cut(splitter, text), text)


@given(texts, st.integers(0, len(HAYSTACK) - 1))
@few
def test_haystack_on_generated_text(text: str, number: int) -> None:
    splitter = HAYSTACK[number]()
    text = plain(text)
    check(haystack_texts(splitter, text) if text else [], cut(splitter, text), text)


@lru_cache
def haystack_sentences(white_space: bool) -> Any:
    pytest.importorskip("nltk")
    from haystack.components.preprocessors.sentence_tokenizer import SentenceSplitter as Sentences

    return Sentences(keep_white_spaces=white_space)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="\"'.?!,([ \n1aB", max_size=60), st.booleans())
def test_sentences_are_joined_by_quotations_as_haystack_does(text: str, white_space: bool) -> None:
    splitter = haystack_sentences(white_space)
    wanted = [(each["start"], each["end"]) for each in splitter.split_sentences(text)]
    assert sentence_pieces(splitter, text) == wanted


def test_what_an_older_haystack_writes_anew_is_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RecursiveDocumentSplitter, "_apply_word_overlap", raising=False)
    assert isinstance(exact_chunker(RecursiveDocumentSplitter(split_length=5, split_overlap=1)), Aligned)
    assert not isinstance(exact_chunker(RecursiveDocumentSplitter(split_length=5)), Aligned)


def test_a_haystack_splitter_stays_a_component_that_can_be_written_down() -> None:
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("splitter", exact(DocumentSplitter(split_by="word", split_length=3)))
    loaded = Pipeline.loads(pipeline.dumps())
    chunks = loaded.run({"splitter": {"documents": [HaystackDocument(content="one two one two one two")]}})
    places = [(each.meta["split_idx_start"], each.meta["split_idx_end"]) for each in chunks["splitter"]["documents"]]
    assert places == [(0, 12), (12, 23)]


def test_langchains_headings_come_with_the_places_of_what_stands_under_them() -> None:
    text = "# Tea\n\nIt is green.\n\n## Black\n\nIt is green.\nNo, black.\n"
    original = MarkdownHeaderTextSplitter([("#", "title"), ("##", "part")])
    found = exact(original).create_documents([text])
    assert [each.page_content for each in found] == [each.page_content for each in original.split_text(text)]
    assert [text[each.metadata["start_index"] : each.metadata["end_index"]] for each in found] == [
        "It is green.",
        "It is green.\nNo, black.",
    ]
    assert found[1].metadata["start_index"] == text.rindex("It is")
    assert [(each.metadata["title"], each.metadata.get("part")) for each in found] == [("Tea", None), ("Tea", "Black")]


def test_a_documents_own_heading_is_not_overwritten_by_the_splitters() -> None:
    document = LangChainDocument(page_content="# Tea\n\nIt is green.", metadata={"title": "Drinks"})
    (found,) = exact(MarkdownHeaderTextSplitter([("#", "title")])).split_documents([document])
    assert (found.metadata["title"], found.metadata["chunk_title"]) == ("Drinks", "Tea")


def test_a_splitter_of_data_is_refused() -> None:
    with pytest.raises(OptionError, match=r"expected a splitter of texts.*RecursiveJsonSplitter"):
        exact(RecursiveJsonSplitter())


@pytest.mark.parametrize("piece", [7, ("text", "no metadata"), ("text", {}, 1)])
def test_pieces_are_texts_or_texts_with_metadata(piece: Any) -> None:
    with pytest.raises(DataError, match="expected the splitter to give texts, or texts with their metadata, got"):
        Aligned(split=lambda text: [piece]).chunk(Document("d", "text"))


# --- all ------------------------------------------------------------------------------------------------------


def test_what_is_no_splitter_is_told() -> None:
    with pytest.raises(OptionError, match=r"expected a configured LangChain TextSplitter.* got str"):
        exact("recursive")


def test_a_function_that_makes_things_up_is_told() -> None:
    chunker = Aligned(split=lambda text: ["nothing of the kind stands in there, at all"], unplaced="refuse")
    with pytest.raises(Exception, match="stands nowhere in its text: 'nothing of"):
        chunker.chunk(Document("d", "Some text of another kind, about a fox."))


def test_splitters_with_other_settings_have_other_fingerprints() -> None:
    splitters = [Shouting(separator=each, chunk_size=9, chunk_overlap=0) for each in (" ", "\n")]
    first, second = (exact_chunker(each).fingerprint for each in splitters)
    assert first != second
    assert first == exact_chunker(Shouting(separator=" ", chunk_size=9, chunk_overlap=0)).fingerprint


NESTED = "lambda text: [part for part in (lambda whole: whole.split({!r}))(text)]"  # on one line of one file


def sentences_by(mark: str) -> Callable[[str], list[str]]:
    return lambda text: text.split(mark)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: SentenceWindowNodeParser(window_size=1), lambda: SentenceWindowNodeParser(window_size=3)),
        (SentenceWindowNodeParser, MarkdownNodeParser),
        (
            lambda: SentenceSplitter(chunking_tokenizer_fn=sentences_by(".")),
            lambda: SentenceSplitter(chunking_tokenizer_fn=sentences_by("!")),
        ),
        (
            lambda: DocumentSplitter(split_by="function", splitting_function=lambda text: text.split(".")),
            lambda: DocumentSplitter(split_by="function", splitting_function=lambda text: text.split("!")),
        ),
        (
            lambda: DocumentSplitter(split_by="function", splitting_function=lambda text: text.split()),
            lambda: DocumentSplitter(split_by="function", splitting_function=lambda text: text.splitlines()),
        ),
        (
            lambda: DocumentSplitter(split_by="function", splitting_function=eval(NESTED.format("a"))),
            lambda: DocumentSplitter(split_by="function", splitting_function=eval(NESTED.format("b"))),
        ),
        (
            lambda: MarkdownHeaderTextSplitter([("#", "one")]),
            lambda: MarkdownHeaderTextSplitter([("#", "one")], strip_headers=False),
        ),
    ],
    ids=["option", "class", "closure", "function", "method", "nested", "headings"],
)
def test_what_cuts_otherwise_has_another_fingerprint(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """Or an ingestion's cache would answer with the other's chunks."""
    assert exact_chunker(first()).fingerprint != exact_chunker(second()).fingerprint
    assert exact_chunker(first()).fingerprint == exact_chunker(first()).fingerprint


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    program = (
        "from chunkadapters.exact import Aligned\n"
        "marks = {'one', 'two', 'three', 'four'}\n"
        "def cut(text, marks=marks):\n    return [each for each in text.split() if each in {'a', 'b', 'c'}]\n"
        "print(Aligned(split=cut).fingerprint)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


def test_a_function_that_holds_itself_has_a_fingerprint() -> None:
    def halves(text: str) -> list[str]:
        middle = len(text) // 2
        return [text] if len(text) < 40 else [*halves(text[:middle]), *halves(text[middle:])]

    first, second = (Aligned(split=halves).fingerprint for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "splitter",
    [
        RecursiveCharacterTextSplitter.from_tiktoken_encoder("cl100k_base", chunk_size=20, chunk_overlap=0),
        CharacterTextSplitter(separator=" ", chunk_size=20, chunk_overlap=0),
        LLAMA[0],
        LLAMA[5],
        HAYSTACK[0](),
        HAYSTACK[9](),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_exact_chunker_survives_a_pickle_and_its_own_dictionary(splitter: Any) -> None:
    chunker = exact_chunker(splitter)
    text = "One is here. Two is here. " * 40
    assert pickle.loads(pickle.dumps(chunker)).split_text(text) == chunker.split_text(text)
    assert type(chunker).from_dict(chunker.to_dict()).split_text(text) == chunker.split_text(text)


def in_another_process(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


def test_a_pipeline_that_exact_wrote_is_loaded_where_nobody_asked_for_exact() -> None:
    from haystack import Pipeline

    pipeline = Pipeline()
    pipeline.add_component("splitter", exact(DocumentSplitter(split_by="word", split_length=3)))
    program = (
        "import sys; from haystack import Pipeline; "
        "print(Pipeline.loads(sys.argv[1]).get_component('splitter').strategy)"
    )
    assert in_another_process(program, pipeline.dumps()).strip() == "haystack_units"


def test_a_parser_that_exact_wrote_is_loaded_where_nobody_asked_for_exact() -> None:
    data = json.dumps(exact(LLAMA[0]).to_dict())
    program = (
        "import json, sys; from chunkadapters.llamaindex import ChunkcoreNodeParser; "
        "print(ChunkcoreNodeParser.from_dict(json.loads(sys.argv[1])).strategy)"
    )
    assert in_another_process(program, data).strip() == "llamaindex_sentence"


def test_a_function_is_not_written_into_a_pipeline() -> None:
    splitter = exact(DocumentSplitter(split_by="function", splitting_function=str.splitlines))
    with pytest.raises(OptionError, match="split is a function, which cannot be written down"):
        splitter.to_dict()


def test_a_parser_with_a_tokenizer_of_the_users_own_survives_a_pickle() -> None:
    parser = exact(SentenceSplitter(chunk_size=20, chunk_overlap=0, tokenizer=words))
    text = "One is here. Two is here. " * 20
    documents = [LlamaDocument(text=text)]
    again = pickle.loads(pickle.dumps(parser))
    assert [n.text for n in again.get_nodes_from_documents(documents)] == [
        n.text for n in parser.get_nodes_from_documents(documents)
    ]


def test_what_a_parser_tells_of_its_nodes_is_kept() -> None:
    parser = exact(SentenceWindowNodeParser.from_defaults(window_size=1))
    nodes = parser.get_nodes_from_documents([LlamaDocument(text="The fox naps. The dog runs. The end.")])
    assert nodes[0].metadata["window"].split() == ["The", "fox", "naps.", "The", "dog", "runs."]


@pytest.mark.parametrize(
    "build", [lambda: LlamaDocument(text="a"), lambda: InMemoryBM25Retriever(InMemoryDocumentStore())]
)
def test_what_cuts_nothing_is_told(build: Callable[[], Any]) -> None:
    with pytest.raises(OptionError, match="expected a"):
        exact(build())


def test_a_key_makes_no_other_fingerprint() -> None:
    first, second = (Shouting(separator=" ", chunk_size=9, chunk_overlap=0) for _ in range(2))
    first.api_key, second.api_key = "sk-one", "sk-two"
    assert exact_chunker(first).fingerprint == exact_chunker(second).fingerprint


PAGE = (
    "<html><body><h1>Tea</h1><p>It is <b>hot</b> and <i>green</i>, say all.</p><ul><li>Mild</li><li>Black &amp; "
    "strong</li></ul><h2>Coffee</h2><p>Coffee is long.</p></body></html>"
)


def html_splitters() -> list[Any]:
    from langchain_text_splitters import HTMLHeaderTextSplitter
    from llama_index.core.node_parser import HTMLNodeParser

    return [HTMLHeaderTextSplitter([("h1", "one"), ("h2", "two")]), HTMLNodeParser(tags=["h1", "p", "li", "h2"])]


def test_pieces_of_a_page_are_placed_or_marked() -> None:
    pytest.importorskip("bs4", reason="beautifulsoup4 is not installed")
    theirs, parser = html_splitters()
    chunks = exact(theirs).create_documents([PAGE, "<p>Milk is cold.</p>"])
    assert [each.page_content for each in chunks if each.metadata["source_id"] == chunks[0].metadata["source_id"]] == [
        each.page_content for each in theirs.split_text(PAGE)
    ]
    placed = [each for each in chunks if each.metadata["start_index"] >= 0]
    assert {"Tea", "Coffee is long.", "Milk is cold."} <= {each.page_content for each in placed}
    for each in placed:
        if not each.metadata.get("derived"):
            start, end = each.metadata["start_index"], each.metadata["end_index"]
            assert each.page_content in {PAGE[start:end], "<p>Milk is cold.</p>"[start:end]}
    nodes = exact(parser).get_nodes_from_documents([LlamaDocument(text=PAGE)])
    assert [each.text for each in nodes] == [
        each.text for each in parser.get_nodes_from_documents([LlamaDocument(text=PAGE)])
    ]


def made_up(text: str) -> list[str]:
    return [text[:4], "qqq zzz", text[-5:]]


def test_what_is_nowhere_has_no_place_in_any_framework() -> None:
    text = "Tea is hot, and milk is cold."
    chunker = Aligned(split=made_up)
    chunks = chunker.chunk(Document("d", text))
    assert [chunk.text for chunk in chunks] == ["Tea ", "qqq zzz", "cold."]
    assert (chunks[1].derived, chunks[1].metadata["located"]) == (True, "unlocated")
    assert [(span.start, span.end) for span in chunks[1].spans] == [(4, len(text) - 5)]
    documents = ChunkcoreTextSplitter(chunker).create_documents([text])
    assert [each.metadata["start_index"] for each in documents] == [0, -1, len(text) - 5]
    nodes = ChunkcoreNodeParser(chunker).get_nodes_from_documents([LlamaDocument(text=text)])
    assert [each.start_char_idx for each in nodes] == [0, None, len(text) - 5]
    found = ChunkcoreDocumentSplitter(chunker).run([HaystackDocument(content=text)])["documents"]
    assert [each.meta.get("split_idx_start") for each in found] == [0, None, len(text) - 5]
    with pytest.raises(DataError, match="stands nowhere"):
        Aligned(split=made_up, unplaced="refuse").chunk(Document("d", text))
    assert Aligned(split=made_up, unplaced="refuse").fingerprint == chunker.fingerprint


@pytest.mark.parametrize("text", ["First para.\n\nSecond para.", "a\n\n\n\nb. c\n\nd"])
def test_a_regular_expression_that_is_its_own_text_joins_by_it(text: str) -> None:
    for splitter in (
        CharacterTextSplitter(separator="\n\n", is_separator_regex=True, chunk_size=40, chunk_overlap=0),
        RecursiveCharacterTextSplitter(
            separators=["\n\n"], is_separator_regex=True, keep_separator=False, chunk_size=40, chunk_overlap=0
        ),
    ):
        check(splitter.split_text(text), cut(splitter, text), text, joiner="\n\n")


def test_dropped_matches_of_any_other_expression_join_by_nothing_in_both_splitters() -> None:
    text = "one1two22three333four"
    options: dict[str, Any] = {
        "is_separator_regex": True,
        "keep_separator": False,
        "chunk_size": 30,
        "chunk_overlap": 0,
    }
    character = CharacterTextSplitter(separator=r"\d+", **options)
    recursive = RecursiveCharacterTextSplitter(separators=[r"\d+"], **options)
    for splitter in (character, recursive):
        assert [chunk.text for chunk in cut(splitter, text)] == ["onetwothreefour"]


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


def test_a_known_splitter_inside_of_llamaindexs_wrapper_is_known() -> None:
    pytest.importorskip("llama_index.core.node_parser")
    from llama_index.core.node_parser import LangchainNodeParser

    inner = RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=20)
    assert exact_chunker(LangchainNodeParser(inner)) == exact_chunker(inner)
    text = plain(real_texts()[0][:4000])
    check(inner.split_text(text), cut(LangchainNodeParser(inner), text), text)


def test_groups_of_a_kept_expression_change_nothing() -> None:
    text = "one1two22three"
    for keep, wanted in (("start", ["one", "1two", "22three"]), ("end", ["one1", "two22", "three"])):
        options: Any = {"is_separator_regex": True, "keep_separator": keep, "chunk_size": 5, "chunk_overlap": 0}
        grouped, plainly = (CharacterTextSplitter(separator=each, **options) for each in (r"(\d)+", r"\d+"))
        assert exact(grouped).split_text(text) == exact(plainly).split_text(text) == wanted
