"""What the commands that score are given: a benchmark, depths, what is resampled, and where to write."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure

__all__ = ["check_file", "check_folder", "check_output", "clusters_by", "depths_and_measure", "read_benchmark"]


def read_benchmark(
    docs: Path | None,
    questions: Path | None,
    dataset: str,
    output: Path,
    layout: str,
    written: Sequence[str] = (),
    *,
    require_evidence: bool = True,
) -> Benchmark:
    """The documents and questions, or the shipped collection where no documents are given.

    Args:
        docs: a folder or a file.
        questions: a file, where they are not in the folder.
        dataset: the shipped collection.
        output: the folder that is written into; an earlier run's files in it are no documents.
        layout: how the files are laid out.
        written: names of such files, besides those of a report.
        require_evidence: whether a question must have evidence.

    Raises:
        OptionError: questions or a layout without documents, or no such collection.
        DataError: the files cannot be read.
    """
    from chunkcore.datasets import load_dataset
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.benchmarks import load_benchmark
    from chunkcore.report import REPORT_NAMES

    if docs is not None:
        # The report of an earlier run quotes the evidence: read as a document it would make it ambiguous.
        earlier = [output / name for name in (*REPORT_NAMES, *written)]
        return load_benchmark(docs, questions, layout=layout, require_evidence=require_evidence, leave_out=earlier)
    if questions is not None:
        raise OptionError(f"--questions {questions} was given without --docs: give the documents that it asks about")
    if layout != "auto":
        raise OptionError(f"--layout {layout} was given without --docs: give the collection's folder or file")
    return load_dataset(dataset)


def clusters_by(benchmark: Benchmark, by: str) -> dict[str, str] | None:
    """What each question is resampled together with.

    Raises:
        OptionError: `by` is neither question nor document, or there is only one document.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.benchmarks.benchmark import question_documents

    if by not in ("question", "document"):
        raise OptionError(f"--by is question or document, got {by!r}")
    clusters = question_documents(benchmark)
    if by == "document" and len(set(clusters.values())) < 2:
        raise OptionError("--by document needs questions about two documents or more: resample by question")
    return clusters if by == "document" else None


def depths_and_measure(
    texts: Sequence[str], measure: str, default: Sequence[str] = ("5", "10", "min")
) -> tuple[tuple[Depth, ...], Measure]:
    """The depths asked for and the verdict's measure, whose own depth is added where it is missing.

    Raises:
        OptionError: a k or the measure is malformed.
    """
    from chunkcore.errors import OptionError
    from chunkcore.evaluation.measures import get_measure, parse_depth

    ks: list[Depth] = []
    for text in texts or default:
        try:
            ks.append(parse_depth(text))
        except OptionError as error:
            raise OptionError(f"--k: {error}") from None
    wanted = get_measure(measure) if measure else get_measure("Recall", ks[0])
    if wanted.k is not None:
        ks.append(wanted.k)
    return tuple(dict.fromkeys(ks)), wanted


def check_output(output: Path) -> None:
    """Find out before the long work whether its result can be written.

    Raises:
        OSError: there is a file where a folder is needed, or the folder cannot be written to.
        MissingExtraError: jinja2 is not installed.
    """
    from chunkcore.report.rendering import require_jinja2

    require_jinja2()
    check_folder(output)


def check_file(file: Path) -> None:
    """Find out before the long work whether the file can be written.

    Raises:
        OSError: there is a folder, its own folder cannot be written to, or what stands there, such as a pipe, cannot.
    """
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if not file.exists() or file.is_file():  # a file is written anew beside the old one
        check_folder(Path(os.path.realpath(file)).parent)
    elif not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))


def check_folder(folder: Path) -> None:
    """Find out before the long work whether files can be written there.

    Raises:
        OSError: there is a file where a folder is needed, or the folder cannot be written to.
    """
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    code = errno.ENOTDIR if not place.is_dir() else 0 if os.access(place, os.W_OK) else errno.EACCES
    if code:
        raise OSError(code, os.strerror(code), str(place))
