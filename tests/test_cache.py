"""The cache of embeddings: shared by processes, survives being killed, damaged or unwritable, embeds nothing twice."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkcore.errors import ModelError, OptionError
from chunkcore.models import CachedEmbedder, CacheWarning, Embedder, EmbeddingCache, TokenCountingEmbedder
from chunkcore.models.cache import LLMCache, text_key
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


# --- what is kept ---------------------------------------------------------------------------------------------


def test_vectors_come_back_to_the_last_bit_after_reopening(path):
    vectors = np.random.default_rng(0).standard_normal((1200, 5)).astype(np.float32)
    names = keys(*map(str, range(1200)))
    with EmbeddingCache(path) as cache:
        cache.store("m", names, vectors)
    with EmbeddingCache(path) as cache:
        found, again = cache.fetch("m", [*names[::-1], *keys("unknown")])
        assert len(cache) == 1200
    assert found.tolist() == [True] * 1200 + [False]
    assert again[:-1].tobytes() == vectors[::-1].tobytes()
    assert not again[-1].any()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python cannot lower SQLite's limits")
def test_more_keys_are_asked_for_than_sqlite_takes_parameters(path):
    with EmbeddingCache(path) as cache:
        cache._disk.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
        names = keys(*map(str, range(1200)))
        cache.store("m", names, rows(*range(1200)))
        assert cache.fetch("m", names)[1][:, 0].tolist() == list(range(1200))


def test_models_roles_and_texts_are_told_apart(path):
    cache = EmbeddingCache(path)
    cache.store("m", keys("a"), rows(1.0))
    assert cache.fetch("n", keys("a"))[0].tolist() == [False]
    assert text_key("a", "query") != text_key("a", "document") != text_key("a")
    assert text_key("\ud800") != text_key("\udc00") != text_key("\ufffd")


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_a_model_whose_dimensions_change_is_told(path, where):
    cache = EmbeddingCache(path if where == "disk" else None)
    cache.store("m", keys("a"), rows(1.0, dimensions=3))
    with pytest.raises(ModelError, match="answered with 4 dimensions, and its cached vectors have 3"):
        cache.store("m", keys("b", "c"), rows(1.0, 2.0, dimensions=4))
    assert len(cache) == 1


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (rows(1.0, np.nan), "NaN or infinity in 1 of 2"),
        (rows(1.0), "2 texts and answered with 1 vectors"),
        (rows(1.0, 2.0, 3.0), "2 texts and answered with 3 vectors"),
        (np.zeros(2, dtype=np.float32), r"shape \(2,\)"),
    ],
)
def test_what_is_no_vector_is_not_kept(path, vectors, message):
    cache = EmbeddingCache(path)
    with pytest.raises(ModelError, match=message):
        cache.store("m", keys("a", "b"), vectors)
    assert len(cache) == 0


def test_a_pickled_cache_opens_the_same_file(path):
    model = CachedEmbedder(FakeEmbedder(), EmbeddingCache(path, wait_seconds=7.0), batch_size=3)
    model.embed_documents(["a"])
    again = pickle.loads(pickle.dumps(model))
    again.embed_documents(["a"])
    assert (again.embedded, again.batch_size, again.cache.path, again.cache._wait) == (0, 3, path, 7.0)
    assert len(pickle.loads(pickle.dumps(EmbeddingCache()))) == 0


def test_a_row_that_was_altered_is_not_there(path):
    EmbeddingCache(path).store("m", keys("a", "b", "c"), rows(1.0, 2.0, 3.0))
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE entries SET value = zeroblob(12) WHERE key = ?", keys("a"))
        raw.execute("UPDATE entries SET value = zeroblob(8) WHERE key = ?", keys("b"))
    with EmbeddingCache(path) as cache:
        with pytest.warns(CacheWarning, match="has 2 damaged entries of 3 asked for"):
            assert cache.fetch("m", keys("a", "b", "c"))[0].tolist() == [False, False, True]
        cache.store("m", keys("a", "b"), rows(1.0, 2.0))
        assert cache.fetch("m", keys("a", "b", "c"))[1][:, 0].tolist() == [1.0, 2.0, 3.0]


WRONG = {
    "a number": "5",
    "a text": "'text'",
    "a text that is not UTF-8": "CAST(x'ff00ff00' AS TEXT)",
    "nothing": "zeroblob(0)",
    "another length": "zeroblob(5)",
}


@pytest.mark.parametrize("column", ["key", "value", "checksum"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
@pytest.mark.filterwarnings("ignore::chunkcore.models.CacheWarning")
def test_a_row_of_a_wrong_type_is_a_miss_and_is_replaced(path, column, wrong):
    vectors, answers = EmbeddingCache(path), LLMCache(path)
    vectors.store("m", keys("a", "b"), rows(1.0, 2.0))
    answers.store("m", b"question", "an answer")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE entries SET {column} = {wrong} WHERE key IN (?, ?)", [*keys("a"), b"question"][:2])
    assert vectors.fetch("m", keys("a", "b"))[0].tolist() == [False, True]
    assert answers.fetch("m", b"question") is None
    vectors.store("m", keys("a"), rows(1.0))
    answers.store("m", b"question", "an answer")
    assert vectors.fetch("m", keys("a", "b"))[0].all()
    assert answers.fetch("m", b"question") == "an answer"


@pytest.mark.parametrize(
    "value",
    [b"", bytes(5), np.array([1, np.nan, 3], dtype="<f4").tobytes(), np.full(3, np.inf, dtype="<f4").tobytes()],
)
def test_a_row_that_is_no_vector_is_a_miss_whatever_its_checksum(path, value):
    cache = EmbeddingCache(path)
    cache._write("m", [(keys("a")[0], value)])
    assert cache.fetch("m", keys("a"))[0].tolist() == [False]
    cache.store("m", keys("a", "b"), rows(1.0, 2.0))
    assert cache.fetch("m", keys("a", "b"))[0].all()


def test_an_answer_that_is_no_text_is_a_miss_whatever_its_checksum(path):
    cache = LLMCache(path)
    cache._write("m", [(b"question", b"\xff\xfe")])
    assert cache.fetch("m", b"question") is None


@pytest.mark.filterwarnings("ignore::chunkcore.models.CacheWarning")
def test_no_flipped_bit_next_to_a_key_returns_another_texts_vector_or_answer(path, tmp_path):
    names = [f"text {number}" for number in range(12)]
    with EmbeddingCache(path) as vectors, LLMCache(path) as answers:
        vectors.store("m", keys(*names), rows(*range(12)))
        vectors.store("n", keys(*names), rows(*range(100, 112)))
        for name in names:
            answers.store("m", text_key(name, "answer"), name)
    data = path.read_bytes()
    places = {place for key in keys(*names[:3]) for place in found_at(data, key)}
    places |= {place for name in names[:3] for place in found_at(data, text_key(name, "answer"))}
    shifts = (-4, -3, -2, -1, 0, 19, 20, 21, 22)
    bits = [(place + shift, bit) for place in places for shift in shifts for bit in (0, 6)]
    assert len(bits) > 200
    still_there = 0
    copy = tmp_path / "flipped.sqlite"
    for place, bit in bits:
        if place >= len(data):
            continue
        flipped = bytearray(data)
        flipped[place] ^= 1 << bit
        copy.write_bytes(flipped)
        for log in tmp_path.glob("flipped.sqlite?*"):
            log.unlink()
        with EmbeddingCache(copy) as vectors, LLMCache(copy) as answers:
            for model, base in (("m", 0), ("n", 100)):
                found, got = vectors.fetch(model, keys(*names))
                assert got[found][:, :1].ravel().tolist() == [base + number for number in np.flatnonzero(found)]
                still_there += int(found.sum())
            assert all(answers.fetch("m", text_key(name, "answer")) in (name, None) for name in names)
    assert still_there > 0.8 * len(bits) * 2 * len(names)


def found_at(data: bytes, key: bytes) -> list[int]:
    return [place for place in range(len(data)) if data.startswith(key, place)]


def test_vectors_and_answers_share_a_file(path):
    with EmbeddingCache(path) as vectors, LLMCache(path) as answers:
        vectors.store("m", keys("a"), rows(1.0))
        answers.store("m", *keys("a"), "an answer")
        assert (len(vectors), len(answers)) == (1, 1)
    with EmbeddingCache(path) as vectors, LLMCache(path) as answers:
        assert vectors.fetch("m", keys("a"))[1].tolist() == [[1.0] * 3]
        assert answers.fetch("m", *keys("a")) == "an answer"


# --- files that are no cache ----------------------------------------------------------------------------------


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:  # what it wrote is in the file, not beside it
        raw.execute("CREATE TABLE mine (x)")


def later_version(path: Path) -> None:
    EmbeddingCache(path).close()
    with closing(sqlite3.connect(path)) as raw, raw:  # what it wrote is in the file, not beside it
        raw.execute("PRAGMA user_version = 99")


def unreadable(path: Path) -> None:
    """Nothing but the header's first bytes and the number that says whose it is."""
    path.write_bytes(b"SQLite format 3\0" + bytes(52) + b"chkc" + bytes(5000))


