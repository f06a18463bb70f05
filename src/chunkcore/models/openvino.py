"""`OpenVinoEmbedder`: a BERT sentence model on the CPU, without PyTorch.

The graph is written here, because the alternatives (openvino's converter, optimum, ONNX export) all need PyTorch,
which is several gigabytes on Linux. It loads in under a second and gives the same vectors (cosine above 0.99999,
held by a test).
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.columns import blocks
from chunkcore.errors import OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.base import (
    DOCUMENT_PROMPTS,
    TokenizerEmbedder,
    Vectors,
    choose_prompt,
    folder_fingerprint,
    in_batches,
    padded,
    without_truncation,
)
from chunkcore.spans import Numbers

Precision = Literal["f32", "bf16"]
_BATCH_TOKENS = 4096
_TOKENIZED_AT_ONCE = 4096
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_ACTIVATIONS = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
_USUAL = {"hidden_act": "gelu", "position_embedding_type": "absolute"}  # of config.json
_KNOWN = {
    "model_type": ["bert"],
    "hidden_act": list(_ACTIVATIONS),
    "position_embedding_type": ["absolute"],
}


def import_openvino() -> Any:
    """Openvino without its telemetry, which on import sends an event to a server and writes to the home folder. Raises
    `MissingExtraError`: openvino is not installed.
    """
    hidden = "openvino_telemetry"  # without it, openvino uses a stub that does nothing
    before = sys.modules.pop(hidden, None)
    sys.modules[hidden] = None  # type: ignore[assignment]  # makes its import fail
    try:
        return needed("openvino", "models", "embed text without PyTorch")
    finally:
        del sys.modules[hidden]
        if before is not None:
            sys.modules[hidden] = before


@dataclass(frozen=True, kw_only=True)
class BertFolder:
    """The settings of a BERT encoder, and its folder."""

    path: Path
    layers: int
    heads: int
    hidden: int
    epsilon: float  # of the layer normalisations
    activation: str  # the form of GELU: "erf" or "tanh"
    pooling: str  # "mean" over the tokens, or "cls", the first token
    normalize: bool  # whether vectors are scaled to length 1
    max_tokens: int  # of a text, special tokens included
    document_prompt: str  # put before a text
    query_prompt: str


def is_bert_folder(path: Path) -> bool:
    """Whether `read_bert_folder` can read the folder."""
    try:
        read_bert_folder(path)
    except OptionError:
        return False
    return True


def read_bert_folder(path: Path) -> BertFolder:
    """The settings of the folder's model. Raises `OptionError`: they are missing, or no BERT that we can build."""
    try:
        return _settings(path)
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        raise _unbuildable(path, error) from error


def _unbuildable(path: Path, reason: Exception) -> OptionError:
    backend = f"the openvino backend cannot build the model in {str(path)!r}"
    kind = "" if type(reason) is ValueError else f"{type(reason).__name__}: "
    return OptionError(f"{backend}: {kind}{reason}. Use torch:{path} (sentence-transformers)")


def _settings(path: Path) -> BertFolder:
    for name in ("tokenizer.json", "model.safetensors"):
        _check((path / name).is_file(), f"it has no {name}")
    config = _USUAL | _read(path / "config.json")
    for name, known in _KNOWN.items():
        kind = config[name]
        _check(kind in known, f"its {name} is {echo(kind)}; expected {' or '.join(known)}")
    modules = {}
    for module in _read(path / "modules.json", shape=list):
        kind = module["type"].rpartition(".")[2]
        modules[kind] = module["path"]
    _check(
        list(modules) in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]),
        f"its modules are {', '.join(modules)}; expected Transformer and Pooling",
    )
    _check(modules["Transformer"] in ("", "."), "its Transformer is in another folder")
    limits = _read(path / "sentence_bert_config.json", optional=True)
    _check(not limits.get("do_lower_case"), "its texts are lowercased before the tokenizer")
    positions = _whole(config, "max_position_embeddings")
    limits["max_seq_length"] = limits.get("max_seq_length") or positions
    prompts = _read(path / "config_sentence_transformers.json", optional=True)
    by_name = prompts.get("prompts") or {}
    _check(isinstance(by_name, dict), "its prompts are not strings by name")
    prompt_of = partial(choose_prompt, by_name, prompts.get("default_prompt_name"))
    hidden = _whole(config, "hidden_size")
    heads = _whole(config, "num_attention_heads")
    _check(hidden % heads == 0, f"its hidden_size {hidden} cannot be shared by {heads} heads")
    return BertFolder(
        path=path,
        layers=_whole(config, "num_hidden_layers"),
        heads=heads,
        hidden=hidden,
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=_ACTIVATIONS[config["hidden_act"]],
        pooling=_pooling(_read(path / modules["Pooling"] / "config.json")),
        normalize="Normalize" in modules,
        max_tokens=min(_whole(limits, "max_seq_length"), positions),
        document_prompt=prompt_of(DOCUMENT_PROMPTS),
        query_prompt=prompt_of(["query"]),
    )


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _read(file: Path, *, shape: type = dict, optional: bool = False) -> Any:
    if optional and not file.is_file():
        return {}
    content = json.loads(file.read_text(encoding="utf-8"))
    seen = type(content).__name__
    is_shape = isinstance(content, shape)
    _check(is_shape, f"its {file.name} holds a {seen}; expected a {shape.__name__}")
    return content


