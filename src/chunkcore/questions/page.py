"""The page with the filters' two distributions and the questions next to the thresholds; and the other files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError
from chunkcore.escaping import html_text
from chunkcore.files import utf8_line, write_parts, write_text
from chunkcore.questions.filters import Filtered
from chunkcore.questions.generate import Generated
from chunkcore.report.plots import Scale, figure, number, svg_line, svg_text, ticks
from chunkcore.report.rendering import policy

_WIDTH, _HEIGHT = 760, 220
_BINS = 50
_LONGEST = 400  # characters of a text that a table shows
_SHOWN = 8  # pairs on either side of a threshold


def filter_page(filtered: Filtered) -> str:
    """The page as static HTML: it loads and runs nothing, and the model's text is escaped."""
    found = filtered.similarities
    own = found.excerpts[found.own]
    owners = np.nonzero(found.own)[0]
    excerpts = [each for several in filtered.excerpts for each in several]
    first, second = np.triu_indices(len(filtered.questions), 1)
    style = files("chunkcore.questions").joinpath("filters.css").read_text("utf-8")
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>What the filters went by</title><style>{style}</style><body>",
        f"<h1>What the filters went by: {len(filtered.questions):,} questions, {len(filtered.dropped):,} dropped</h1>",
        "<p>Look at the pairs next to the thresholds. Where another one suits better, run the same command with "
        "<code>--relevance</code> or <code>--duplicate</code> and a number: "
        "Answers are cached, so the model is not called.</p>",
        "<h2>Are excerpts about their question?</h2>",
        f"<p>{_rule(filtered.relevance, 'A question with an excerpt under {} is dropped.')}</p>",
        '<p class="note">Bars: cosines of questions with their own excerpts. Outline, at its own scale: with the '
        "excerpts of other questions.</p>",
        cosine_histogram(
            own, filtered.relevance, title="Questions and their excerpts", others=found.excerpts[found.elsewhere]
        ),
        _nearest(
            own,
            filtered.relevance,
            lambda at: (filtered.questions[owners[at]], excerpts[at]),
            ("question", "excerpt"),
            above=False,
        ),
        "<h2>Are questions asked twice?</h2>",
        f"<p>{_rule(filtered.duplicate, 'Of two questions over {} the later one is dropped.')}</p>",
        '<p class="note">Cosines of all pairs of questions. The height is the square root of their number, since the '
        "few on the right are what matters.</p>",
        cosine_histogram(found.pairs, filtered.duplicate, title="Pairs of questions", root=True),
        _nearest(
            found.pairs,
            filtered.duplicate,
            lambda at: (filtered.questions[first[at]], filtered.questions[second[at]]),
            ("earlier question", "later question"),
            above=True,
        ),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def cosine_histogram(
    values: NDArray[np.float64],
    threshold: float | None,
    *,
    title: str,
    others: NDArray[np.float64] | None = None,
    root: bool = False,
) -> str:
    """A histogram of cosines (bars) and `others` (an outline at its own scale) as SVG, with a line at the threshold.

    `title` is for screen readers. With `root`, heights are square roots of the counts.
    """
    shown = [each for each in (values, others) if each is not None and len(each)]
    low = min([0.0, *(float(each.min()) for each in shown)])
    high = max([1.0, *(float(each.max()) for each in shown)])
    x, bottom, top = Scale(low, high, 8.0, _WIDTH - 8.0), _HEIGHT - 38.0, 24.0
    edges = np.linspace(low, high, _BINS + 1)

    def columns(counted: NDArray[np.float64]) -> list[tuple[float, float, float]]:
        """Each column's top, start and end."""
        counts = np.histogram(counted, bins=edges)[0].astype(float)
        shares = np.sqrt(counts) if root else counts
        y = Scale(0.0, max(float(shares.max(initial=0)), 1.0), bottom, top)
        ends = [x(edge) for edge in edges.tolist()]
        return list(zip(map(y, shares.tolist()), ends, ends[1:], strict=False))

    drawn = "".join(
        f"M{start:.1f} {bottom:.1f}V{y:.1f}H{end - 0.6:.1f}V{bottom:.1f}Z"
        for y, start, end in columns(values)
        if y < bottom
    )
    parts = [f'<path class="bars" d="{drawn}"/>']
    if others is not None and len(others):
        drawn = "".join(f"V{y:.1f}H{end:.1f}" for y, _, end in columns(others))
        parts.append(f'<path class="others" d="M{x(low):.1f} {bottom:.1f}{drawn}V{bottom:.1f}"/>')
    parts.append(svg_line(x.first, bottom, x.last, bottom, "axis"))
    marks = (tick for tick in ticks(low, high, 10) if low <= tick <= high)
    parts += [svg_text(x(tick), bottom + 17, number(tick), "tick", anchor="middle") for tick in marks]
    parts.append(svg_text(x.last, _HEIGHT - 4, "cosine", "tick", anchor="end"))
    if threshold is not None:
        at = x(min(max(threshold, low), high))
        parts.append(svg_line(at, bottom, at, top - 4, "threshold"))
        anchor = "start" if at < _WIDTH / 2 else "end"
        parts.append(svg_text(at, top - 9, f"threshold {threshold:.3f}", "mark", anchor=anchor))
    return figure(_WIDTH, _HEIGHT, title, parts)