def truncated(path: Path) -> None:
    with EmbeddingCache(path) as cache:
        cache.store("m", keys(*map(str, range(500))), rows(*range(500), dimensions=50))
    os.truncate(path, path.stat().st_size // 2)


def of_the_first_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("CREATE TABLE answers (model, key, answer, checksum)")
        raw.execute(f"PRAGMA application_id = {0x63686B61}")
        raw.execute("PRAGMA user_version = 1")


FOREIGN = {
    "a text file": lambda path: path.write_text("Dear diary, today I became a cache.\n" * 50),
    "a few bytes": lambda path: path.write_text("hello"),
    "another program's": other_database,
    "another program's, damaged": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(5000)),
    "zeros": lambda path: path.write_bytes(bytes(5000)),
}
DAMAGES = {
    "of a later version": later_version,
    "of the first version": of_the_first_version,
    "unreadable": unreadable,
    "cut off": truncated,
}


def told_of(path: Path, *, private: bool = False) -> EmbeddingCache:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test has left
        cache = EmbeddingCache(path, private=private)
        cache.fetch("m", keys(*map(str, range(500))))
    (only,) = told
    assert only.category is CacheWarning
    assert "it was set aside as embeddings.sqlite.damaged-1 and a new one begun" in str(only.message)
    return cache


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_cache_is_set_aside_and_a_new_one_begun(path, damage):
    path.parent.mkdir()
    damage(path)
    before = path.read_bytes()
    cache = told_of(path)
    cache.store("m", keys("a"), rows(1.0))
    cache.close()
    assert path.with_name("embeddings.sqlite.damaged-1").read_bytes() == before
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


