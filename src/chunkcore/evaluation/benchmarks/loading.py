"""`load_benchmark` and `load_segmented`: documents and questions from a folder or files of any known layout."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.benchmarks.documents import Row, documents_of
from chunkcore.evaluation.benchmarks.layout import (
    Chroma,
    Contents,
    Layout,
    Own,
    Questions,
    known_layouts,
    layouts,
    question_rows,
)
from chunkcore.evaluation.benchmarks.questions import QuestionReader, read_questions
from chunkcore.evaluation.benchmarks.retrieval_layouts import Beir

__all__ = ["get_layout", "load_benchmark", "load_segmented", "recognised", "segmented_rows"]


def load_benchmark(
    documents: str | Path | Sequence[Document],
    questions: Questions | None = None,
    *,
    name: str = "",
    layout: str = "auto",
    leave_out: Collection[Path] = (),
    require_evidence: bool = True,
) -> Benchmark:
    """A benchmark from files.

    A path is read by what it holds: a public collection as it is distributed (docs/reference/formats.md has their
    layouts), or ``questions.jsonl`` beside ``documents.jsonl``, a folder ``documents/`` or else files that are the
    documents.

    A question whose evidence is not found, or is found more than once, is left out and stands in
    `Benchmark.problems` with the reason. Evidence is never guessed. Questions for which a collection marks none on
    purpose stand in `Benchmark.without_evidence`.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, a collection's file, or the documents themselves.
        questions: a ``questions.jsonl``, a ``.csv`` of the Chroma report's columns, a ``.tsv`` of BEIR's judgements,
            or such lines as objects.
        name: the benchmark's; that of the folder or file by default.
        layout: its name, where the path's should not be found out.
        leave_out: files that are no documents, should they lie in the folder.
        require_evidence: refuse a collection of which no question has evidence, so that no retrieval can be scored.

    Raises:
        DataError: nothing there, files that cannot be read or are of no layout, or no question that can be used.
        OptionError: no layout has this name, or it takes no questions from elsewhere.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who?", "evidence": ["The fox"]}, {"question": "What?", "evidence": ["naps"]}]
    >>> loaded = load_benchmark([story], lines, name="toy")
    >>> [query.id for query in loaded.queries], [problem.query_id for problem in loaded.problems]
    (['q1'], ['q2'])
    """
    if isinstance(questions, str | Path) and (Path(questions).is_dir() or not Path(questions).exists()):
        raise DataError(f"{questions} is no file: expected a questions.jsonl or a questions_df.csv")
    if isinstance(documents, str | Path):
        root = Path(documents)
        name = name or (root.resolve().name if root.is_dir() else root.stem)
        if not root.exists():
            raise DataError(f"{root} does not exist: expected a folder of documents, a text file, or a documents.jsonl")
        chosen = _chosen(root, questions) if layout == "auto" else _named(root, questions, layout)
        contents = chosen.read(root, questions, leave_out)
    elif layout != "auto":
        raise OptionError(f"documents that are at hand have no layout: leave out {layout!r}, or give a path")
    else:
        name = name or "benchmark"
        contents = _given(list(documents), questions, name)
    reader = read_questions(contents.questions, contents.documents)
    source = "the questions" if questions is not None else str(documents)
    _require_some(reader, str(questions) if isinstance(questions, str | Path) else source, require_evidence)
    return Benchmark(name, contents.documents, reader.queries, tuple(reader.problems), tuple(reader.without_evidence))


def get_layout(name: str, root: Path) -> Layout:
    """The layout of a name, which the path is of.

    Raises:
        OptionError: there is none.
        DataError: the path is not of it, with what it lacks.
    """
    found: Layout = layouts.get(name)()
    lacks = found.lacks(root)
    if lacks:
        raise DataError(f"{root} is not of the layout {name}: it lacks {lacks}")
    return found


def recognised(root: Path, among: Iterable[Layout] | None = None) -> Layout:
    """The first layout, of all or `among` some, that the path is of.

    Raises:
        DataError: it is of none, with what it lacks to be of each.
    """
    missing: dict[str, list[str]] = {}
    for layout in known_layouts() if among is None else among:
        lacks = layout.lacks(root)
        if not lacks:
            return layout
        missing.setdefault(lacks, []).append(layout.name)
    told = "; ".join(f"for {' or '.join(names)} it lacks {what}" for what, names in missing.items())
    raise DataError(f"{root} is of no layout that is known: {told}")


def _given(documents: list[Document], questions: Questions | None, name: str) -> Contents:
    if questions is None:
        raise DataError(
            f"there are {len(documents)} documents in {name!r}, and no questions: "
            "give the path of a questions.jsonl, or its lines"
        )
    return Contents(documents, question_rows(questions))


def _named(root: Path, questions: Questions | None, name: str) -> Layout:
    if name == Own.name and questions is not None:
        return Own()  # which lacks nothing where the questions come from elsewhere
    chosen = get_layout(name, root)
    if questions is not None and not (chosen.takes_questions and isinstance(questions, str | Path)):
        raise OptionError(f"the layout {name} has its own questions: leave out the others, or the layout's name")
    return chosen


def _chosen(root: Path, questions: Questions | None) -> Layout:
    """The path's layout: our own, where the path is of none that takes the given questions."""
    if isinstance(questions, str | Path):
        other = Beir() if Path(questions).suffix.lower() == ".tsv" else Chroma()
        return Own() if other.lacks(root) else other
    if questions is not None:
        return Own()
    try:
        return recognised(root)
    except DataError as error:
        raise DataError(
            f"there are no questions for {root}: put a questions.jsonl beside the documents, or give its path ({error})"
        ) from None


