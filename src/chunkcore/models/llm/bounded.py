"""The HTTP client of an endpoint: an answer may take so long and be so large, and no more."""

from __future__ import annotations

import time
from contextlib import suppress
from importlib import import_module
from typing import Any

__all__ = ["LARGEST", "TooLargeError", "bounded_client"]

LARGEST = 16 * 2**20  # bytes of a response, unpacked; the longest answers of today's models have one of them

_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")


class TooLargeError(Exception):
    """A response is larger than any answer."""


def bounded_client(openai: Any, seconds: float) -> Any:
    """A client for the openai package that reads a response for `seconds` and `LARGEST` bytes at most.

    The package's own time-out is one between two pieces of a response: a server that sends a byte now and then is
    never given up, and one that never ends is read until the memory is full.

    It raises what the package takes for a time-out where the time is over, which is looked at when a piece comes, so
    that one more time-out can go by; and for a broken connection, because of a `TooLargeError`, where there is more.
    """

    class Bounded(openai.DefaultHttpxClient):  # type: ignore[misc]
        """Reads responses as they come."""

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            end = time.monotonic() + seconds
            response = super().send(request, stream=True, **options)
            if stream:
                return response
            try:
                body = _read(response, request, end)
            finally:
                response.close()
            headers = [each for each in response.headers.multi_items() if each[0].lower() not in _OF_THE_BODY]
            return type(response)(
                response.status_code, headers=headers, content=body, request=request, extensions=response.extensions
            )

        def __del__(self) -> None:
            with suppress(Exception):
                self.close()

    return Bounded()


def _read(response: Any, request: Any, end: float) -> bytes:
    errors = import_module(type(request).__module__.partition(".")[0])  # httpx, or httpx2 with a later package
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > LARGEST:
            raise errors.ReadError("the response is too large", request=request) from TooLargeError()
        if time.monotonic() > end:
            raise errors.ReadTimeout("the response takes too long", request=request)
    return bytes(body)
