"""Recall against retrieved tokens as one SVG, a panel a collection: the picture of docs/evidence/passages.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

LINES = {"passages": ("#b3261e", 2.6), "hybrid": ("#1f5fa8", 1.6), "bm25": ("#3b7d3b", 1.6), "dense": ("#8a8a8a", 1.6)}
COLUMNS, WIDTH, HEIGHT = 4, 210, 190


def curves(collections: Mapping[str, Mapping[str, Sequence[float]]], budgets: Sequence[int]) -> str:
    """Each collection's lines by name: recall in percent at each budget. Budgets are evenly spaced."""
    rows = -(-(len(collections) + 1) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT
    told = "; ".join(
        f"{name} {', '.join(f'{line} {values[budgets.index(1000)]:.0f}' for line, values in lines.items())}"
        for name, lines in collections.items()
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" fill="#333">',
        f"<title>Recall in percent against retrieved tokens. At 1,000 tokens: {escape(told)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (name, lines) in enumerate(collections.items()):
        left, top = number % COLUMNS * WIDTH, number // COLUMNS * HEIGHT
        parts.append(f'<g transform="translate({left} {top})">{_panel(name, lines, budgets)}</g>')
    number = len(collections)
    left, top = number % COLUMNS * WIDTH + 40, number // COLUMNS * HEIGHT + 40
    for place, (name, (colour, thick)) in enumerate(LINES.items()):
        y = top + 22 * place
        text = name if name == "passages" else f"best {name} of any size"
        parts.append(f'<path d="M{left} {y}h22" stroke="{colour}" stroke-width="{thick}"/>')
        parts.append(f'<text x="{left + 30}" y="{y + 4}">{text}</text>')
    parts.append(f'<text x="{left}" y="{top + 96}">across: retrieved tokens</text>')
    parts.append(f'<text x="{left}" y="{top + 112}">up: recall, %</text></svg>')
    return "\n".join(parts) + "\n"


def _panel(name: str, lines: Mapping[str, Sequence[float]], budgets: Sequence[int]) -> str:
    left, right, top, bottom = 30, WIDTH - 14, 26, HEIGHT - 24
    step = (right - left) / (len(budgets) - 1)
    parts = [f'<text x="{left}" y="16" font-weight="bold">{escape(name)}</text>']
    for value in (0, 25, 50, 75, 100):
        y = bottom - (bottom - top) * value / 100
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    for place, budget in enumerate(budgets):
        x = left + step * place
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{budget}</text>')
    for line, (colour, thick) in reversed(LINES.items()):
        points = " ".join(
            f"{left + step * place:.1f},{bottom - (bottom - top) * value / 100:.1f}"
            for place, value in enumerate(lines[line])
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
    return "".join(parts)