def _require_some(reader: QuestionReader, source: str, require_evidence: bool) -> None:
    """See that there is a question to ask.

    Raises:
        DataError: there is none, with the first reason.
    """
    if reader.queries or (reader.without_evidence and not require_evidence):
        return
    if reader.without_evidence:
        raise DataError(
            f"{source}: no evidence is marked for its {len(reader.without_evidence):,} questions, so that no retrieval "
            "can be scored on them; answers can"
        )
    if not reader.problems:
        raise DataError(f'{source} holds no questions: expected lines like {{"question": ..., "evidence": [...]}}')
    first = reader.problems[0]
    raise DataError(
        f"{source}: none of the {len(reader.problems)} questions can be used; the first, {first.query_id!r}: "
        f"{first.reason}"
    )


def load_segmented(path: str | Path, *, layout: str = "auto") -> list[Document]:
    """Texts whose sections are known.

    ``metadata["boundaries"]`` has the offsets at which they begin, but for the first. Read are our own
    ``documents.jsonl`` with ``boundaries``, Wiki-727k and WIKI-50, Choi, and QMSum. Where a collection has sentences,
    ``metadata["sentences"]`` has their pairs of offsets. Headings are no part of the texts.

    Raises:
        DataError: the path is of no such layout, its files cannot be read, or a text has no boundaries.
        OptionError: no layout has this name, or it has no sections.
    """
    documents = documents_of(segmented_rows(Path(path), layout))
    without = next((each.id for each in documents if not isinstance(each.metadata.get("boundaries"), list)), None)
    if without is not None:
        raise DataError(f"{path}: the text {without!r} has no boundaries, the offsets at which its sections begin")
    return documents


def segmented_rows(root: Path, layout: str = "auto") -> Iterable[Row]:
    """The same as rows ``{"id", "text", "boundaries"}``, one at a time and unchecked.

    Raises:
        DataError: the path is of no such layout, or its files cannot be read.
        OptionError: no layout has this name, or it has no sections.
    """
    if not root.exists():
        raise DataError(f"{root} cannot be read: No such file or directory")
    sectioned = [each for each in known_layouts() if each.tells_sections]
    if layout not in ("auto", *(each.name for each in sectioned)):
        names = ", ".join(each.name for each in sectioned)
        why = "tells no sections" if layout in layouts else "is none"
        raise OptionError(f"the layout {layout} {why}: expected one of auto, {names}")
    others = [each for each in sectioned if each.name != Own.name]
    if layout == Own.name or (layout == "auto" and _is_own(root, others)):
        return Own().sections(root)
    return (recognised(root, others) if layout == "auto" else get_layout(layout, root)).sections(root)


def _is_own(root: Path, others: Sequence[Layout]) -> bool:
    """Whether it is a ``documents.jsonl``, by name or by being JSON lines that are of no other layout."""
    if root.is_dir():
        return (root / "documents.jsonl").is_file()
    return root.suffix == ".jsonl" and all(layout.lacks(root) for layout in others)
