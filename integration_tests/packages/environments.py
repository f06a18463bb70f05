"""Clean environments: made by Python's own venv, and filled by the pip of whoever runs this."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Environment"]

# A proxy where nobody listens: what is installed must do without a network.
NOWHERE = "http://127.0.0.1:9"
OFFLINE = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "ALL_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
OFFLINE |= {name.lower(): value for name, value in OFFLINE.items()}


class Environment:
    """An environment in a new folder, which holds nothing but what is installed into it, not even pip."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def install(self, *requirements: str, constraints: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        """Install these; the installer's own words are the error where it fails."""
        limits = self.folder / "constraints.txt"
        limits.write_text("\n".join(constraints), encoding="utf-8")
        arguments = ["--quiet", "--constraint", str(limits), *options, *requirements]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.python)]
        self._run([*pip, "install", *arguments])

    def run(self, *arguments: str, cwd: Path) -> str:
        """What this environment's Python prints, with these arguments, in this folder, without a network.

        Raises:
            RuntimeError: it ended with another exit code than 0.
        """
        return self._run(
            [str(self.python), *arguments], cwd, OFFLINE | {"TIKTOKEN_CACHE_DIR": str(self.folder / "none")}
        )

    def test(self, files: Sequence[str], checkout: Path) -> int:
        """Run these tests of a checkout on what is installed here, not on its `src`; pytest's exit code."""
        # LlamaIndex brings these; its older versions look for them nowhere but online.
        (packages,) = self.folder.glob("[Ll]ib/**/site-packages")
        data = packages / "llama_index" / "core" / "_static" / "nltk_cache"
        pytest = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=."]
        return subprocess.run(
            [*pytest, *files], cwd=checkout, env=_environ() | {"NLTK_DATA": str(data)}, check=False
        ).returncode

    def _run(self, arguments: list[str], cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
        environment = _environ() | dict(variables or {})
        done = subprocess.run(
            arguments, capture_output=True, encoding="utf-8", errors="replace", cwd=cwd, env=environment, check=False
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(arguments[:6])} ...: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout


def _environ() -> dict[str, str]:
    """Nothing of the environment that runs this leads to modules of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"HAYSTACK_TELEMETRY_ENABLED": "False"}