@pytest.mark.parametrize("make", [*FOREIGN.values(), *DAMAGES.values()], ids=[*FOREIGN, *DAMAGES])
def test_in_a_private_place_whatever_is_no_cache_is_set_aside(path, make):
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    with told_of(path, private=True) as cache:
        cache.store("m", keys("a"), rows(1.0))
    assert path.with_name("embeddings.sqlite.damaged-1").read_bytes() == before
    with pickle.loads(pickle.dumps(cache)) as again:
        assert again.fetch("m", keys("a"))[0].tolist() == [True]


def test_a_file_that_takes_the_caches_place_while_in_use_is_left_as_it_is(path):
    with EmbeddingCache(path) as cache:
        cache.store("m", keys("a"), rows(1.0))
    cache = EmbeddingCache(path)
    diary = b"Dear diary, today I became a cache.\n" * 500
    path.write_bytes(diary)
    with pytest.warns(CacheWarning, match="cannot be used .* going on with memory alone"):
        assert cache.fetch("m", keys("a"))[0].tolist() == [False]
    cache.store("m", keys("a"), rows(2.0))
    assert cache.fetch("m", keys("a"))[1].tolist() == [[2.0] * 3]
    assert path.read_bytes() == diary
    assert not list(path.parent.glob("*.damaged-*"))


