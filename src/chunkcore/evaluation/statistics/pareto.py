"""`pareto_front`: the undominated points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from chunkcore.errors import DataError, OptionError


def pareto_front(points: ArrayLike, *, better: Sequence[str] = ("low", "high")) -> list[int]:
    """The positions of the points that no other point dominates (as good in every coordinate, better in one).

    Sorted by the first coordinate from good to bad, then by the next. Equal points do not dominate each other; points
    with a non-finite coordinate are left out. Time O(n² · coordinates).

    Args:
        points: shape (n, coordinates); by default pairs of a price and a quality, such as retrieved tokens and recall.
        better: whether the "low" or the "high" is better, for each coordinate.

    Raises:
        OptionError: `better` holds another word.
        DataError: the points are not a numeric matrix with one column per word of `better`.

    >>> pareto_front([(800, 0.75), (400, 0.75), (200, 0.5), (300, 0.4)])
    [2, 1]
    """
    for word in better:
        if word not in ("low", "high"):
            raise OptionError(f'better is "low" or "high" for each coordinate, got {word!r}')
    width = len(better)
    try:
        rows = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"points are rows of {width} numbers ({error})") from error
    if rows.size and (rows.ndim != 2 or rows.shape[1] != width):
        raise DataError(f"points are rows of {width} numbers, got an array of shape {rows.shape}")
    rows = rows.reshape(-1, width) * [1 if word == "low" else -1 for word in better]
    known = np.flatnonzero(np.isfinite(rows).all(axis=1))
    rows = rows[known]
    beaten = [bool(((rows <= row).all(axis=1) & (rows < row).any(axis=1)).any()) for row in rows]
    kept = ~np.array(beaten, dtype=np.bool_)
    order = np.lexsort(rows[kept].T[::-1])
    return [int(each) for each in known[kept][order]]
