"""A few cases of what ``make fuzz`` tries of the adapters."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.importorskip("langchain_text_splitters")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

from tests.fuzzing.running import property_of
from tests.fuzzing.targets import MISSING, ROOMS, Target, load_targets

OWN = tuple(room for room in ROOMS if room.startswith("integration_tests."))
TARGETS = load_targets(OWN)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_what_is_fuzzed_holds_for_a_few_cases(target: Target) -> None:
    settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))(property_of(target))()


def test_no_room_is_left_out() -> None:
    assert not set(MISSING) & set(OWN)