def _nearest(
    values: NDArray[np.float64],
    threshold: float | None,
    texts: Callable[[int], tuple[str, str]],
    titles: tuple[str, str],
    *,
    above: bool,
) -> str:
    """The pairs nearest to the threshold by falling cosine; those beyond it are marked."""
    if not len(values):
        return ""
    at = (float(values.max()) if above else float(values.min())) if threshold is None else threshold
    order = np.argsort(-values, kind="stable")
    middle = int(np.searchsorted(-values[order], -at))
    rows = []
    for index in order[max(0, middle - _SHOWN) : middle + _SHOWN].tolist():
        value = float(values[index])
        beyond = threshold is not None and (value > threshold if above else value < threshold)
        shown = (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts(index))
        cells = "".join(f"<td>{html_text(text)}</td>" for text in shown)
        rows.append(f"<tr{' class=out' if beyond else ''}><td>{value:.3f}{' ×' if beyond else ''}</td>{cells}</tr>")
    head = "".join(f"<th>{html_text(title)}</th>" for title in ("cosine", *titles))
    return (
        '<p class="note">Next to the threshold; × is beyond it.</p><div class="scroll">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _rule(threshold: float | None, sentence: str) -> str:
    if threshold is None:
        return "No threshold was given, or there are too few questions to propose one: nothing was dropped."
    return sentence.format(f"{threshold:.3f}")


@dataclass(frozen=True, slots=True)
class GenerationFiles:
    """The output files, all named after the questions."""

    questions: Path
    rejected: Path
    info: Path  # seed, model, prompt, options, documents, calls, thresholds
    page: Path  # the distributions behind the filters


def files_beside(questions: Path) -> GenerationFiles:
    """The files that belong to a ``questions.jsonl``. Raises `OptionError` for another suffix.

    >>> files_beside(Path("out/questions.jsonl")).rejected.name
    'questions.rejected.jsonl'
    """
    if questions.suffix != ".jsonl" or not questions.stem:
        raise OptionError(f"the questions go into a file whose name ends in .jsonl, got {questions}")
    return GenerationFiles(
        questions=questions,
        rejected=questions.with_suffix(".rejected.jsonl"),
        info=questions.with_suffix(".info.json"),
        page=questions.with_suffix(".filters.html"),
    )


def write_generated(files: GenerationFiles, generated: Generated) -> None:
    """Write the files, each atomically; the page only after filtering."""
    rejected = ({**asdict(each), "sample": [each.sample.start, each.sample.end]} for each in generated.rejections)
    write_parts(files.rejected, map(utf8_line, rejected))
    if generated.filtered is not None:
        write_text(files.page, filter_page(generated.filtered))
    info = {
        "questions": len(generated.rows),
        "rejected": len(generated.rejections),
        "stopped": generated.stopped,
        "unfinished": generated.unfinished,
        **generated.info,
        "usage": asdict(generated.usage),
    }
    write_parts(files.info, [json.dumps(info, indent=2).encode("ascii"), b"\n"])
    write_parts(files.questions, map(utf8_line, generated.rows))
