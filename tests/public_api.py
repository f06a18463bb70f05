"""Everything that others may rely on, a line each: names with signatures, strategies, commands with options.

    python -m tests.public_api              # writes docs/api_signatures.txt anew
    python -m tests.public_api --breaking   # what has changed since the last release that others' code may break on

The modules are read, not imported, by griffe: so the frameworks need not be there, and annotations and defaults stand
as they are written, in every version of Python.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
import typer

from docs.making.site import ADAPTERS, ROOMS, listed

__all__ = ["LISTING", "breaking", "listing"]

_COLOUR = re.compile(r"\x1b\[\d+m")
ROOT = Path(__file__).resolve().parents[1]
LISTING = ROOT / "docs" / "api_signatures.txt"
# The modules whose `__all__` is public. Haystack writes the last ones' names into pipelines.
HAYSTACK = "haystack_integrations.components"
KINDS = ("embedders", "evaluators", "preprocessors", "rankers", "retrievers", "writers")
MODULES = (
    "chunkcore",
    *(f"chunkcore.{name}" for name in ROOMS),
    *(f"chunkadapters.{name}" for name in ADAPTERS),
    *(f"{HAYSTACK}.{kind}.chunkadapters" for kind in KINDS),
)


def listing() -> str:
    """The whole, as it stands in the checkout."""
    loader = _loader()
    lines = [line for module in MODULES for line in (*_module(loader.modules_collection[module]), "")]
    return "\n".join([*lines, *_strategies(), "", *_commands()]) + "\n"


def breaking(tag: str, root: Path = ROOT) -> list[str]:
    """What others' code may break on: a checkout against a release's tag."""
    found = []
    for package in ("chunkcore", "chunkadapters"):
        how: dict[str, Any] = {"extensions": griffe.load_extensions(_Listed()), "allow_inspection": False}
        before = griffe.load_git(package, ref=tag, repo=root, search_paths=["src"], **how)
        now = griffe.load(package, search_paths=[root / "src"], **how)
        found += griffe.find_breaking_changes(before, now)
    return [_COLOUR.sub("", each.explain(griffe.ExplanationStyle.ONE_LINE)) for each in found]


class _Listed(griffe.Extension):
    """Lets griffe know the names that a module imports on first use."""

    def on_module_instance(self, *, node: Any, mod: griffe.Module, **kwargs: Any) -> None:
        if names := listed(node):
            mod.exports = list(names)


def _loader() -> griffe.GriffeLoader:
    extensions = griffe.load_extensions(_Listed())
    loader = griffe.GriffeLoader(search_paths=[ROOT / "src"], extensions=extensions, allow_inspection=False)
    for package in ("chunkcore", "chunkadapters"):
        loader.load(package)
    for kind in KINDS:
        loader.load(f"{HAYSTACK}.{kind}.chunkadapters")
    loader.resolve_aliases(implicit=True, external=False)
    return loader


def _module(module: griffe.Module) -> Iterator[str]:
    yield f"# {module.path}"
    for name in sorted(map(str, module.exports or ())):
        yield from _lines(name, module[name], frozenset(map(str, module.exports or ())))


def _lines(name: str, found: griffe.Object | griffe.Alias, listed: frozenset[str] = frozenset()) -> Iterator[str]:
    if found.is_class:
        bases = f" is a {', '.join(map(str, found.bases))}" if found.bases else ""
        yield f"{name}({', '.join(_parameters(found.parameters))}){bases}"
        for member, inside in sorted(_members(found, listed).items()):
            if not (member.startswith("_") or inside.is_class or member in found.parameters):
                yield from (f"    {line}" for line in _lines(member, inside))
    elif found.is_function:
        labels = "".join(f"@{label} " for label in ("classmethod", "staticmethod") if label in found.labels)
        yield f"{labels}{name}({', '.join(_parameters(found.parameters))}) -> {found.returns}"
    else:
        yield f"{name}: {found.annotation}" if found.annotation else name


def _members(found: griffe.Object | griffe.Alias, listed: frozenset[str]) -> dict[str, griffe.Object | griffe.Alias]:
    """A class's own, and those of its bases that are not listed themselves."""
    members: dict[str, griffe.Object | griffe.Alias] = {}
    for base in reversed(found.mro()):
        if base.name not in listed:
            members.update(base.members)
    return {**members, **found.members}


def _parameters(parameters: griffe.Parameters) -> Iterator[str]:
    keyword_only = False
    for each in parameters:
        if each.name in ("self", "cls"):
            continue
        if each.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            keyword_only = True
            yield "*"
        keyword_only |= each.kind is griffe.ParameterKind.var_positional
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(each.kind, "")
        default = f" = {each.default}" if each.default is not None and not stars else ""
        yield f"{stars}{each.name}: {each.annotation}{default}"


def _strategies() -> Iterator[str]:
    from chunkcore import strategies

    yield "# strategies, by the names that strings and files give them"
    for name, strategy in sorted(strategies.items()):
        if strategy.__module__.startswith("chunkcore."):
            yield f"{name}: {strategy.__name__}"


def _commands() -> Iterator[str]:
    from chunkcore.cli import app

    yield "# the command line"
    yield from _command("chunkcore", typer.main.get_command(app))


def _command(name: str, command: object) -> Iterator[str]:
    options = [option for each in getattr(command, "params", ()) for option in (*each.opts, *each.secondary_opts)]
    yield " ".join([name, *(option for option in options if option not in ("--help", "-h"))])
    for below, each in sorted(getattr(command, "commands", {}).items()):
        yield from _command(f"{name} {below}", each)


def _last_release() -> str | None:
    tagged = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "--match", "v*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return tagged.stdout.strip() or None


def main() -> int:
    """Write the listing, or tell what breaks; the exit code is 1 where something does."""
    asked = argparse.ArgumentParser(prog="python -m tests.public_api")
    asked.add_argument("--breaking", action="store_true", help="compare with the last release's tag")
    if not asked.parse_args().breaking:
        LISTING.write_text(listing(), encoding="utf-8")
        return 0
    if (tag := _last_release()) is None:
        print("no release is tagged yet (v0.1.0 would be): there is nothing to break")
        return 0
    found = breaking(tag)
    print("\n".join(found) or f"nothing that {tag} promised is broken")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
