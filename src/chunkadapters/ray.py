"""`RayMap`: chunkcore's sharded search as Ray tasks. Ray is imported at the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chunkcore.lazy import needed
from chunkcore.registry import check_number


@dataclass(frozen=True, kw_only=True)
class RayMap:
    """A `map` that sends each item to a Ray worker; answers come as they are done, in any order.

    The function goes to Ray's object store once. Items are taken when there is room, so that items and answers do not
    pile up in memory. Ray repeats the task of a worker that died.

        from chunkadapters.ray import RayMap
        from chunkcore import run_experiment
        from chunkcore.retrieval import Sharded

        run_experiment(benchmark, chunkers, retrievers=[Sharded(mapper=RayMap(in_flight=8), folder="/shared/vectors")])

    Attributes:
        in_flight: items at the same time; twice the number of workers keeps them busy.
        options: of `ray.remote`, such as ``{"num_cpus": 2, "memory": 2**30}``.

    Raises:
        OptionError: in_flight is under 1.
        MissingExtraError: Ray is not installed.
    """

    in_flight: int = 4
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_number("in_flight", self.in_flight, 1)

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """The answers, as they come."""
        ray = needed("ray", "ray", "spread work over its workers")
        held = ray.put(function)
        task = ray.remote(**self.options)(_call) if self.options else ray.remote(_call)
        waiting: list[Any] = []
        try:
            for item in items:
                if len(waiting) == self.in_flight:
                    yield ray.get(_first_done(ray, waiting))
                waiting.append(task.remote(held, item))
            while waiting:
                yield ray.get(_first_done(ray, waiting))
        finally:
            # After an error, or if the caller stops early.
            for each in waiting:
                ray.cancel(each)


def _first_done(ray: Any, waiting: list[Any]) -> Any:
    """Remove the first task that is done from `waiting`."""
    (done, *_), _ = ray.wait(waiting, num_returns=1)
    waiting.remove(done)
    return done


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)
