"""Searches: what each finds, in which order, and how a string describes it."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from chunkcore import Chunk, ChunkedCorpus, Document, Index, ModelError, OptionError, Span, get_retriever
from chunkcore.chunkers import FixedToken
from chunkcore.retrieval import BM25, Dense, Hits, Hybrid, Late, Reranked, RetrievalMethod, TextVectors, get_reranker
from chunkcore.retrieval.lexicon import word_keys, words
from chunkcore.retrieval.vectors import top_k
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import FakeEmbedder, Fixed, corpus_with


def chunks_of(*texts: str) -> list[Chunk]:
    found, place = [], 0
    for index, text in enumerate(texts):
        found.append(Chunk("d", index, (Span(place, place + max(1, len(text))),), text, len(text.split())))
        place += len(text) + 1
    return found


def corpus_of(*texts: str) -> ChunkedCorpus:
    return corpus_with(chunks_of(*texts))


def index_of(method: RetrievalMethod, corpus: ChunkedCorpus) -> Index:
    return method.index(corpus, TextVectors(FakeEmbedder()))


def found(method: RetrievalMethod, corpus: ChunkedCorpus, query: str, k: int = 10) -> list[int]:
    (row,) = index_of(method, corpus).search([query], k).indices.tolist()
    return [each for each in row if each >= 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t…—!", []),
        ("The fox's DEN", ["the", "fox", "s", "den"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("ｆｕｌｌ ﬁne x²", ["full", "fine", "x2"]),
        ("東京都", ["東京", "京都"]),
        ("東 x", ["東", "x"]),
        ("Python入門2024年", ["python", "入門", "2024", "年"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("한국어", ["한국", "국어"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("العربية أحمد کتابی ٤٤٧١ ۴४๗", ["العربيه", "احمد", "كتابي", "4471", "447"]),
        ("snake_case 3.14 __a__", ["snake_case", "snake", "case", "3", "14", "__a__", "a"]),
        ("Wert\u00adpapier ta\u2060r", ["wertpapier", "wert", "papier", "tar", "ta", "r"]),
        (
            "\u0643\u062a\u0640\u0640\u0627\u0628 \u0643\u0650\u062a\u064e\u0627\u0628\u064c",
            ["\u0643\u062a\u0627\u0628"] * 2,
        ),
        ("İstanbul", ["istanbul"]),
        ("KIRMIZI IŞIK kırmızı ışık", ["kirmizi", "işik"] * 2),
        ("東\u2060京", ["東京"]),
        ("<|endoftext|>\x00a\ud800b", ["endoftext", "a", "b"]),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_words_of_any_text_hold_its_letters_and_no_space(text: str) -> None:
    assert all(word and not any(character.isspace() for character in word) for word in words(text))
    assert words(text.upper().casefold()) == words(text.upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Terminates, termination; term", ["termi", "termi", "term"]),
        ("20191231 A1234567 covid19_2020", ["20191231", "a1234567", "covid", "covid", "2020"]),
        ("документация документы", ["докум", "докум"]),
        ("Kündigungsfrist", ["kündi"]),
        ("भाषाओं", ["भाषाओ"]),
        ("والكتاب بالكتاب كتاب ألم وقت ال", ["كتاب", "كتاب", "كتاب", "الم", "وقت", "ال"]),
        ("東京都 ภาษาไทย", ["東京", "京都", "ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
    ],
)
def test_words_cut_to_their_first_letters(text: str, expected: list[str]) -> None:
    assert word_keys(text, "first5") == expected


@given(st.text(), st.integers(2, 9))
def test_word_keys_of_any_text_stand_for_its_words(text: str, letters: int) -> None:
    assert word_keys(text) == words(text)
    keys = word_keys(text, f"first{letters}")
    assert len(keys) == len(words(text))
    assert all(keys)
    assert all(key in word for key, word in zip(keys, words(text), strict=True))
    assert all(len(key) <= letters or any(map(str.isdigit, key[:letters])) for key in keys)


def test_bm25_compares_words_as_it_is_told_to() -> None:
    corpus = corpus_of("the lease terminates", "a term of years", "rain")
    assert found(BM25(), corpus, "termination") == []
    assert found(BM25(words="first5"), corpus, "termination") == [0]
    assert found(BM25(words="first4"), corpus, "termination") == [0, 1]


def lucene(query: list[str], chunks: list[list[str]], k1: float, b: float) -> list[float]:
    """The formula of the docstring, word by word."""
    mean = sum(map(len, chunks)) / len(chunks)
    scores = []
    for chunk in chunks:
        counts, total = Counter(chunk), 0.0
        for word in query:
            n, f = sum(word in each for each in chunks), counts[word]
            idf = math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5))
            total += idf * f / (f + k1 * (1 - b + b * len(chunk) / mean)) if f else 0.0
        scores.append(total)
    return scores


letters = st.lists(st.sampled_from("abcdef"), max_size=8)
weights = st.sampled_from([0.0, 1.2, 2.0]), st.sampled_from([0.0, 0.75, 1.0])


@settings(max_examples=60)
@given(st.lists(letters, min_size=1, max_size=8), letters, *weights, st.integers(1, 10))
def test_bm25_is_lucenes_formula(texts: list[list[str]], query: list[str], k1: float, b: float, k: int) -> None:
    corpus = corpus_of(*map(" ".join, texts))
    ranked = index_of(BM25(k1=k1, b=b), corpus).search([" ".join(query)], k)
    (indices,), (scores,) = ranked.indices.tolist(), ranked.scores.tolist()
    expected = lucene(query, texts, k1, b) if any(texts) else [0.0] * len(texts)
    assert [expected[i] for i in indices] == pytest.approx(scores, rel=1e-5)
    matching = sorted((score for score in expected if score > 0), reverse=True)
    assert scores == pytest.approx(matching[:k], rel=1e-5)


def test_equal_chunks_come_in_their_order_and_what_shares_no_word_not_at_all() -> None:
    corpus = corpus_of("a fox", "a dog", "a fox", "the cat")
    assert found(BM25(), corpus, "fox") == [0, 2]
    assert found(BM25(), corpus, "fox", 1) == [0]
    assert found(BM25(), corpus, "horse") == []
    assert found(BM25(), corpus, "…") == []


def test_bm25_reads_the_context_that_was_written_about_a_chunk() -> None:
    plain = chunks_of("it was raised", "it was cut")
    corpus = corpus_with([plain[0], replace(plain[1], context="Harbour dues")])
    assert found(BM25(), corpus, "harbour") == [1]


def test_nothing_to_search() -> None:
    for method in (BM25(), Dense(), Hybrid(), Hybrid(fusion="ranks"), Reranked(method=BM25(), model=shared)):
        assert index_of(method, corpus_of()).search(["fox"], 3).indices.shape[1] == 0
        assert index_of(method, corpus_of("a fox")).search([], 3).indices.shape[0] == 0
    assert found(BM25(), corpus_of("…", ""), "fox") == []


TEXTS = ["the fox naps", "the dog barks at the fox", "rain falls", "a ferry leaves", "the fox wakes at noon"]


def test_dense_finds_what_the_vectors_alone_find() -> None:
    model = FakeEmbedder()
    queries = ["where is the fox", "ferry"]
    indices, scores = top_k(model.embed_queries(queries), model.embed_documents(TEXTS), 4)
    ranked = index_of(Dense(), corpus_of(*TEXTS)).search(queries, 4)
    assert ranked.indices.tolist() == indices.tolist()
    assert ranked.scores.tolist() == scores.astype(np.float64).tolist()


orders = st.permutations(range(12)).flatmap(lambda order: st.integers(0, 12).map(lambda size: tuple(order[:size])))


@given(st.lists(orders, min_size=2, max_size=3), st.integers(1, 5), st.integers(1, 14), st.integers(0, 60))
def test_the_best_of_a_fusion_do_not_depend_on_how_many_are_asked_for(lists, depth, k, constant):
    corpus = corpus_of(*"abcdefghijkl")
    method = Hybrid(methods=tuple(map(Fixed, lists)), depth=depth, k=constant, fusion="ranks")
    everything = found(method, corpus, "?", 12)
    assert found(method, corpus, "?", k) == everything[:k]
    assert sorted(everything) == sorted(set().union(*lists))  # each once, and none is lost
    scores = index_of(method, corpus).search(["?"], 12).scores
    assert (np.diff(scores[np.isfinite(scores)]) <= 0).all()
    whole = Hybrid(methods=tuple(map(Fixed, lists)), depth=12, k=constant, fusion="ranks")
    expected = {i: sum(1 / (constant + each.index(i) + 1) for each in lists if i in each) for i in everything}
    best = found(whole, corpus, "?", 12)
    assert [expected[i] for i in best] == pytest.approx(sorted(expected.values(), reverse=True))


@dataclass(frozen=True, eq=False)
class Scored(Fixed):
    """Fixed scores: of chunk i, `scores[i]`; None: not found."""

    scores: tuple[float | None, ...] = ()

    def build(self, corpus: ChunkedCorpus, vectors: TextVectors | None = None) -> Index:
        return ScoredIndex(corpus, self.scores)


class ScoredIndex(Index):
    def __init__(self, corpus: ChunkedCorpus, scores: tuple[float | None, ...]) -> None:
        super().__init__(corpus)
        self.ranked = sorted((-each, i) for i, each in enumerate(scores) if each is not None)

    def rank(self, queries: Sequence[str], k: int) -> Hits:
        own = self.ranked[:k]
        return Hits.of([(np.array([i for _, i in own], dtype=np.int64), np.array([-s for s, _ in own]))] * len(queries))


def standardised(lists: list[tuple[float | None, ...]], depth: int) -> dict[int, float]:
    """The docstring of `Hybrid`, chunk by chunk."""
    best = [sorted((-each, i) for i, each in enumerate(own) if each is not None)[:depth] for own in lists]
    found = sorted({i for own in best for _, i in own})
    total = dict.fromkeys(found, 0.0)
    for own in best:
        known = {i: -score for score, i in own}
        last = -own[-1][0] if own else 0.0
        values = [known.get(i, last if len(own) == depth else min(last, 0.0)) for i in found]
        deviation = statistics.pstdev(values) if found else 0.0
        for i, value in zip(found, values, strict=True):
            total[i] += (value - statistics.fmean(values)) / deviation if deviation > 1e-12 else 0.0
    return total


some_scores = st.lists(st.none() | st.integers(-3, 9).map(float), min_size=9, max_size=9).map(tuple)


@given(st.lists(some_scores, min_size=2, max_size=3), st.integers(1, 10), st.integers(1, 10))
def test_scores_are_standardised_over_what_was_found(lists: list[tuple[float | None, ...]], depth: int, k: int) -> None:
    corpus = corpus_of(*"abcdefghi")
    method = Hybrid(methods=tuple(Scored((), each) for each in lists), depth=depth, fusion="scores")
    everything = index_of(method, corpus).search(["?"], 9)
    indices, scores = everything.row(0)
    expected = standardised(lists, min(depth, 9))
    first = {i: score for i, score in zip(indices.tolist(), scores.tolist(), strict=True) if i in expected}
    assert list(first) == indices[: len(first)].tolist()  # what a deeper search adds stands behind
    assert first == pytest.approx(expected, abs=1e-9)
    assert index_of(method, corpus).search(["?"], k).indices[0].tolist() == indices[:k].tolist()


def shared(pairs: Sequence[tuple[str, str]]) -> list[float]:
    return [float(len({*query.split()} & {*text.split()})) for query, text in pairs]


def test_the_best_are_put_in_the_rerankers_order_and_the_rest_stay() -> None:
    corpus = corpus_of("c", "a b c", "a b", "a b c", "x")
    method = Reranked(method=Fixed((4, 0, 2, 1, 3)), model=shared, depth=3)
    # 4, 0 and 2 share 0, 1 and 2 words; 1 and 3 were not read, and stay behind though they share 3.
    assert found(method, corpus, "a b c") == [2, 0, 4, 1, 3]
    assert [found(method, corpus, "a b c", k) for k in (1, 2, 4)] == [[2], [2, 0], [2, 0, 4, 1]]
    scores = index_of(method, corpus).search(["a b c"], 5).scores[0]
    assert (np.diff(scores) <= 0).all()


def test_a_reranker_reads_pairs_once_and_the_context_with_the_text() -> None:
    asked: list[tuple[str, str]] = []

    def note(pairs: Sequence[tuple[str, str]]) -> list[float]:
        asked.extend(pairs)
        return [0.0] * len(pairs)

    first, second = chunks_of("it rose", "it fell")
    corpus = corpus_with([replace(first, context="Dues"), second])
    Reranked(method=Fixed((0, 1)), model=note, depth=1).index(corpus).search(["a", "b"], 2)
    assert asked == [("a", "Dues\nit rose"), ("b", "Dues\nit rose")]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([math.nan] * 2, "NaN or infinity"),
        ([1.0], r"given 2 pairs and answered with an array of shape \(1,\)"),
        ([[1.0], [2.0]], "expected a finite number a pair"),
        (["good", "bad"], "failed on 2 pairs: ValueError"),
        (None, "answered with"),
    ],
)
def test_a_reranker_that_answers_nonsense_twice_is_told(answer: Any, message: str) -> None:
    method = Reranked(method=Fixed((0, 1)), model=lambda pairs: answer)
    with pytest.raises(ModelError, match=message):
        method.index(corpus_of("a", "b")).search(["?"], 2)


def test_a_reranker_that_fails_once_is_asked_again() -> None:
    calls = []

    def moody(pairs: Sequence[tuple[str, str]]) -> list[float]:
        calls.append(len(pairs))
        if len(calls) == 1:
            raise ConnectionError("hung up")
        return [0.0, 1.0]

    assert found(Reranked(method=Fixed((0, 1)), model=moody), corpus_of("a", "b"), "?") == [1, 0]


def test_what_is_no_reranker_is_refused() -> None:
    with pytest.raises(OptionError, match="got 3"):
        get_reranker(3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a reranker is a folder, a name"):
        get_reranker(" ")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("dense", Dense()),
        (" bm25 : k1=2 , b=0.5 ", BM25(k1=2.0, b=0.5)),
        ("dense:cluster_only=true", Dense(cluster_only=True)),
        ("hybrid", Hybrid(methods=(Dense(), BM25()), k=60)),
        ("hybrid:bm25,late", Hybrid(methods=(BM25(), Late()))),
        (
            'hybrid:dense,"bm25:k1=2,b=0.5",k=10,fusion=ranks',
            Hybrid(methods=(Dense(), BM25(k1=2.0, b=0.5)), k=10, fusion="ranks"),
        ),
        ("bm25:b=1+rerank:depth=20,model=a/b", Reranked(method=BM25(b=1.0), depth=20, model="a/b")),
        ("hybrid+rerank:model=x+rerank", Reranked(method=Reranked(method=Hybrid(), model="x"))),
        ('bm25+rerank:depth=7,model="x+rerank"', Reranked(method=BM25(), model="x+rerank", depth=7)),
        ('bm25+rerank:model="a,b"', Reranked(method=BM25(), model="a,b")),
        ('hybrid:dense,"bm25+rerank:depth=5"', Hybrid(methods=(Dense(), Reranked(method=BM25(), depth=5)))),
    ],
)
def test_a_string_describes_a_search_and_its_name_describes_it_again(spec: str, expected: RetrievalMethod) -> None:
    assert get_retriever(spec) == expected
    assert get_retriever(get_retriever(spec).name) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "unknown retriever ''"),
        ("bm52", "expected one of bm25, dense, hybrid, late, passages, with or without"),
        ("bm25:k3=1", "the retriever bm25 has no option 'k3': expected some of k1, b"),
        ("bm25:k1=-1", "k1 is at least 0"),
        ("bm25:words=stem", "words is whole, or first2 to first99, such as first5; got 'stem'"),
        ("bm25:b=x", "bm25: b is a number; got 'x'"),
        ("dense:cluster_only=1", "dense: cluster_only is true or false; got 1"),
        ("bm25:b=1,b=1", "b is given twice in the retriever"),
        ("bm25:dense", "takes options as option=value, got 'dense'"),
        ("hybrid:dense", "fuses two retrievers or more, got 1"),
        ("hybrid:dense,bm52", "unknown retriever 'bm52'"),
        ("semantic", "did you mean 'dense'?"),
        ("hybrid:fusion=sums", "hybrid: fusion is one of 'scores', 'ranks'; got 'sums'"),
        ("hybrid:k=10", "write k=10,fusion=ranks, or leave it out"),
        ("hybrid:dense,bm25,depth=0", "depth is at least 1"),
        ('hybrid:dense,"bm25', "a quote is not closed in the retriever"),
        ("bm25+rerank:depth=0", "depth is at least 1"),
        ("bm25+rerank:method=bm25", "the method stands before"),
    ],
)
def test_a_string_that_describes_none_is_refused(spec: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        get_retriever(spec)
    assert message in str(caught.value)


@given(st.lists(st.lists(st.integers(0, 9), unique=True), max_size=4))
def test_rows_of_any_length_stand_side_by_side(rows: list[list[int]]) -> None:
    ranked = Hits.of([(np.array(row, dtype=np.int64), -np.arange(float(len(row)))) for row in rows])
    assert ranked.counts.tolist() == [len(row) for row in rows]
    assert [ranked.row(number)[0].tolist() for number in range(len(rows))] == rows
    assert ranked.best(2).counts.tolist() == [min(2, len(row)) for row in rows]


@pytest.mark.parametrize("retriever", ["bm25", "passages:lexical"])
def test_lexical_search_takes_no_tag_of_html_for_a_word(retriever: str) -> None:
    page = Document("page.html", '<div class="fox"><p>The crow naps.</p></div>' * 3)
    documents = [page, Document("notes.txt", "The <div> of the fox.")]
    corpus = ChunkedCorpus(FixedToken(size=7).chunk_many(documents), documents)
    assert not any(set(words(text)) & {"div", "class", "fox", "p"} for text in corpus.lexical_texts[:-2])
    assert [chunk.text for chunk in corpus] == list(corpus.texts)
    found = get_retriever(retriever).index(corpus).retrieve("fox div class", k=2)
    assert found[0].document_id == "notes.txt"
    assert corpus.lexical_texts[len(corpus) - 1] == corpus[-1].text
    whole = ChunkedCorpus([Chunk("page.html", 0, (Span(0, 3), Span(9, 12)), "<b>fox", 1, "Context")], [page])
    assert list(whole.lexical_texts) == ["Context\n   fox"]
