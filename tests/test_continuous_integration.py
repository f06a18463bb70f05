"""The action, the hook and the container: their own commands are run, with a stand-in for GitHub's program."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from chunkcore.cli import main
from chunkcore.datasets import dataset_path, load_dataset

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / ".github/actions/compare/action.yml").read_text("utf-8"))
PAGE = (ROOT / "docs/guides/continuous_integration.md").read_text("utf-8")
EXAMPLE, HOOKS = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A checkout with documents and questions, and the programs that a step finds."""
    found = load_dataset("lochmere")
    (tmp_path / "docs").mkdir()
    for document in found.documents:
        (tmp_path / "docs" / document.id).write_text(document.text, "utf-8")
    shutil.copy(dataset_path() / "questions.jsonl", tmp_path / "my questions.jsonl")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "chunkcore").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m chunkcore "$@"\n')
    log, earlier = (shlex.quote(str(tmp_path / name)) for name in ("gh.txt", "earlier.txt"))
    (programs / "gh").write_text(f'#!/bin/sh\necho "$@" >> {log}\ncase "$2" in --paginate) cat {earlier};; esac\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return tmp_path


def run(job: Path, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """A step's script with its variables, where these are literal or an input."""
    given: dict[str, str] = {}
    for name, value in STEPS[step]["env"].items():
        asked = re.fullmatch(r"\$\{\{ (\S+) \}\}", value)
        assert asked, value
        key = asked[1].removeprefix("inputs.")
        given[name] = inputs.get(key, ACTION["inputs"].get(key, {}).get("default", ""))
    github = {name: str(job / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = os.environ | github | given | {"GITHUB_REPOSITORY": "o/r", "XDG_CACHE_HOME": str(job / "cache")}
    environment["PATH"] = f"{job / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"]]
    return subprocess.run(script, cwd=job, env=environment, capture_output=True, text=True, timeout=200, check=False)


def arguments(*more: str) -> str:
    return "\n".join(["--chunker", "recursive:size=200", "--retriever", "bm25", *more])


def test_the_answer_is_commented_and_a_fallen_score_fails_the_job(job: Path) -> None:
    asked = {"docs": "docs", "questions": "my questions.jsonl"}
    done = run(job, "Compare", **asked, arguments=arguments("--require", "Recall@5>=0.99"), output="out")
    assert (job / "github_output").read_text() == "code=1\n", done.stderr
    comment = (job / "out" / "comment.md").read_text("utf-8")
    mark, failed, block = comment.split("\n", 2)
    assert mark == "<!-- chunkcore compare -->"
    assert re.fullmatch(r"> recursive:size=200: Recall@5 .* the required .*: failed\.", failed)
    assert (job / "out" / "report.md").read_text("utf-8").startswith(block.lstrip("\n"))
    assert len(comment.splitlines()) < 100
    pull = {"github.event.pull_request.number": "7"}
    (job / "earlier.txt").write_text("")
    run(job, "Comment", output="out", **pull)
    assert (job / "gh.txt").read_text().endswith("pr comment 7 --repo o/r --body-file out/comment.md\n")
    (job / "earlier.txt").write_text("11\n12\n")
    run(job, "Comment", output="out", **pull)
    assert (job / "gh.txt").read_text().endswith("/issues/comments/12 --field body=@out/comment.md --silent\n")
    (job / "bin" / "gh").write_text("#!/bin/sh\nexit 1\n")
    refused = run(job, "Comment", output="out", **pull)
    assert (refused.returncode, refused.stdout[:11]) == (0, "::warning::")
    assert run(job, "Verdict", **{"steps.compare.outputs.code": "1"}).returncode == 1
    assert run(job, "Verdict", **{"steps.compare.outputs.code": "0"}).returncode == 0


def test_no_input_is_read_as_a_command(job: Path) -> None:
    run(job, "Compare", docs="$(touch hurt)", questions="`touch hurt`", arguments="; touch hurt\n$(touch hurt)")
    assert not (job / "hurt").exists()
    assert (job / "github_output").read_text() == "code=2\n"
    for step in STEPS.values():
        assert "${{" not in step["run"]


def test_the_example_gives_inputs_that_the_action_has_and_names_this_version() -> None:
    step = EXAMPLE["jobs"]["compare"]["steps"][1]
    assert step["uses"].endswith(f"@v{version('chunkadapters')}")
    assert HOOKS["repos"][0]["rev"] == f"v{version('chunkadapters')}"
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= set(step["with"])
    assert EXAMPLE["permissions"]["pull-requests"] == "write"


def test_the_hook_runs_the_command_that_it_names(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    asked: dict[str, Any] = HOOKS["repos"][0]["hooks"][0]
    assert asked["id"] == hook["id"]
    extras = re.search(r"^files = (\[.*?\])", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert extras
    assert hook["additional_dependencies"] == json.loads(extras[1])
    monkeypatch.chdir(job)
    (job / "my questions.jsonl").rename(job / "questions.jsonl")
    command = hook["entry"].split()[1:] + asked["args"]
    assert main([*command, "--ignore", "leakage"]) == 0
    (job / "questions.jsonl").write_text('{"question": "Who?", "evidence": ["nobody"]}\n')
    assert main(command) == 1


def test_the_container_s_command_is_one_that_there_is() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    said = {
        word: json.loads(rest)
        for word, _, rest in (line.partition(" ") for line in lines)
        if word in ("ENTRYPOINT", "CMD")
    }
    assert said["ENTRYPOINT"] == ["chunkcore"]
    assert main([*said["CMD"][:1], "--help"]) == 0
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert all((ROOT / each).exists() for each in kept)
