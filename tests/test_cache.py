"""The cache of embeddings: shared by processes, survives being killed, damaged or unwritable, embeds nothing twice."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from chunkcore.cli import main
from chunkcore.errors import ModelError, OptionError
from chunkcore.models import CachedEmbedder, CacheWarning, EmbeddingCache
from chunkcore.models import cache as cache_module
from chunkcore.models.cache import LLMCache
from chunkcore.plain import text_key
from chunkcore.retrieval import TextVectors
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import BROKEN, ChangingEmbedder, FakeEmbedder, RaisingEmbedder
from tests.processes import started
from tests.strategies import hard_text


def keys(*texts: str) -> list[bytes]:
    return [text_key(text) for text in texts]


def rows(*values: float, dimensions: int = 3) -> np.ndarray:
    return np.repeat(np.array(values, dtype=np.float32)[:, None], dimensions, axis=1)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "deep" / "embeddings.sqlite"


def test_vectors_come_back_to_the_last_bit_after_reopening(path):
    vectors = np.random.default_rng(0).standard_normal((1200, 5)).astype(np.float32)
    names = keys(*map(str, range(1200)))
    cache = EmbeddingCache(path)
    cache.store("m", names, vectors)
    cache = EmbeddingCache(path)
    found, again = cache.fetch("m", [*names[::-1], *keys("unknown")])
    assert len(cache) == 1200
    assert found.tolist() == [True] * 1200 + [False]
    assert again[:-1].tobytes() == vectors[::-1].tobytes()
    assert not again[-1].any()


def test_a_pickled_cache_opens_the_same_file(path):
    model = CachedEmbedder(FakeEmbedder(), EmbeddingCache(path), batch_size=3)
    model.embed_documents(["a"])
    again = pickle.loads(pickle.dumps(model))
    again.embed_documents(["a"])
    assert (again.embedded, again.batch_size, again.cache.path) == (0, 3, path)
    assert len(pickle.loads(pickle.dumps(EmbeddingCache()))) == 0


def test_an_altered_entry_is_a_miss_and_can_be_stored_again(path):
    EmbeddingCache(path).store("m", keys("a", "b", "c"), rows(1.0, 2.0, 3.0))
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE entries SET value = zeroblob(12) WHERE key = ?", keys("a"))
        raw.execute("UPDATE entries SET value = CAST(x'ff00ff00' AS TEXT) WHERE key = ?", keys("b"))
    cache = EmbeddingCache(path)
    with pytest.warns(CacheWarning, match="has 2 damaged entries of 3 that were looked up") as warned:
        found = [cache.fetch("m", keys("a", "b", "c"))[0].tolist() for _ in range(2)]
    assert (found, len(warned)) == ([[False, False, True]] * 2, 1)
    with pytest.raises(ModelError, match="NaN"):
        cache.store("m", keys("c"), rows(np.nan))
    cache.store("m", keys("a", "b"), rows(1.0, 2.0))
    assert cache.fetch("m", keys("a", "b", "c"))[1][:, 0].tolist() == [1.0, 2.0, 3.0]


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:  # what it wrote is in the file, not beside it
        raw.execute("CREATE TABLE mine (x)")


def of_another_version(path: Path) -> None:
    EmbeddingCache(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA user_version = 2")


def unreadable(path: Path) -> None:
    """Nothing but the header's first bytes, the version, and the number that says whose it is."""
    path.write_bytes(b"SQLite format 3\0" + bytes(44) + b"\0\0\0\3" + bytes(4) + b"chkc" + bytes(5000))