def test_a_file_damaged_while_in_use_is_set_aside_too(path):
    cache = EmbeddingCache(path)
    cache.store("m", keys(*map(str, range(2000))), rows(*range(2000), dimensions=50))
    cache.close()
    data = bytearray(path.read_bytes())
    cache = EmbeddingCache(path)
    data[4096:] = random.Random(0).randbytes(len(data) - 4096)  # the first page stays: it opens, and cannot be read
    path.write_bytes(data)
    with pytest.warns(CacheWarning, match="set aside"):
        found, _ = cache.fetch("m", keys(*map(str, range(2000))))
    assert not found.any()
    cache.store("m", keys("a"), rows(1.0))
    assert cache.fetch("m", keys("a"))[0].tolist() == [True]


def test_a_log_goes_aside_with_the_file_that_it_belongs_to(path):
    path.parent.mkdir()
    unreadable(path)
    # Of the files beside a database, the one that SQLite leaves there itself.
    path.with_name(f"{path.name}-shm").write_bytes(b"of the old file")
    told_of(path).close()
    assert path.with_name("embeddings.sqlite.damaged-1-shm").read_bytes() == b"of the old file"


def test_an_empty_file_becomes_a_cache(path):
    path.parent.mkdir()
    path.touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EmbeddingCache(path).store("m", keys("a"), rows(1.0))
    assert EmbeddingCache(path).fetch("m", keys("a"))[0].tolist() == [True]


@pytest.mark.parametrize("place", ["under a file", "a folder", "no name"])
def test_where_nothing_can_be_written_the_run_goes_on(tmp_path, place):
    (tmp_path / "file").touch()
    where = {"under a file": tmp_path / "file" / "cache.sqlite", "a folder": tmp_path, "no name": tmp_path / "\0"}[
        place
    ]
    with pytest.warns(CacheWarning, match="cannot be used .* going on with memory alone"):
        cache = EmbeddingCache(where)
    cache.store("m", keys("a"), rows(1.0))
    assert cache.fetch("m", keys("a"))[0].tolist() == [True]


