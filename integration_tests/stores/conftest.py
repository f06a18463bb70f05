"""A PostgreSQL server with pgvector: the one of CHUNKADAPTERS_POSTGRES, or one that the tests start and stop."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its URL, ``postgresql://user:password@host:port/database``; the tests leave empty tables in it."""
    if url := os.environ.get("CHUNKADAPTERS_POSTGRES"):
        yield url
        return
    pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed, nor CHUNKADAPTERS_POSTGRES set")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()
