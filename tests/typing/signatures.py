"""The public signatures as lines, read by griffe from the sources.

python -m tests.typing.signatures    # writes tests/typing/signatures.txt, which a test compares
"""

from collections.abc import Iterator
from pathlib import Path

import griffe
from docs.making.site import reference

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_suffix(".txt")


def lines() -> Iterator[str]:
    """A line for each public function, class and method, sorted."""
    loader = griffe.GriffeLoader(search_paths=[ROOT / "src"], allow_inspection=False)
    for package in ("chunkcore", "chunkadapters", "haystack_integrations"):
        loader.load(package)
    loader.resolve_aliases(implicit=True, external=False)
    found: set[int] = set()
    for module, _, names in reference():
        for name in names:
            found.update(of_object(f"{module}.{name}", loader.modules_collection[f"{module}.{name}"]))
    yield from sorted(found)


def of_object(name: str, item: griffe.Object | griffe.Alias) -> Iterator[str]:
    """The line of a function or attribute; of a class its own and those of its public members."""
    if item.is_function:
        yield f"{name}{signature(item)}"
    elif item.is_class:
        yield name
        for member, value in item.members.items():
            if member == "__init__" or not member.startswith("_"):
                yield from of_object(f"{name}.{member}", value)
    elif item.is_attribute and item.annotation:
        yield f"{name}: {item.annotation}"


def signature(function: griffe.Object | griffe.Alias) -> str:
    """Parameters with their types and defaults, and the result's type."""
    parts: list[str] = []
    kinds: list[str] = []
    for parameter in function.parameters:
        kind = parameter.kind.value if parameter.kind else ""
        if kind == "keyword-only" and not {"keyword-only", "variadic positional"} & set(kinds):
            parts.append("*")
        kinds.append(kind)
        annotation = f": {parameter.annotation}" if parameter.annotation else ""
        default = f" = {parameter.default}" if parameter.default else ""
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        parts.append(f"{star}{parameter.name}{annotation}{'' if star else default}")
    return f"({', '.join(parts)}) -> {function.returns}"


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
