"""What docstrings are written in, as Markdown. It imports nothing of the project, for the site's builder."""

from __future__ import annotations

import re

__all__ = ["docstring_markdown", "markdown_line"]


def markdown_line(line: str) -> str:
    """A line of a docstring: literals stand between single back quotes, and only there "<" is no markup.

    >>> markdown_line("``a < b`` is spacy:<pipeline>")
    '`a < b` is spacy:&lt;pipeline>'
    """
    parts = re.split(r"(`.+?`)", re.sub(r"``(.+?)``", r"`\1`", line))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def docstring_markdown(docstring: str) -> str:
    r"""A whole docstring without indentation: also its examples are marked as such; indented lines stay as they are.

    >>> docstring_markdown("It adds.\n\n>>> 1 + 1\n2").splitlines()
    ['It adds.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    blocks = re.split(r"\n{2,}", docstring.strip("\n"))
    return "\n\n".join(map(_block, blocks))


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    return "\n".join(line if line.startswith("     ") else markdown_line(line) for line in block.split("\n"))
