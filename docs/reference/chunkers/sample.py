"""Times of the ferry."""

import bisect

LEAVES = ["07:10", "09:40", "12:15", "17:05"]


def next_ferry(now: str) -> str | None:
    """When the next one leaves, if one does today."""
    place = bisect.bisect_left(LEAVES, now)
    return LEAVES[place] if place < len(LEAVES) else None


class Ticket:
    """A crossing, paid for."""

    def __init__(self, passenger: str, bicycle: bool = False) -> None:
        self.passenger = passenger
        self.bicycle = bicycle

    @property
    def price(self) -> float:
        return 4.5 + 2.0 * self.bicycle

    def __str__(self) -> str:
        extra = ", with a bicycle" if self.bicycle else ""
        return f"{self.passenger}{extra}: {self.price:.2f}"