def _whole(config: dict[str, Any], name: str) -> int:
    value = config[name]
    is_whole = type(value) is int and value >= 1
    _check(is_whole, f"its {name} is {echo(value)}; expected a whole number of at least 1")
    return int(value)


def _pooling(config: dict[str, Any]) -> str:
    _check(config.get("include_prompt", True), "its pooling leaves out the prompt")
    chosen = [name for name in config if name.startswith("pooling_mode_") and config[name] is True]
    active = [_POOLINGS.get(name, name) for name in chosen]
    modes = config.get("pooling_mode", active) or ["mean"]
    if isinstance(modes, str):
        modes = [modes]
    problem = f"its pooling is {' + '.join(modes)}; expected mean or cls"
    _check(modes in (["mean"], ["cls"]), problem)
    return str(modes[0])


class _Bert:
    """The encoder in openvino's operations; `x` is the hidden state, (texts, tokens, hidden), until pooling."""

    def __init__(
        self,
        folder: BertFolder,
        weights: dict[str, NDArray[Any]],
    ) -> None:
        # By name: openvino has no type hints.
        self.op: Any = import_module("openvino.opset13")
        self.folder = folder
        self.weights = weights

    def model(self, openvino: Any, *, pooled: bool) -> Any:
        """One row a text; without `pooled` one a token, shape (texts, tokens, hidden)."""
        ids = self.op.parameter([-1, -1], np.int32)
        mask = self.op.parameter([-1, -1], np.float32)
        # A large negative number before the softmax becomes 0.
        hidden = (mask - self.number(1)) * self.number(1e9)
        bias = self.op.unsqueeze(hidden, [1, 2])
        x = self.embeddings(ids)
        for layer in range(self.folder.layers):
            x = self.layer(x, bias, f"encoder.layer.{layer}")
        if pooled:
            x = self.pooled(x, mask)
            if self.folder.normalize:
                x = self.op.normalize_l2(x, [1], 1e-12, "max")
        return openvino.Model([x], [ids, mask], "bert")

    def embeddings(self, ids: Any) -> Any:
        length = self.op.gather(self.op.shape_of(ids), 1, 0)
        places = self.op.range(0, length, 1, "i64")
        # All tokens are of segment 0: its row is added to every position here, once.
        segment = self.tensor("embeddings.token_type_embeddings.weight")[0]
        positions = self.tensor("embeddings.position_embeddings.weight") + segment
        words = self.op.gather(self.constant("embeddings.word_embeddings.weight"), ids, 0)
        x = words + self.op.gather(positions, places, 0)
        return self.normalized(x, "embeddings.LayerNorm")

    def layer(self, x: Any, bias: Any, name: str) -> Any:
        attended = self.attention(x, bias, f"{name}.attention.self")
        x = x + self.linear(attended, f"{name}.attention.output.dense")
        x = self.normalized(x, f"{name}.attention.output.LayerNorm")
        wide = self.linear(x, f"{name}.intermediate.dense")
        wide = self.op.gelu(wide, self.folder.activation)
        x = x + self.linear(wide, f"{name}.output.dense")
        return self.normalized(x, f"{name}.output.LayerNorm")

    def attention(self, x: Any, bias: Any, name: str) -> Any:
        """softmax(q kᵀ / √d + bias) v, by heads; the operation divides by √d."""
        heads, hidden = self.folder.heads, self.folder.hidden
        by_head = []
        for part in ("query", "key", "value"):
            parted = self.linear(x, f"{name}.{part}")
            parted = self.op.reshape(parted, [0, 0, heads, hidden // heads], True)
            by_head.append(self.op.transpose(parted, [0, 2, 1, 3]))
        mixed = self.op.scaled_dot_product_attention(*by_head, bias)
        together = self.op.transpose(mixed, [0, 2, 1, 3])
        return self.op.reshape(together, [0, 0, hidden], True)

    def pooled(self, x: Any, mask: Any) -> Any:
        if self.folder.pooling == "cls":
            return self.op.gather(x, 0, 1)
        weight = self.op.unsqueeze(mask, [2])
        count = self.op.reduce_sum(weight, [1])
        count = self.op.maximum(count, self.number(1e-9))
        return self.op.reduce_sum(x * weight, [1]) / count

    def linear(self, x: Any, name: str) -> Any:
        matrix = self.constant(f"{name}.weight")
        return self.op.matmul(x, matrix, False, True) + self.tensor(f"{name}.bias")

    def normalized(self, x: Any, name: str) -> Any:
        epsilon = self.folder.epsilon
        centred = self.op.mvn(x, [-1], True, epsilon, "inside_sqrt")
        return centred * self.tensor(f"{name}.weight") + self.tensor(f"{name}.bias")

    def number(self, value: float) -> Any:
        return self.op.constant(np.float32(value))

    def constant(self, name: str) -> Any:
        """A tensor that openvino reads where it is: a copy of all takes a second."""
        return self.op.constant(self.tensor(name), shared_memory=True)

    def tensor(self, name: str) -> NDArray[np.float32]:
        weight = self.weights.get(name, self.weights.get(f"bert.{name}"))
        if weight is None:
            raise ValueError(f"its weights have no {name}")
        return weight.astype(np.float32, copy=False)


def has_bf16() -> bool:
    """Whether openvino is installed and this CPU multiplies numbers of 16 bits: about twice as fast as of 32."""
    if find_spec("openvino") is None:
        return False
    core = import_openvino().Core()
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _compile(folder: BertFolder, precision: Precision, *, pooled: bool) -> Any:
    openvino = import_openvino()
    safetensors = needed("safetensors.numpy", "models", "read a model's weights")
    # Without the hint openvino would choose, and vectors would differ between processors.
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision}
    if precision != "f32" and not has_bf16():
        raise OptionError(
            f"this CPU has no arithmetic of 16 bits, which {precision} needs: use openvino:{folder.path}"
        )
    try:
        weights = safetensors.load_file(folder.path / "model.safetensors")
        graph = _Bert(folder, weights).model(openvino, pooled=pooled)
        compiled = openvino.Core().compile_model(graph, "CPU", options)
        return compiled.create_infer_request()
    except Exception as error:  # of a damaged file, or of weights that do not fit config.json
        raise _unbuildable(folder.path, error) from error


class OpenVinoEmbedder(TokenizerEmbedder):
    """The model of a local sentence-transformers folder with a BERT encoder.

    Args:
        folder: holds config.json, modules.json, tokenizer.json, model.safetensors and the pooling's config.
        name: what `get_embedder` builds it from; the default is "openvino:" and the folder.
        precision: "f32"; or "bf16": sums of 32 bits of products of 16. Vectors differ, and so does the fingerprint.

    Raises `OptionError`: the folder holds another kind of model, or not all of one; or the CPU has no arithmetic of 16
    bits. Raises `MissingExtraError`: openvino, tokenizers or safetensors is not installed.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        name: str = "",
        precision: Precision = "f32",
    ) -> None:
        self.precision = precision
        self._kind = "openvino" if precision == "f32" else f"openvino-{precision}"
        self.name = name or f"{self._kind}:{folder}"
        self._folder = read_bert_folder(Path(folder))
        self.max_tokens: int | None = self._folder.max_tokens
        self.symmetric = self._folder.document_prompt == self._folder.query_prompt
        self._prompt = self._folder.document_prompt
        tokenizers = needed("tokenizers", "models", "read a model's vocabulary")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self._folder.path / "tokenizer.json"))
        except Exception as error:
            raise _unbuildable(self._folder.path, error) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._folder.max_tokens)
        self._tokenizer = tokenizer
        self._request = _compile(self._folder, precision, pooled=True)
        # One request at a time: it spreads each batch over all cores.
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle holds the path; the process that reads it loads the model.
        return partial(type(self), name=self.name, precision=self.precision), (self._folder.path,)

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' content and the backend, because the last digits differ between backends."""
        return f"{self._kind}-bert-1:{folder_fingerprint(self._folder.path)}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions). Tokens over `max_tokens` are cut off."""
        return self._embed(texts, self._folder.document_prompt)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._folder.query_prompt)

    def embed_tokens(self, windows: Sequence[Numbers]) -> list[Vectors]:
        """See `TokenEmbedder.embed_tokens`. Raises `OptionError`: the model pools by its first token."""
        if self._folder.pooling != "mean":
            raise OptionError(
                f"{self.name}: its vector is its first token's; choose a model that pools by mean"
            )
        infer = partial(self._infer, self._token_request)
        return in_batches(windows, _BATCH_TOKENS, infer)

    @cached_property
    def _token_request(self) -> Any:
        return _compile(self._folder, self.precision, pooled=False)

    @cached_property
    def _counter(self) -> Any:
        return without_truncation(self._tokenizer)

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        ready = self._ready(texts, prompt)
        tokens = []  # the tokenizer's objects take ten times the memory
        for some in blocks(ready, _TOKENIZED_AT_ONCE):
            encodings = self._tokenizer.encode_batch_fast(some)
            tokens += [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]
        infer = partial(self._infer, self._request)
        rows = in_batches(tokens, _BATCH_TOKENS, infer)
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._folder.hidden)

    def _infer(self, request: Any, tokens: Sequence[NDArray[Any]]) -> Vectors:
        ids, mask = padded(tokens)
        with self._lock:
            request.infer([ids.astype(np.int32), mask.astype(np.float32)])
            answer: Vectors = request.get_output_tensor(0).data.copy()
        return answer
