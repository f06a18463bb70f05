"""What CONTRIBUTING.md says of adding a chunker is so: its code, as somebody else's package, is found and cuts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import chunkcore.models
import pytest
from chunkcore import OptionError, get_chunker
from chunkcore.chunkers import chunkers
from chunkcore.cli import main
from hypothesis import HealthCheck, given, settings

from tests.fakes import FakeEmbedder
from tests.plugins import PROGRAM, RETRIEVER, Installed, on_path
from tests.promises import check_promises
from tests.strategies import hard_text


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    with on_path(tmp_path, monkeypatch) as folder:
        yield folder


@pytest.mark.parametrize("program", [PROGRAM, RETRIEVER], ids=["strategy", "retriever"])
def test_it_takes_thirty_lines_at_most(program: str) -> None:
    lines = program.strip().splitlines()
    assert len(lines) <= 31
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("spec", ["paragraph", "paragraph:size=9", "paragraph:size=1,counter=words"])
def test_it_keeps_the_promises(installed: Installed, spec: str) -> None:
    installed.offer()
    chunker = get_chunker(spec)

    @given(text=hard_text())
    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    def check(text: str) -> None:
        check_promises(chunker, text)

    check()
    check_promises(chunker, "One paragraph.\n\n \n\nAnother, of more words than nine, much more.\n\n" * 3)


def test_it_is_built_by_name_from_every_form(installed: Installed) -> None:
    installed.offer()
    chunker = get_chunker("paragraph", size=3, counter="words")
    assert chunker.split_text("One.\n\n\nTwo is four words.") == ["One.", "Two is four", "words."]
    assert get_chunker("paragraph:size=3,counter=words") == chunker == get_chunker(chunker.to_dict())
    with pytest.raises(OptionError, match="size is at least 1, got 0"):
        get_chunker("paragraph:size=0")


def test_a_package_is_imported_only_when_its_strategy_is_named(installed: Installed) -> None:
    installed.offer()
    assert chunkers.offered == ["paragraph"]
    get_chunker("recursive")
    assert "my_chunkers.paragraph" not in sys.modules
    get_chunker("paragraph")
    assert "my_chunkers.paragraph" in sys.modules


def test_the_command_line_cuts_with_it_and_lists_it(installed: Installed) -> None:
    installed.offer()
    (installed.folder / "text.txt").write_text("One.\n\nTwo.", encoding="utf-8")
    cut = installed.run("chunk", "text.txt", "-s", "paragraph:size=120")
    assert [line.split('"text": ')[1].split(",")[0] for line in cut.stdout.splitlines()] == ['"One."', '"Two."']
    listed = installed.run("list", "chunkers")
    assert re.search(r"(?m)^paragraph Every paragraph is a chunk;.*\n  counter = .*\n  size = 200$", listed.stdout)
    assert (cut.returncode, cut.stderr, listed.returncode, listed.stderr) == (0, "", 0, "")


def test_a_package_that_cannot_be_loaded_is_named_and_hides_no_other(installed: Installed) -> None:
    installed.offer()
    installed.offer("broken", package="bad-chunkers", leads_to="bad_chunkers:Nothing")
    cut = installed.run("chunk", "text.txt", "-s", "broken")
    assert cut.returncode == 2
    assert cut.stderr.startswith(
        "chunkcore: the chunker 'broken' of the package bad-chunkers cannot be loaded from bad_chunkers:Nothing "
        "(ModuleNotFoundError: No module named 'bad_chunkers'): update bad-chunkers or uninstall it"
    )
    listed = installed.run("list", "chunkers")
    assert listed.returncode == 0
    assert "warning: the chunker 'broken' of the package bad-chunkers cannot be loaded" in listed.stderr
    assert "\nparagraph " in listed.stdout


def test_an_unknown_name_is_told_what_packages_offer(installed: Installed) -> None:
    installed.offer()
    with pytest.raises(
        OptionError, match=r"unknown chunker 'paragraf': chunkcore list chunkers .*did you mean 'paragraph'"
    ):
        get_chunker("paragraf")


def test_two_packages_cannot_offer_one_name(installed: Installed) -> None:
    installed.offer()
    installed.offer(package="other-chunkers", leads_to="other:Paragraph")
    with pytest.raises(OptionError, match=r"offered by several packages \(my-chunkers, other-chunkers\): uninstall"):
        get_chunker("paragraph")


def test_a_package_cannot_take_a_strategy_s_place(installed: Installed) -> None:
    recursive = get_chunker("recursive")
    installed.offer("recursive")
    assert type(get_chunker("recursive")) is type(recursive)


@pytest.mark.parametrize(
    ("name", "leads_to"),
    [("other", "my_chunkers.paragraph:Paragraph"), ("split_to_maximum", "my_chunkers.paragraph:split_to_maximum")],
)
def test_an_entry_point_leads_to_a_strategy_of_its_name(installed: Installed, name: str, leads_to: str) -> None:
    installed.offer(name, leads_to=leads_to)
    with pytest.raises(OptionError, match=rf'decorate a subclass of Chunker with @chunkers.register\("{name}"\)'):
        get_chunker(name)


def test_importing_the_core_looks_for_no_packages() -> None:
    program = "import sys, importlib.metadata as m; m.entry_points = None; import chunkcore; print(m.entry_points)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "None"


def test_the_command_line_compares_with_a_retriever_of_a_package(installed, monkeypatch, capfd):
    monkeypatch.setattr(chunkcore.models, "get_embedder", lambda name: FakeEmbedder())
    installed.offer_retriever()
    folder = installed.folder
    (folder / "docs").mkdir()
    (folder / "docs" / "tale.txt").write_text("The fox naps.\n\nThe hen sits.", encoding="utf-8")
    question = '{"question": "Who sits?", "evidence": ["The hen sits."]}\n'
    (folder / "questions.jsonl").write_text(question, encoding="utf-8")
    given = ["--docs", f"{folder}/docs", "--questions", f"{folder}/questions.jsonl", "--no-cache", "-k", "1"]
    assert main(["compare", "-s", "sentence:size=4", "-r", "newest", "-o", f"{folder}/out", *given]) == 0
    (report,) = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["reports"]
    assert report["scores"]["Recall@1"] == [1]
    assert main(["compare", "-s", "sentence:size=4", "-r", "newset", *given]) == 2
    assert re.search(r"unknown retriever 'newset'.*expected one of .*\bnewest\b", capfd.readouterr().err, re.DOTALL)


def test_the_tour_is_eight_files_of_under_2200_lines() -> None:
    root = Path(__file__).resolve().parents[1]
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"^\| \d+ \| \[`[^`]+`\]\(([^)]+)\)", page, re.MULTILINE)
    lines = [len((root / file).read_text(encoding="utf-8").splitlines()) for file in files]
    assert (len(files), sum(lines) < 2_200) == (8, True), sum(lines)
