"""Strategies of other packages, found by the entry points that those declare."""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from chunkcore.errors import OptionError

__all__ = ["GROUP", "load_plugin", "plugin_names"]

GROUP = "chunkcore.strategies"


def plugin_names() -> list[str]:
    """The names under which installed packages offer strategies, in alphabetical order; nothing is imported.

    >>> "recursive" in plugin_names()  # ours need no entry point
    False
    """
    return sorted(_offers())


def load_plugin(name: str) -> Any:
    """What an installed package offers under a name; None where none does. Its module is imported now.

    Raises:
        OptionError: several packages offer the name, or the package's module cannot be imported.

    >>> load_plugin("recursive") is None
    True
    """
    offers = _offers().get(name, [])
    if not offers:
        return None
    if len(offers) > 1:
        packages = ", ".join(sorted(map(package_of, offers)))
        raise OptionError(f"the strategy {name!r} is offered by several packages ({packages}): uninstall all but one")
    try:
        return offers[0].load()
    except Exception as error:  # whatever a foreign module does when it is imported
        told = " ".join(str(error).split())
        package = package_of(offers[0])
        raise OptionError(
            f"the strategy {name!r} of the package {package} cannot be loaded from {offers[0].value} "
            f"({type(error).__name__}: {told}): update {package} or uninstall it"
        ) from error


def package_of(offer: EntryPoint) -> str:
    """The name of the package that makes an offer."""
    return offer.dist.name if offer.dist else "(unknown)"


def _offers() -> dict[str, list[EntryPoint]]:
    """Entry points by name. Of a package that stands on the path twice, `entry_points` gives the first alone."""
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for each in entry_points(group=GROUP):
        found[each.name].append(each)
    return found
