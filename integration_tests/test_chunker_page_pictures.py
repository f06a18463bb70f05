"""The pages of the strategies that ask an embedding model are what the code makes now."""

from __future__ import annotations

import pytest
from docs.making.page import ROOT, overview
from docs.making.shown import SHOWN
from tests.test_chunker_pages import asks_a_model, check_page, needs

from integration_tests.golden import needs_model

pytestmark = needs_model


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in SHOWN if asks_a_model(name)])
def test_a_page_with_an_embedding_model_is_what_the_code_makes(name: str) -> None:
    check_page(name)


def test_the_overview_is_what_the_code_makes() -> None:
    pytest.importorskip("tree_sitter_python")
    pytest.importorskip("sklearn")
    picture = (ROOT / "docs/images/chunkers/overview.svg").read_text(encoding="utf-8")
    assert picture == overview(), "the overview is old: python -m docs.making"
