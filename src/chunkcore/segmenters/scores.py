"""How segmenters and baselines do on texts whose segments are known: Pk and WindowDiff, a mean over texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from chunkcore.evaluation.segmentation import pk, window_diff
from chunkcore.segmenters.base import Starts
from chunkcore.segmenters.labelled import Labelled, Parts
from chunkcore.segmenters.tagger import Tagger
from chunkcore.segmenters.texttiling import TextTiling

__all__ = ["Scores", "best_texttiling", "compare_on", "score"]

Find = Callable[[Labelled], Starts]

_WINDOWS = (3, 5, 8, 10, 12, 15, 20, 25)
_DEVIATIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
_DRAWS = 20


class Scores(NamedTuple):
    """Lower is better."""

    pk: float
    window_diff: float

    @property
    def mean(self) -> float:
        """Of the two: what settings are chosen by."""
        return (self.pk + self.window_diff) / 2


def score(texts: Sequence[Labelled], find: Find) -> Scores:
    """The means over texts of two units or more; 0 where there are none."""
    rows = []
    for text in texts:
        if len(text.vectors) > 1:
            found = find(text).tolist()
            arguments = text.starts.tolist(), found, len(text.vectors)
            rows.append((pk(*arguments), window_diff(*arguments)))
    return Scores(*np.mean(rows, axis=0).tolist()) if rows else Scores(0.0, 0.0)


def compare_on(parts: Parts, tagger: Tagger, seed: int) -> dict[str, Scores]:
    """On texts to test on: the tagger, TextTiling as it does best on the other texts, and what looks at no sentence.

    "every n sentences" is the mean length of the other texts' segments; "random" has as many boundaries as they have,
    and its scores are a mean over 20 draws.
    """
    known, test = parts.train + parts.dev, parts.test
    rate = sum(len(text.starts) for text in known) / max(1, sum(len(text.vectors) for text in known))
    step = round(1 / rate) if rate else max((len(text.vectors) for text in test), default=1)
    tiling = best_texttiling(known)
    random = np.random.default_rng(seed)

    def drawn(text: Labelled) -> Starts:
        return np.flatnonzero(random.random(len(text.vectors) - 1) < rate) + 1

    draws = [score(test, drawn) for _ in range(_DRAWS)]
    return {
        "trained": score(test, lambda text: tagger.find(text.vectors)),
        f"TextTiling, window {tiling.window}, {tiling.deviations} deviations": score(
            test, lambda text: tiling.find(text.vectors)
        ),
        f"every {step} sentences": score(test, lambda text: np.arange(step, len(text.vectors), step)),
        "random": Scores(*np.mean(draws, axis=0).tolist()),
        "no boundary": score(test, lambda text: np.empty(0, dtype=np.int64)),
    }


def best_texttiling(texts: Sequence[Labelled]) -> TextTiling:
    """The window and the deviations that do best on some texts."""
    choices = [TextTiling(window=window, deviations=over) for window, over in product(_WINDOWS, _DEVIATIONS)]
    return min(choices, key=lambda tiling: score(texts, lambda text: tiling.find(text.vectors)).mean)