def truncated(path: Path) -> None:
    EmbeddingCache(path).store("m", keys(*map(str, range(500))), rows(*range(500), dimensions=50))
    os.truncate(path, path.stat().st_size // 2)


FOREIGN = {
    "a text file": lambda path: path.write_text("Dear diary, today I became a cache.\n" * 50),
    "a few bytes": lambda path: path.write_text("hello"),
    "another program's": other_database,
    "zeros": lambda path: path.write_bytes(bytes(5000)),
}
DAMAGES = {"of another version": of_another_version, "unreadable": unreadable, "cut off": truncated}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_cache_is_set_aside_with_one_warning_and_a_new_one_begun(path, damage):
    path.parent.mkdir()
    damage(path)
    before = path.read_bytes()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CacheWarning)
        cache = EmbeddingCache(path)
        cache.fetch("m", keys(*map(str, range(500))))
    (warning,) = caught
    assert "it was set aside as embeddings.sqlite.damaged and a new one begun" in str(warning.message)
    cache.store("m", keys("a"), rows(1.0))
    assert path.with_name("embeddings.sqlite.damaged").read_bytes() == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert EmbeddingCache(path).fetch("m", keys("a"))[0].tolist() == [True]


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_file_that_is_not_ours_is_refused_and_left_as_it_is(path, make):
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    with pytest.raises(OptionError, match=r"embeddings\.sqlite' is no cache .*name another file"):
        EmbeddingCache(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("place", ["under a file", "a folder", "no name"])
def test_where_nothing_can_be_written_the_run_goes_on(tmp_path, place):
    (tmp_path / "file").touch()
    where = {"under a file": "file/cache.sqlite", "a folder": "", "no name": "\0"}[place]
    with pytest.warns(CacheWarning, match="cannot be read .* going on with memory alone"):
        cache = EmbeddingCache(tmp_path / where)
    cache.store("m", keys("a"), rows(1.0))
    assert cache.fetch("m", keys("a"))[0].tolist() == [True]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_the_file_is_its_owners_alone(path):
    EmbeddingCache(path).store("m", keys("a"), rows(1.0))
    assert path.stat().st_mode & 0o777 == 0o600


def test_past_its_limit_a_cache_removes_what_was_not_used_for_the_longest_time(path, monkeypatch):
    monkeypatch.setattr(cache_module, "MAX_BYTES", 200_000)
    cache = EmbeddingCache(path)
    hour = 0
    monkeypatch.setattr(cache_module, "hours_since_1970", lambda: hour)
    for hour in range(30):
        cache.store("m", keys(*(f"{hour} {number}" for number in range(20))), rows(*[hour] * 20, dimensions=200))
        assert cache.fetch("m", keys(*(f"0 {number}" for number in range(20))))[0].all()  # used every hour
    assert path.stat().st_size < 300_000
    assert cache.fetch("m", keys("29 0", "1 0"))[0].tolist() == [True, False]


WRITER = """
import sys
import numpy as np
from chunkcore.plain import text_key
from chunkcore.models.cache import EmbeddingCache

path, name, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
cache = EmbeddingCache(path)
for batch in range(batches):
    keys = [text_key(f"{name} {batch} {i}") for i in range(20)]
    cache.store("m", keys, np.full((20, 64), batch, dtype=np.float32))
    print(batch, flush=True)
"""


def writer(path: Path, warned: str = "error") -> list[str]:
    return [sys.executable, "-W", warned, "-c", WRITER, str(path)]


def written_at_once(command: list[str], batches: int) -> None:
    """Three processes that store batches under names of their own."""
    with ExitStack() as stack:
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        processes = [stack.enter_context(started([*command, name, str(batches)], **pipes)) for name in "abc"]
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors


def stored(cache: EmbeddingCache, name: str, batches: int) -> bool:
    for batch in range(batches):
        found, vectors = cache.fetch("m", keys(*(f"{name} {batch} {i}" for i in range(20))))
        if not found.all() or not (vectors == batch).all():
            return False
    return True


def test_processes_that_write_at_once_lose_nothing(path):
    """Both begin the file, too."""
    written_at_once(writer(path), 20)
    cache = EmbeddingCache(path)
    assert len(cache) == 3 * 20 * 20
    assert all(stored(cache, name, 20) for name in ("a", "b", "c"))


def test_what_was_stored_before_a_kill_is_there(path):
    with started([*writer(path), "a", "100000"], stdout=subprocess.PIPE) as process:
        done = [int(process.stdout.readline()) for _ in range(25)]
        process.send_signal(signal.SIGKILL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache = EmbeddingCache(path)
        assert stored(cache, "a", len(done))
        assert len(cache) % 20 == 0  # no batch by halves
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("is_file", [True, False])
def test_a_forked_process_shares_the_file_and_leaves_what_is_in_memory_alone(path, is_file):
    cache = EmbeddingCache(path if is_file else None)
    cache.store("m", keys("a"), rows(1.0))
    child = os.fork()
    if child == 0:
        had = cache.fetch("m", keys("a"))[0].all()
        cache.store("m", keys("b"), rows(2.0))
        os._exit(not had)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.fetch("m", keys("a", "b"))[0].tolist() == [True, is_file]


def test_a_writer_waits_only_so_long_for_another_process(path, monkeypatch):
    monkeypatch.setattr("chunkcore.models.cache.WAIT", 0.1)
    cache = EmbeddingCache(path)
    cache.store("m", keys("a"), rows(1.0))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert cache.fetch("m", keys("a"))[0].all()
        with pytest.warns(CacheWarning, match=r"cannot be written to \(database is locked\)"):
            cache.store("m", keys("b"), rows(2.0))
    assert cache.fetch("m", keys("a", "b"))[0].all()


@given(st.lists(hard_text(max_parts=4), max_size=12), st.integers(1, 5))
def test_the_vectors_are_the_models_own_in_order(texts, batch_size):
    plain, cached = FakeEmbedder(), CachedEmbedder(FakeEmbedder(), batch_size=batch_size)
    for _ in range(2):
        vectors = cached.embed_documents(texts)
        assert vectors.dtype == np.float32
        assert len(vectors) == len(texts)
        if texts:
            assert (vectors == plain.embed_documents(texts)).all()
    assert cached.embedded == len(set(texts))


def test_each_distinct_text_is_embedded_once_in_a_call_across_calls_and_across_runs(path):
    first = FakeEmbedder()
    cached = CachedEmbedder(first, EmbeddingCache(path))
    cached.embed_documents(["a", "b", "a", "a"])
    cached.embed_documents(["b", "c"])
    assert sorted(first.texts) == ["a", "b", "c"]
    second = FakeEmbedder()
    CachedEmbedder(second, EmbeddingCache(path)).embed_documents(["c", "d", "a"])
    assert second.texts == ["d"]


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(path):
    texts = [f"text {i}" for i in range(10)]
    failing = RaisingEmbedder(allowed=3)
    with pytest.raises(ModelError, match="the model's server hung up"):
        CachedEmbedder(failing, EmbeddingCache(path), batch_size=2).embed_documents(texts)
    second = FakeEmbedder()
    vectors = CachedEmbedder(second, EmbeddingCache(path), batch_size=2).embed_documents(texts)
    assert len(second.texts) == 4
    assert (vectors == FakeEmbedder().embed_documents(texts)).all()


def test_threads_that_ask_for_the_same_text_embed_it_once():
    class Slow(FakeEmbedder):
        def embed_documents(self, texts):
            time.sleep(0.05)
            return super().embed_documents(texts)

    cached = CachedEmbedder(Slow())
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(cached.embed_documents, [["a", "b"]] * 8))
    assert sorted(cached.embedder.texts) == ["a", "b"]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_answer_is_told_and_not_kept(broken):
    cached = CachedEmbedder(broken())
    for calls, ask in [(2, cached.embed_documents), (4, TextVectors(cached).embed)]:
        with pytest.raises(ModelError, match="the model 'fake'"):
            ask(["a", "b"])
        assert (len(cached.cache), cached.embedder.calls) == (0, 0 if broken is RaisingEmbedder else calls)


def test_a_model_that_changes_its_mind_about_dimensions_is_told():
    with pytest.raises(ModelError, match="vectors of several lengths"):
        CachedEmbedder(ChangingEmbedder(), batch_size=1).embed_documents(["a", "b"])


def test_the_command_says_how_large_the_cache_is_and_clears_it(path, capsys):
    EmbeddingCache(path).store("m", keys(*map(str, range(400))), rows(*range(400), dimensions=100))
    LLMCache(path).store("m", b"question", "an answer")

    def said(*words: str) -> str:
        assert main(["cache", *words, "--cache", str(path)]) == 0
        return capsys.readouterr().out

    assert "400 vectors, 1 answers" in said("size")
    removed, left = said("clear").splitlines()
    assert (removed, left[-20:]) == ("401 entries removed", "0 vectors, 0 answers")
    assert main(["cache", "clear", "--cache", str(path.parent)]) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "cache.sqlite")
    with pytest.warns(cache_module.CacheWarning, match="it is a pipe"):
        EmbeddingCache(tmp_path / "cache.sqlite")
