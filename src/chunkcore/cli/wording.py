"""How help texts are written here: wrapped in the source, one line a paragraph on the way to the screen."""

from __future__ import annotations

import re

__all__ = ["help_text"]


def help_text(text: str) -> str:
    r"""Each paragraph on one line, with its brackets kept from being taken for styles; indented ones as examples.

    >>> help_text("One\ntwo [3].\n\n  chunkcore compare")
    'One two \\[3].\n\n[bold]Example:[/bold]\n\n  chunkcore compare'
    """
    paragraphs = [re.sub(r"\[(?=\S)", r"\\[", part) for part in text.strip("\n").split("\n\n")]
    prose = [" ".join(part.split()) for part in paragraphs if not part.startswith("  ")]
    examples = [part.rstrip() for part in paragraphs if part.startswith("  ")]
    title = [f"[bold]Example{'s' if len(examples) > 1 else ''}:[/bold]"] if examples else []
    return "\n\n".join([*prose, *title, *examples])