def test_a_full_disk_is_told_once_and_what_is_there_stays_readable(path):
    with EmbeddingCache(path) as cache:
        cache.store("m", keys("old"), rows(1.0))
        pages = cache._disk.execute("PRAGMA page_count").fetchone()[0]
        cache._disk.execute(f"PRAGMA max_page_count = {pages}")
        many = keys(*map(str, range(500)))
        with pytest.warns(CacheWarning, match="cannot be written to .*full.* going on with memory alone"):
            cache.store("m", many, rows(*range(500)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            more = keys(*map(str, range(500, 1000)))
            cache.store("m", more, rows(*range(500)))
        assert cache.fetch("m", [*many, *more, *keys("old")])[0].all()


def test_a_read_only_file_is_read(path):
    with EmbeddingCache(path) as cache:
        cache.store("m", keys("old"), rows(1.0))
        cache._disk.execute("PRAGMA query_only = ON")
        with pytest.warns(CacheWarning, match="cannot be written to"):
            cache.store("m", keys("new"), rows(2.0))
        assert cache.fetch("m", keys("old", "new"))[0].all()


# --- processes and threads ------------------------------------------------------------------------------------

WRITER = """
import sys
import numpy as np
from chunkcore.models.cache import EmbeddingCache, text_key

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
    written_at_once(writer(path), 60)
    cache = EmbeddingCache(path)
    assert len(cache) == 3 * 60 * 20
    assert all(stored(cache, name, 60) for name in ("a", "b", "c"))


def test_while_another_process_writes_all_can_read_and_a_writer_waits_only_so_long(path):
    cache = EmbeddingCache(path, wait_seconds=0.1)
    cache.store("m", keys("a"), rows(1.0))
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert cache.fetch("m", keys("a"))[0].all()
        with pytest.warns(CacheWarning, match=r"cannot be written to \(database is locked\)"):
            cache.store("m", keys("b"), rows(2.0))
    assert cache.fetch("m", keys("a", "b"))[0].all()


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
def test_a_forked_process_opens_the_file_anew(path):
    cache = EmbeddingCache(path)
    cache.store("m", keys("a"), rows(1.0))
    child = os.fork()
    if child == 0:
        parents = cache._disk
        ok = cache.fetch("m", keys("a"))[0].all() and cache._disk is not parents
        cache.store("m", keys("b"), rows(2.0))
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert cache.fetch("m", keys("a", "b"))[0].all()


def test_a_process_that_was_forked_without_a_word_to_python_opens_the_file_anew(path, monkeypatch):
    """As a server written in C may do."""
    cache = EmbeddingCache(path)
    cache.store("m", keys("a"), rows(1.0))
    parents = cache._disk
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert cache.fetch("m", keys("a"))[0].all()
    assert cache._disk is not parents
    assert parents.execute("SELECT 1").fetchone() == (1,)  # not closed


def test_processes_that_find_one_damaged_file_set_it_aside_once(path):
    path.parent.mkdir()
    unreadable(path)
    written_at_once(writer(path, "ignore"), 10)
    assert len(list(path.parent.glob("*.damaged-?"))) == 1
    cache = EmbeddingCache(path)
    assert all(stored(cache, name, 10) for name in ("a", "b", "c"))


# --- CachedEmbedder -------------------------------------------------------------------------------------------


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


def test_queries_are_told_apart_only_where_the_model_does():
    asymmetric, symmetric = FakeEmbedder(), FakeEmbedder()
    symmetric.symmetric = True
    for model in (asymmetric, symmetric):
        cached = CachedEmbedder(model)
        cached.embed_documents(["a"])
        cached.embed_queries(["a"])
    assert (len(asymmetric.texts), len(symmetric.texts)) == (2, 1)


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(path):
    texts = [f"text {i}" for i in range(10)]
    failing = RaisingEmbedder(allowed=3)
    with pytest.raises(ModelError, match="the model's server hung up"):
        CachedEmbedder(failing, EmbeddingCache(path), batch_size=2).embed_documents(texts)
    second = FakeEmbedder()
    vectors = CachedEmbedder(second, EmbeddingCache(path), batch_size=2).embed_documents(texts)
    assert len(second.texts) == 4
    assert (vectors == FakeEmbedder().embed_documents(texts)).all()


def test_the_longest_texts_come_first_and_progress_is_told():
    model, told = FakeEmbedder(), []
    cached = CachedEmbedder(model, batch_size=2, progress=lambda *each: told.append(each))
    cached.embed_documents(["aa", "a" * 9, "a", "aaa", "aa"])
    assert [len(text) for text in model.texts] == [9, 3, 2, 1]
    assert told == [(2, 4), (4, 4)]


def test_threads_that_ask_for_the_same_text_embed_it_once():
    class Slow(FakeEmbedder):
        def embed_documents(self, texts):
            time.sleep(0.05)
            return super().embed_documents(texts)

    model = Slow()
    cached = CachedEmbedder(model)
    threads = [threading.Thread(target=cached.embed_documents, args=(["a", "b"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(model.texts) == ["a", "b"]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_answer_is_told_and_not_kept(broken):
    cached = CachedEmbedder(broken())
    with pytest.raises(ModelError, match="the model 'fake'"):
        cached.embed_documents(["a", "b"])
    assert len(cached.cache) == 0


def test_a_model_that_changes_its_mind_about_dimensions_is_told():
    with pytest.raises(ModelError, match="33 dimensions"):
        CachedEmbedder(ChangingEmbedder(), batch_size=1).embed_documents(["a", "b"])


def test_it_stands_for_the_model():
    model = FakeEmbedder(name="bag", max_tokens=9)
    cached = CachedEmbedder(model)
    assert isinstance(cached, Embedder)
    assert isinstance(cached, TokenCountingEmbedder)
    assert (cached.name, cached.fingerprint, cached.max_tokens) == ("bag", model.fingerprint, 9)
    assert cached.count_tokens(["a b"]).tolist() == [4]
    with pytest.raises(OptionError, match="batch_size is at least 1, got 0"):
        CachedEmbedder(model, batch_size=0)
