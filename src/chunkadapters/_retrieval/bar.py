"""A progress bar for whoever says only ``progress=True``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chunkcore.progress import Progress

__all__ = ["Progress", "telling"]


@contextmanager
def telling(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What is told of progress: to the function, or for True to a bar on standard error, which goes in the end."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield None
        return
    from rich.console import Console  # slow to import
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("questions"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("questions", total=None)
        yield lambda stage, done, total: bar.update(task, completed=done, total=total)
