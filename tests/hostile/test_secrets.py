"""A key that is given in any place stands in none that is written, shown or kept."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import chunkcore.models
import pytest
from chunkcore import ChunkcoreError, get_chunker, get_llm
from chunkcore.cli import main
from chunkcore.models.endpoint import OpenAILLM

from tests import fake_llm_server
from tests.fake_llm_server import Handler
from tests.fakes import FakeEmbedder

SECRET = "sk-sentinel-0123456789abcdef"

pytest.importorskip("openai", reason="the extra llm is not installed")


# Where a key may be put by mistake; in the last two it is a name of an embedder.
MISTAKES = (
    f"openai:m@http://127.0.0.1:1/v1#key={SECRET}",
    f"openai:m@http://127.0.0.1:1/v1#{SECRET}",
    f"openai:m@http://127.0.0.1:1/v1#key=A_API_KEY&key={SECRET}",
    f"openai:m@http://127.0.0.1:1/v1?api-key={SECRET}",
    f"openai:m@http://{SECRET}@127.0.0.1:1/v1",
    f"openai:m@http://me:{SECRET}@127.0.0.1:1/v1",
    f"openai:m@//me:{SECRET}@127.0.0.1/v1?{SECRET}",
    f"openai:m@http://[{SECRET}",
    f"openai:m@http://[hidden-{SECRET}@h",
    f"anthropic:m@http://127.0.0.1/v1?key={SECRET}#key={SECRET}",
    f"openai:m@{SECRET}/v1",
    f"openai:{SECRET}",
)


@pytest.mark.parametrize("spec", MISTAKES)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(spec, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ChunkcoreError) as told:
        get_llm(spec)
    (tmp_path / "d.txt").write_text("The fox naps.")
    commands = [f"questions generate d.txt -o q.jsonl --llm {spec}"]
    if spec not in MISTAKES[-2:]:
        commands += [f"compare --dry-run -r dense -e {spec}", f"chunk d.txt --dry-run -s breakpoint:embedder={spec}"]
    assert [main(command.split()) for command in commands] == [2] * len(commands)
    assert SECRET not in str(told.value) + "".join(capfd.readouterr())
    assert not [each for each in tmp_path.rglob("*") if each.is_file() and SECRET.encode() in each.read_bytes()]


def test_a_key_itself_is_no_name_of_one() -> None:
    for url, key in (("http://127.0.0.1:1/v1", SECRET), (f"http://a:{SECRET}@b:c/[", None), (f"x?{SECRET}", None)):
        with pytest.raises(ChunkcoreError) as told:
            OpenAILLM("m", url, key=key)
        assert SECRET not in str(told.value)


def test_a_strategy_that_asks_with_a_key_tells_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_API_KEY", SECRET)
    llm = get_llm("openai:m@http://127.0.0.1:1/v1#key=SENTINEL_API_KEY")
    for name in ("lumber", "contextual", "propositions"):
        chunker = get_chunker(name, llm=llm)
        shown = repr(chunker), chunker.spec, chunker.to_dict(), chunker.fingerprint, pickle.dumps(chunker)
        assert SECRET not in str(shown)
        assert "SENTINEL_API_KEY" in chunker.spec


# Every command that speaks to a model; and `validate`, which asks none, with the key there to be told.
LLM = '"{llm}"'
NO_MODEL = ["--embedder", "none"]
REPORT = ["--resamples", "100", "-o", "{out}/report"]
TOLD = {
    "chunk": ["{docs}", "--chunker", f"contextual:llm={LLM},chunker=recursive:size=60", "-o", "{out}/chunks.jsonl"],
    "compare": ["{given}", "-s", f"lumber:llm={LLM}", "-s", "recursive", "--save-runs", "{out}/runs", *REPORT],
    "tune": ["{given}", "-s", f"llm_semantic:llm={LLM}", "--draws", "2", "--folds", "2", "-r", "dense", *REPORT],
    "questions generate": ["--docs", "{docs}", "--llm", "{llm}", "-n", "2", *NO_MODEL, "-o", "{out}/q.jsonl"],
    "questions check": ["{given}", *NO_MODEL, "--json"],
}
CODES = {"questions generate": 1}  # no question that the server writes can be kept


def says_key(handler: Handler, body: dict[str, Any]) -> None:
    """A right answer, but for the key, which each of its texts repeats."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(each) for name, each in value.items()}
        if isinstance(value, list):
            return [walk(each) for each in value]
        return f"{value} {handler.headers['Authorization']}" if isinstance(value, str) else value

    handler.complete(json.dumps(walk(fake_llm_server.good(body))))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What the commands read, by the names that they have for it, and where they write."""
    text = "The fox naps under the lid. The dog runs at noon.\n\n" * 12
    questions = [
        {"question": f"Which tale {n}?", "evidence": ["A tale of Arbon."], "answers": ["of Arbon"]} for n in (1, 2)
    ]
    paths = {name.partition(".")[0]: tmp_path / name for name in ("docs", "questions.jsonl", "out")}
    paths["docs"].mkdir()
    paths["out"].mkdir()
    (paths["docs"] / "fox.txt").write_text(f"A tale of Arbon.\n\n{text}")
    paths["questions"].write_text("\n".join(map(json.dumps, questions)))
    return paths


@pytest.mark.parametrize("model", ["http_401", "says_key"])
@pytest.mark.parametrize("command", list(TOLD))
def test_no_command_tells_the_key(command, model, server, files, tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("SENTINEL_API_KEY", SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(fake_llm_server.FAULTS, "says_key", says_key)
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: FakeEmbedder())
    monkeypatch.setattr("chunkcore.models.loading.get_embedder", lambda name: FakeEmbedder())
    for name in ("", "openai", "httpx", "httpcore", "httpx2", "httpcore2"):
        caplog.set_level(logging.DEBUG, logger=name)
    before, asked = set(tmp_path.rglob("*")), len(server.log)
    values = {**files, "llm": f"openai:{model}@{server.url}#key=SENTINEL_API_KEY&tries=1"}
    given = "--docs {docs} --questions {questions}"
    words = " ".join([command, *TOLD[command]]).replace("{given}", given).split()
    code = main([word.format(**values) for word in words])
    told = capfd.readouterr()

    asks = command != "questions check"
    assert code == (2 if asks and model == "http_401" else CODES.get(command, 0)), told.err
    assert {each["headers"]["authorization"] for each in server.log[asked:]} == (
        {f"Bearer {SECRET}"} if asks else set()
    )
    assert "HTTP" in caplog.text or not asks
    assert SECRET not in told.out + told.err + caplog.text
    written = [each for each in set(tmp_path.rglob("*")) - before if each.is_file()]
    assert written or not asks or code
    assert [each for each in written if SECRET.encode() in each.read_bytes()] == []
