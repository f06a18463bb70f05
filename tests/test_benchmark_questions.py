"""Evidence as people write it: other spellings, other names, and the places written into the file."""

from __future__ import annotations

import json
import math
import warnings

import pytest
from chunkcore import Document, load_benchmark
from chunkcore.cli import main
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.loading import EvidenceError, EvidenceFinder
from chunkcore.questions.validate import validate_benchmark
from chunkcore.retrieval.lexicon import without_tags
from hypothesis import given
from hypothesis import strategies as st

from tests.files import pdf_bytes

TEXT = "“Black tea”, said Zoë,\nis hot – very hot.\n\nGreen tea is not. The ﬁrst pot was green. Green tea is not!"
DOCUMENT = Document("tea.md", TEXT)


def quiet(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_benchmark(*arguments, **options)


def spans_of(row, documents=(DOCUMENT,)):
    benchmark = quiet(list(documents), [{"question": "What?", **row}])
    return [(each.document_id, each.span.slice(TEXT)) for each in benchmark.queries[0].evidence]


@pytest.mark.parametrize(
    ("excerpt", "there"),
    [
        ('"Black tea", said Zoë, is hot', "“Black tea”, said Zoë,\nis hot"),  # quotation marks, a line break
        ("said Zoe\u0308, is", "said Zoë,\nis"),  # another Unicode form
        ("is hot - very   hot.", "is hot – very hot."),  # a dash, white space
        ("the first pot", "The ﬁrst pot"),  # a ligature, case
        ("  said\u00a0Zo\u00adë,  ", "said Zoë,"),  # a soft hyphen
    ],
)
def test_an_excerpt_in_another_spelling_is_accepted_with_a_note(excerpt, there):
    finder = EvidenceFinder([DOCUMENT, Document("other", "Coffee.")])
    for named in ("", "tea.md"):
        found = finder.find(excerpt, named)
        assert found.span.slice(TEXT) == there
    assert len(finder.notes) == 2
    with pytest.warns(UserWarning, match=r"excerpts that stand at one place in another spelling"):
        load_benchmark([DOCUMENT], [{"question": "What?", "evidence": [excerpt]}])


def test_another_spelling_at_several_places_or_of_too_little_is_refused():
    finder = EvidenceFinder([DOCUMENT])
    with pytest.raises(EvidenceError, match="occurs 2 times"):
        finder.find("green tea is  not")
    assert finder.find({"text": "green tea is  not", "occurrence": 2}).span.start > 60
    for excerpt in ("H o", "Black tea, said Zoë"):  # without its quotation marks
        with pytest.raises(EvidenceError, match="is not found"):
            finder.find(excerpt)
    for text in ("Black tea", "green  tea"):  # offsets are exact
        with pytest.raises(EvidenceError, match="stands 'Green"):
            finder.find({"document_id": "tea.md", "start": 43, "end": 52, "text": text})


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_is_accepted_differs_by_spelling_alone(text, excerpt):
    from chunkcore.locating.text_search import loosen

    finder = EvidenceFinder([Document("a", text)])
    try:
        found = finder.find(excerpt)
    except DataError:
        return
    assert loosen(found.span.slice(text)).text == loosen(excerpt).text


@pytest.mark.parametrize(
    "row",
    [
        {"evidence": "The ﬁrst pot"},
        {"evidence": {"text": "The ﬁrst pot"}},
        {"context": "The ﬁrst pot"},
        {"contexts": ["The ﬁrst pot"]},
        {"contexts": '["The ﬁrst pot"]'},
        {"reference_contexts": "['The ﬁrst pot']"},
        {"references": ["The ﬁrst pot"], "source": "tea.md"},
        {"contexts": '[{"text": "The ﬁrst pot"}]', "document_id": math.nan, "where": '{"kind": true}'},
        {"spans": f"[[{TEXT.index('The ﬁrst')}, {TEXT.index(' was green')}]]", "document_id": "tea.md"},
        {"excerpt": "The ﬁrst pot", "file_name": "not/here.md"},
        {"EVIDENCE": "The ﬁrst pot", "Question": "What?", "query": ""},
    ],
)
def test_common_names_are_understood(row):
    assert spans_of(row) == [("tea.md", "The ﬁrst pot")]
    query = {"query": "What?", **row}
    assert quiet(iter([DOCUMENT]), iter([query])).queries[0].text == "What?"


def test_keys_of_ours_are_never_replaced():
    row = {"evidence": ["very hot"], "context": "Green tea is not!", "query": "No?", "document": "of nobody"}
    benchmark = quiet([DOCUMENT], [{"question": "What?", **row}])
    assert benchmark.queries[0].text == "What?"
    assert benchmark.queries[0].metadata == {key: row[key] for key in ("context", "query", "document")}
    (code,) = quiet([Document("a", '["a"]')], [{"question": "?", "evidence": '["a"]'}]).queries
    assert code.evidence[0].span.end == 5


def test_a_document_is_named_by_its_own_folders():
    twice = [Document(f"/srv/{folder}/tea.md", TEXT) for folder in "ab"]  # as the app's loader names its files
    (placed,) = quiet(twice, [{"question": "?", "document": "b/tea.md", "evidence": "very hot"}]).queries
    assert placed.evidence[0].document_id == "/srv/b/tea.md"


def test_a_table_with_common_columns_is_understood(tmp_path):
    (tmp_path / "tea.md").write_text(TEXT)
    file = tmp_path.with_suffix(".csv")
    first, second = 'Which?,"[""The ﬁrst pot""]",tea.md,"[""one"", ""two""]",', '"Hot?","very hot",,"[3, 5]",FALSE'
    file.write_text(f"query,evidence,file,answers,without_evidence\n{first}\n{second}\nCold?,,,,TRUE")
    benchmark = quiet(tmp_path, file)
    assert [query.text for query in benchmark.queries] == ["Which?", "Hot?"]
    assert [query.metadata["answers"] for query in benchmark.queries] == [["one", "two"], "[3, 5]"]
    assert [query.text for query in benchmark.without_evidence] == ["Cold?"]
    with pytest.raises(DataError, match="is a workbook: save its sheet with the questions as CSV"):
        quiet(tmp_path, file.rename(file.with_suffix(".xlsx")))


@pytest.mark.filterwarnings("ignore")
def test_a_question_whose_file_was_not_read_says_so(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text(TEXT)
    (docs / "scan.pdf").write_bytes(pdf_bytes([b""]))
    rows = [
        {"question": "Hot?", "evidence": ["very hot"]},
        {"question": "Old?", "document_id": "scan.pdf", "evidence": ["old"]},
        {"question": "New?", "evidence": ["new leaves"]},
        {"question": "Hot?", "document": "scan.pdf", "evidence": ["very hot"]},
    ]
    problems = quiet(docs, rows).problems
    assert all("its document 'scan.pdf' was not read: it " in problems[number].reason for number in (0, 2))
    assert "not found in 'tea.md'" in problems[1].reason or "'scan.pdf' was not read" in problems[1].reason
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = validate_benchmark(docs, file)
    assert [each.kind for each in found if each.query_id in ("q2", "q3")] == ["not-found", "not-found"]


def test_two_questions_of_one_id_are_an_error_of_their_own(tmp_path, capfd):
    (tmp_path / "tea.md").write_text(TEXT)
    (tmp_path / "questions.jsonl").write_text('{"id": 1, "question": "Hot?", "evidence": ["very hot"]}\n' * 2)
    with pytest.raises(DataError, match=r"two questions have the id '1': .*, line 2: the id was .* before, at line 1"):
        load_benchmark(tmp_path)
    assert main(["questions", "check", "--docs", str(tmp_path), "-e", "none"]) == 1
    assert "repeated-id: the id was given before, at line 1" in capfd.readouterr().out


def test_an_excerpt_of_a_web_page_is_written_as_the_page_is_read():
    page = "<!doctype html><!-- <b>Salt</b> --><h1>Sea</h1><p>Salt eats the <b>impeller</b>\nwithin &lt; 3 weeks.</p>"
    plain = "<p>Salt eats the <b>pump</b> within weeks."  # no page: the signs are the text's
    finder = EvidenceFinder([Document("a.html", page), Document("b.txt", plain)])
    found = finder.find("Salt eats the impeller within")
    assert found.span.slice(page) == "Salt eats the <b>impeller</b>\nwithin"
    assert len(finder.notes) == 1
    with pytest.raises(DataError, match="not found"):
        finder.find("Salt eats the pump within weeks.")


@pytest.mark.parametrize(
    ("name", "page", "excerpt", "source"),
    [
        ("part.html", "<p>Steep <b>green</b> tea now.</p>", "Steep green tea now.", "Steep <b>green</b> tea now."),
        ("page", "<!-- kept --><!doctype html><p>Tea is <i>very</i> hot", "Tea is very hot", "Tea is <i>very</i> hot"),
        ("a.html", "<p>Salt&nbsp;eats m<b>etal</b> &amp; R&amp;D", "eats metal & R&", "eats m<b>etal</b> &amp; R&amp;"),
        ("a.html", "<nav>Salt eats pumps</nav><p>Salt <i>eats</i> pumps", "Salt eats  pumps", "Salt <i>eats</i> pumps"),
    ],
)
def test_an_excerpt_from_the_browser_is_found_between_tags_and_entities(name, page, excerpt, source):
    assert EvidenceFinder([Document(name, page)]).find(excerpt).span.slice(page) == source


def test_a_list_of_questions_without_evidence_is_told_where_to_go(tmp_path):
    (tmp_path / "asked.txt").write_text("Is tea hot?\nIs it green?\n")
    with pytest.raises(DataError, match=r"without evidence: mark it with chunkcore questions label DOCS --questions"):
        load_benchmark([DOCUMENT], tmp_path / "asked.txt")
    with pytest.raises(DataError, match="a question is a mapping, got str"):
        load_benchmark([DOCUMENT], ["Is tea hot?"])  # type: ignore[list-item]
    (tmp_path / "asked.txt").write_text('{"question": "Is it hot?", "evidence": ["very hot"]}\n')
    assert len(load_benchmark([DOCUMENT], tmp_path / "asked.txt").queries) == 1


def test_all_documents_are_brought_into_their_loose_form_once(monkeypatch):
    documents = [Document(f"{number}.txt", f"The gate number {number} is open.") for number in range(6)]
    rows = []
    for number in range(6):  # with a document and without, in turn
        rows += [{"question": "Open?", "evidence": f"THE GATE NUMBER {number}", "document_id": f"{number}.txt"}]
        rows += [{"question": "Open?", "evidence": f"THE GATE NUMBER {number} IS"}]
    loosened = []

    def counted(document):
        loosened.append(document.id)
        return without_tags(document)

    monkeypatch.setattr("chunkcore.evaluation.benchmarks.loading.without_tags", counted)
    assert len(quiet(documents, rows).queries) == 12
    assert len(loosened) == 6, "each once"
