"""What a system missed: the questions with the least recall, each with one reason from its ranking."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chunkcore import Benchmark, Document, Evidence, Query, Retrieved, Run, Span, compare, score
from chunkcore.report import html_report, markdown_report, write_report
from chunkcore.report.advice import missed_by
from chunkcore.study.comparing import ReportPage

TEXT = "The fox is red and lives in the wood. The owl hoots all night long. The otter swims in the cold brook."
FOX, OWL, OTTER = (
    Span(TEXT.index(start), TEXT.index(end) + len(end))
    for start, end in (("The fox", "wood."), ("The owl", "long."), ("The otter", "brook."))
)
HALF, REST = Span(OTTER.start, OTTER.start + 12), Span(OTTER.start + 13, OTTER.end)


def benchmark(question: str, *evidence: Span) -> Benchmark:
    pieces = tuple(Evidence("d", span) for span in evidence)
    return Benchmark("toy", [Document("d", TEXT), Document("e", "Nothing of it.")], [Query("q", question, pieces)])


def hit(span: Span, document: str = "d") -> Retrieved:
    return Retrieved(document, (span,))


@pytest.mark.parametrize(
    ("question", "evidence", "hits", "depth", "reason"),
    [
        ("Where is the otter?", OTTER, [hit(FOX), hit(OWL), hit(OTTER)], "10tok", "Outranked: its passage is number 3"),
        ("Where is the otter?", OTTER, [hit(FOX), hit(OTTER)], 1, "Outranked: its passage is number 2."),
        ("Where is the otter?", OTTER, [hit(FOX), hit(OTTER)], "10tok", "Outranked: its passage is number 2, 1 token "),
        ("Where is the otter?", OTTER, [hit(FOX), hit(OTTER)], "11tok", "Cut by the budget: the passage"),
        ("Where is the otter?", OTTER, [hit(HALF), hit(REST)], 1, "Split by a boundary"),
        ("Where is the otter?", OTTER, [hit(OTTER)], "3tok", "Cut by the budget"),
        ("Where is the otter?", OTTER, [hit(HALF)], 5, "Split by a boundary"),
        ("Welches Tier?", OTTER, [hit(Span(0, 7), "e")], 5, "No shared word"),
        ("Where is the otter?", OTTER, [hit(FOX)], 5, "Outranked: it is not among the 1 passage (10 tokens)"),
        ("Where is the otter?", OTTER, [], 5, "No answer: nothing was retrieved"),
    ],
)
def test_each_miss_has_its_reason(question, evidence, hits, depth, reason) -> None:
    asked = benchmark(question, evidence)
    report = score(Run("r", {"q": hits}), asked, [f"Recall@{depth}"])
    (missed,) = missed_by(ReportPage(compare([report], resamples=100), asked), "r")
    assert missed.reason.startswith(reason)
    assert missed.evidence == "The otter swims in the cold brook."
    assert bool(missed.passage) == bool(hits)
    assert missed.recall < 1
    start, end = missed.marked or (0, 0)
    overlaps = [piece.spans[0] for piece in hits if piece.document_id == "d" and piece.spans[0].start >= OTTER.start]
    assert missed.passage[start:end] == (TEXT[overlaps[0].start : overlaps[0].end].strip() if overlaps else "")


def test_a_long_passage_is_cut_around_the_evidence_it_holds() -> None:
    text = "Nothing of it here. " * 30 + "The otter\nswims in the brook. " + "Nor here at all. " * 30
    piece = Evidence("d", Span(text.index("The otter"), text.index("brook.") + 6))
    asked = Benchmark("toy", [Document("d", text)], [Query("q", "Where?", (piece,))])
    report = score(Run("r", {"q": [Retrieved("d", (Span(0, len(text)),))]}), asked, ["Recall@3tok"])
    page = ReportPage(compare([report], resamples=100), asked)
    (missed,) = missed_by(page, "r")
    start, end = missed.marked
    assert missed.passage[start:end] == "The otter swims in the brook."
    assert missed.passage.startswith("[…] ")
    assert missed.passage.endswith(" […]")
    assert len(missed.passage) < 600
    assert "<mark>The otter swims in the brook.</mark>" in html_report(page)


@pytest.mark.parametrize(
    ("document", "evidence", "place"),
    [("d", "The otter", "another part of its document was"), ("f", "The fox", "other documents were")],
)
def test_of_several_pieces_the_least_found_is_shown_with_the_first_passage(document, evidence, place) -> None:
    asked = benchmark("Where is the otter?", FOX, OTTER)
    asked = replace(asked, documents=[*asked.documents, Document("f", TEXT)])
    report = score(Run("r", {"q": [hit(FOX, document), hit(OWL, document)]}), asked, ["Recall@5"])
    (missed,) = missed_by(ReportPage(compare([report], resamples=100), asked), "r")
    assert missed.evidence.startswith(evidence)
    assert (missed.passage, missed.recall) == ("The fox is red and lives in the wood.", report.mean("Recall@5"))
    assert missed.reason.endswith(f"retrieved; {place} preferred.")


def test_what_was_found_whole_is_not_missed() -> None:
    asked = benchmark("Where is the fox?", FOX)
    report = score(Run("r", {"q": [hit(FOX)]}), asked, ["Recall@5"])
    assert missed_by(ReportPage(compare([report], resamples=100), asked), "r") == []


def test_page_and_markdown_show_what_was_missed(tmp_path) -> None:
    asked = benchmark("Where is the otter?", OTTER)
    page = ReportPage(compare([score(Run("r", {"q": [hit(FOX)]}), asked, ["Recall@5"])], resamples=100), asked)
    assert "What it missed" in html_report(page)
    assert "swims in the cold brook" in markdown_report(page)
    assert write_report(page, tmp_path / "one.html") == tmp_path / "one.html"
    assert [path.name for path in tmp_path.iterdir()] == ["one.html"]
