"""`load_benchmark`: documents and questions from files of any known layout."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from chunkcore.document import Document
from chunkcore.errors import DataError, OptionError, check_type, echo
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.benchmarks.layout import (
    Beir,
    Chroma,
    ChunkcoreLayout,
    Contents,
    Layout,
    Questions,
    known_layouts,
    layouts,
    question_rows,
    read_own,
)
from chunkcore.evaluation.benchmarks.questions import QuestionReader


def load_benchmark(
    documents: str | Path | Sequence[Document],
    questions: Questions | None = None,
    *,
    name: str = "",
    layout: str = "auto",
    leave_out: Collection[Path] = (),
    require_evidence: bool = True,
    follow_links: bool = False,
) -> Benchmark:
    """A benchmark from files.

    A path is a public dataset as distributed (docs/reference/formats.md lists the layouts), or ``questions.jsonl``
    beside ``documents.jsonl``, a folder ``documents/``, or the documents themselves.

    Evidence is never guessed: a question whose evidence is not found, or found more than once, goes to
    `Benchmark.problems` with the reason. An excerpt that stands at one place with other white space, case, quotation
    marks or Unicode form is accepted with a warning. Questions without evidence on purpose go to
    `Benchmark.without_evidence`.

    Args:
        documents: a folder, a text file, a ``documents.jsonl``, a dataset's file, or the documents themselves.
        questions: a ``questions.jsonl``, a ``.csv`` of the Chroma report, a ``.tsv`` of BEIR's judgements, or objects.
        name: the benchmark's; by default the name of the folder or file.
        layout: a layout's name; "auto" recognises it.
        leave_out: files to skip.
        require_evidence: refuse a dataset without evidence, as retrieval cannot be scored on it.
        follow_links: read links that lead out of a folder of documents.

    Raises:
        DataError: no such path, unreadable files, no layout recognised, no usable question, or two questions of one
            id in your own file.
        OptionError: no layout has this name, or it takes no separate questions.

    >>> story = Document("fox.txt", "The fox naps. The dog naps.")
    >>> lines = [{"question": "Who?", "evidence": ["The fox"]}, {"question": "What?", "evidence": ["naps"]}]
    >>> loaded = load_benchmark([story], lines, name="toy")
    >>> [query.id for query in loaded.queries], [problem.query_id for problem in loaded.problems]
    (['q1'], ['q2'])
    """
    contents, is_own = _contents(documents, questions, layout, leave_out, follow_links=follow_links)
    if not name:
        place = Path(documents) if isinstance(documents, str | Path) else Path("benchmark")
        name = place.resolve().name if place.is_dir() else place.stem
    rows = list(contents.questions)
    reader = QuestionReader(contents.documents, [str(row.get("id")) for _, row in rows], contents.unread)
    for place_of_row, row in rows:
        reader.add(place_of_row, row)
    if reader.repeated and is_own:
        first = reader.repeated[0]
        file = f"{questions}, " if isinstance(questions, str | Path) else ""
        raise DataError(f"two questions have the id {first.query_id!r}: {file}{first.reason}")
    if reader.notes:
        warnings.warn(
            f"excerpts that stand at one place in another spelling (white space, case, quotation marks, Unicode form, "
            f"tags) and were accepted: {len(reader.notes):,}; the first, of {reader.notes[0].query_id!r}: "
            f"{reader.notes[0].reason}",
            stacklevel=2,
        )
    source = questions if isinstance(questions, str | Path) else documents if questions is None else "the questions"
    _check_usable(reader, str(source), require_evidence=require_evidence)
    problems = (*reader.problems, *reader.repeated)
    return Benchmark(name, contents.documents, reader.queries, problems, tuple(reader.without_evidence))


def _contents(
    documents: str | Path | Sequence[Document],
    questions: Questions | None,
    layout: str,
    leave_out: Collection[Path],
    *,
    follow_links: bool,
) -> tuple[Contents, bool]:
    """What is read, and whether the questions are the user's own, whose ids must be unique."""
    check_type("documents", documents, str | Path | Sequence, "a path, or a list of Documents")
    check_type("questions", questions, str | Path | Iterable | None, "a path, or objects such as questions.jsonl has")
    if isinstance(questions, str | Path) and (Path(questions).is_dir() or not Path(questions).exists()):
        raise DataError(f"{questions} is no file: expected a questions.jsonl or a questions_df.csv")
    if isinstance(documents, str | Path):
        root = Path(documents)
        if not root.exists():
            raise DataError(f"{root} does not exist: expected a folder of documents, a text file, or a documents.jsonl")
        chosen = chosen_layout(root, questions, layout)
        if isinstance(chosen, ChunkcoreLayout):
            return read_own(root, questions, leave_out, follow_links=follow_links), True
        return chosen.read(root, questions, leave_out), questions is not None
    if layout != "auto":
        raise OptionError(f"documents that are at hand have no layout: leave out {echo(layout)}, or give a path")
    if questions is None:
        raise DataError(
            f"there are {len(documents)} documents and no questions: give the path of a questions.jsonl, or its lines"
        )
    for document in documents:
        check_type("one of the documents", document, Document, "a Document")
    return Contents(list(documents), question_rows(questions)), True


def _check_usable(reader: QuestionReader, source: str, *, require_evidence: bool) -> None:
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
        f"{source}: none of the {len(reader.problems)} questions can be used; the first, {echo(first.query_id)}: "
        f"{first.reason}"
    )


def recognised(root: Path) -> Layout:
    """The first layout that fits the path. Raises `DataError`: none fits; names what each layout of which the path has
    a part lacks.
    """
    missing: dict[str, list[str]] = {}
    for layout in known_layouts():
        lacks = layout.lacks(root)
        if not lacks:
            return layout
        if lacks != layout.lacks(root / "nothing"):
            missing.setdefault(lacks, []).append(layout.name)
    reasons = "".join(f"; for {' or '.join(names)} it lacks {what}" for what, names in missing.items())
    raise DataError(f"{root} is of no layout that chunkcore datasets layouts lists{reasons}")


def chosen_layout(root: Path, questions: Questions | None = None, name: str = "auto") -> Layout:
    """The path's layout; our own if no layout that takes the questions fits."""
    if name != "auto":
        chosen: Layout = layouts.get(name)()
        if isinstance(chosen, ChunkcoreLayout) and questions is not None:
            return chosen  # lacks nothing if questions are given
        if lacks := chosen.lacks(root):
            raise DataError(f"{root} is not of the layout {name}: it lacks {lacks}")
        if questions is not None and not (chosen.takes_questions and isinstance(questions, str | Path)):
            raise OptionError(f"the layout {name} has its own questions: leave out the others, or the layout's name")
        return chosen
    if isinstance(questions, str | Path):
        other = Beir() if Path(questions).suffix.lower() == ".tsv" else Chroma()
        return ChunkcoreLayout() if other.lacks(root) else other
    if questions is not None:
        return ChunkcoreLayout()
    try:
        return recognised(root)
    except DataError as error:
        raise DataError(
            f"there are no questions for {root}: put a questions.jsonl beside the documents, or give its path; "
            f"chunkcore questions label {root} writes one ({error})"
        ) from None
