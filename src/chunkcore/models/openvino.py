"""`OpenVinoEmbedder`: a BERT sentence model on the CPU, without PyTorch.

The graph is written here, because the alternatives (openvino's converter, optimum, ONNX export) all need PyTorch,
which is several gigabytes on Linux. It loads in under a second and gives the same vectors (cosine above 0.99999,
held by a test).
"""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError, echo
from chunkcore.lazy import needed
from chunkcore.models.base import (
    TokenizerEmbedder,
    Vectors,
    folder_fingerprint,
    in_batches,
    padded,
    sorted_batches,
)
from chunkcore.spans import Numbers

Weights = Callable[[str], NDArray[np.float32]]
Precision = Literal["f32", "int8"]
_BATCH_TEXTS = 32
_BATCH_TOKENS = 4096
_TOKENIZED_AT_ONCE = 4096
_QUANTIZED_TOGETHER = "64"  # numbers of a matrix's input that share a factor
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_ACTIVATIONS = {"gelu": "erf", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
_MODULES = ["Transformer", "Pooling", "Normalize"]
# By name of a setting: its default, and the values that we can build.
_SUPPORTED: dict[str, tuple[str | None, list[str]]] = {
    "model_type": (None, ["bert"]),
    "position_embedding_type": ("absolute", ["absolute"]),
    "hidden_act": ("gelu", list(_ACTIVATIONS)),
}
_DOCUMENT_PROMPTS = (
    "document",
    "passage",
    "corpus",
)  # in the order in which sentence-transformers looks for one


def import_openvino() -> Any:
    """Openvino without its telemetry, which on import sends an event to a server and writes to the home folder. Raises
    `MissingExtraError`: openvino is not installed.
    """
    hidden = "openvino_telemetry"  # without it, openvino uses a stub that does nothing
    before = {name: module for name, module in sys.modules.items() if name == hidden}
    sys.modules[hidden] = None  # type: ignore[assignment]  # makes its import fail
    try:
        return needed("openvino", "models", "embed text without PyTorch")
    finally:
        del sys.modules[hidden]
        sys.modules.update(before)


class _Graph:
    """Builds the encoder as an `openvino.Model`; `x` is the hidden state, (texts, tokens, hidden), until pooling."""

    def __init__(self, folder: BertFolder, weights: Weights, precision: Precision) -> None:
        self.precision = precision
        # By name: openvino has no type hints.
        self.openvino = import_openvino()
        self.op: Any = import_module("openvino.opset13")
        self.folder = folder
        self.weights = weights

    def model(self, *, pooled: bool) -> Any:
        """One row a text; without `pooled` one a token, shape (texts, tokens, hidden)."""
        ids = self.op.parameter([-1, -1], np.int32, name="ids")
        mask = self.op.parameter([-1, -1], np.float32, name="mask")
        x = self.embeddings(ids)
        # A large negative number before the softmax becomes 0.
        hidden = self.op.subtract(mask, self.number(1.0))
        bias = self.op.unsqueeze(self.op.multiply(hidden, self.number(1e9)), self.integers(1, 2))
        for layer in range(self.folder.layers):
            x = self.layer(x, bias, f"encoder.layer.{layer}.")
        if pooled:
            x = self.pooled(x, mask)
            if self.folder.normalize:
                x = self.op.normalize_l2(x, self.integers(1), 1e-12, "max")
        return self.openvino.Model([x], [ids, mask], "bert")

    def embeddings(self, ids: Any) -> Any:
        length = self.op.gather(self.op.shape_of(ids), self.integer(1), self.integer(0))
        places = self.op.range(self.integer(0), length, self.integer(1), "i64")
        words = self.op.gather(
            self.tensor("embeddings.word_embeddings.weight"), ids, self.integer(0)
        )
        # All tokens are of segment 0: its row is added to every position here, once.
        segment = self.weights("embeddings.token_type_embeddings.weight")[0]
        positions = self.op.constant(
            self.weights("embeddings.position_embeddings.weight") + segment
        )
        x = self.op.add(words, self.op.gather(positions, places, self.integer(0)))
        return self.normalized(x, "embeddings.LayerNorm")

    def layer(self, x: Any, bias: Any, name: str) -> Any:
        attended = self.linear(
            self.attention(x, bias, f"{name}attention.self."), f"{name}attention.output.dense"
        )
        x = self.normalized(self.op.add(attended, x), f"{name}attention.output.LayerNorm")
        wide = self.op.gelu(self.linear(x, f"{name}intermediate.dense"), self.folder.activation)
        return self.normalized(
            self.op.add(self.linear(wide, f"{name}output.dense"), x), f"{name}output.LayerNorm"
        )

    def attention(self, x: Any, bias: Any, name: str) -> Any:
        """softmax(q kᵀ / √d + bias) v, by heads; the operation divides by √d."""
        query, key, value = (
            self.by_head(self.linear(x, name + part)) for part in ("query", "key", "value")
        )
        mixed = self.op.scaled_dot_product_attention(query, key, value, bias)
        together = self.op.transpose(mixed, self.integers(0, 2, 1, 3))
        return self.op.reshape(together, self.integers(0, 0, self.folder.hidden), True)

    def by_head(self, x: Any) -> Any:
        width = self.folder.hidden // self.folder.heads
        parted = self.op.reshape(x, self.integers(0, 0, self.folder.heads, width), True)
        return self.op.transpose(parted, self.integers(0, 2, 1, 3))

    def pooled(self, x: Any, mask: Any) -> Any:
        if self.folder.pooling == "cls":
            return self.op.gather(x, self.integer(0), self.integer(1))
        weight = self.op.unsqueeze(mask, self.integers(2))
        total = self.op.reduce_sum(self.op.multiply(x, weight), self.integers(1))
        count = self.op.reduce_sum(weight, self.integers(1))
        return self.op.divide(total, self.op.maximum(count, self.number(1e-9)))

    def linear(self, x: Any, name: str) -> Any:
        weight = (
            self.rounded(f"{name}.weight")
            if self.precision == "int8"
            else self.tensor(f"{name}.weight")
        )
        return self.op.add(self.op.matmul(x, weight, False, True), self.tensor(f"{name}.bias"))

    def rounded(self, name: str) -> Any:
        """A matrix as whole numbers of 8 bits and a factor a row, which the CPU multiplies as they are."""
        matrix = self.weights(name)
        factors = np.maximum(
            np.abs(matrix).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny
        )
        whole = self.op.constant(np.rint(matrix / factors).astype(np.int8))
        return self.op.multiply(
            self.op.convert(whole, "f32"), self.op.constant(factors.astype(np.float32))
        )

    def normalized(self, x: Any, name: str) -> Any:
        centred = self.op.mvn(x, self.integers(-1), True, self.folder.epsilon, "inside_sqrt")
        scaled = self.op.multiply(centred, self.tensor(f"{name}.weight"))
        return self.op.add(scaled, self.tensor(f"{name}.bias"))

    def tensor(self, name: str) -> Any:
        return self.op.constant(self.weights(name))

    def number(self, value: float) -> Any:
        return self.op.constant(np.float32(value))

    def integer(self, value: int) -> Any:
        return self.op.constant(np.int64(value))

    def integers(self, *values: int) -> Any:
        return self.op.constant(np.array(values, dtype=np.int64))


class OpenVinoEmbedder(TokenizerEmbedder):
    """The model of a local sentence-transformers folder with a BERT encoder.

    Args:
        folder: holds config.json, modules.json, tokenizer.json, model.safetensors and the pooling's config.
        name: what `get_embedder` builds it from; the default is "openvino:" and the folder.
        precision: "f32"; or "int8": weights and inputs of matrices in 8 bits, the rest in 16. Vectors differ, and so
            does the fingerprint.

    Raises `OptionError`: the folder holds another kind of model, or not all of one; or the CPU has no arithmetic of 16
    bits. Raises `MissingExtraError`: openvino, tokenizers or safetensors is not installed.
    """

    def __init__(self, folder: Path | str, *, name: str = "", precision: Precision = "f32") -> None:
        self.precision = precision
        self._kind = "openvino" if precision == "f32" else f"openvino-{precision}"
        self.name = name or f"{self._kind}:{folder}"
        self._folder: BertFolder = read_bert_folder(Path(folder))
        self.max_tokens: int | None = self._folder.max_tokens
        self.symmetric = self._folder.document_prompt == self._folder.query_prompt
        self.dimensions = self._folder.hidden
        self._prompt = self._folder.document_prompt
        self._tokenizer = self._load_tokenizer(truncate=True)
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
        return in_batches(
            windows,
            _BATCH_TEXTS,
            _BATCH_TOKENS,
            lambda some: self._infer(some, self._token_request),
        )

    @cached_property
    def _token_request(self) -> Any:
        return _compile(self._folder, self.precision, pooled=False)

    @cached_property
    def _counter(self) -> Any:
        return self._load_tokenizer(truncate=False)

    def _load_tokenizer(self, *, truncate: bool) -> Any:
        tokenizers = needed("tokenizers", "models", "read a model's vocabulary")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self._folder.path / "tokenizer.json"))
        except Exception as error:
            raise OptionError(
                f"the tokenizer.json in {str(self._folder.path)!r} cannot be read: {error}"
            ) from error
        tokenizer.no_padding()
        if truncate:
            tokenizer.enable_truncation(self._folder.max_tokens)
        else:
            tokenizer.no_truncation()
        return tokenizer

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        ready = self._ready(texts, prompt)
        tokens: list[
            NDArray[np.int32]
        ] = []  # the tokenizer's own objects take ten times the memory
        for start in range(0, len(ready), _TOKENIZED_AT_ONCE):
            encodings = self._tokenizer.encode_batch_fast(ready[start : start + _TOKENIZED_AT_ONCE])
            tokens.extend(np.array(encoding.ids, dtype=np.int32) for encoding in encodings)
        for batch in sorted_batches(
            [len(row) for row in tokens], size=_BATCH_TEXTS, total=_BATCH_TOKENS
        ):
            vectors[batch] = self._infer([tokens[i] for i in batch], self._request)
        return vectors

    def _infer(self, tokens: Sequence[NDArray[Any]], request: Any) -> Vectors:
        ids, mask = padded(tokens)
        with self._lock:
            request.infer([ids.astype(np.int32), mask.astype(np.float32)])
            answer: Vectors = request.get_output_tensor(0).data.copy()
        return answer


def _compile(folder: BertFolder, precision: Precision, *, pooled: bool) -> Any:
    core = import_openvino().Core()
    # Without the hint openvino would use a CPU's bfloat16 units: faster, but other vectors.
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if precision == "int8":
        options |= {
            "INFERENCE_PRECISION_HINT": "bf16",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": _QUANTIZED_TOGETHER,
        }
        if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise OptionError(
                f"this CPU has no arithmetic of 16 bits, which int8 needs: use openvino:{folder.path}"
            )
    weights = _weights(folder)
    try:
        graph = _Graph(folder, weights, precision).model(pooled=pooled)
        return core.compile_model(graph, "CPU", options).create_infer_request()
    except RuntimeError as error:
        reason = f"its weights do not fit its config.json ({str(error).strip().splitlines()[-1]})"
        raise _unbuildable(folder.path, reason) from error


def _weights(folder: BertFolder) -> Weights:
    safetensors = needed("safetensors.numpy", "models", "read a model's weights")
    try:
        tensors = safetensors.load_file(folder.path / "model.safetensors")
    except Exception as error:
        raise OptionError(
            f"the model.safetensors in {str(folder.path)!r} cannot be read: {error}"
        ) from error

    def tensor(name: str) -> NDArray[np.float32]:
        matrix = tensors.get(name, tensors.get(f"bert.{name}"))
        if matrix is None:
            raise _unbuildable(folder.path, f"its weights have no {name}")
        return np.ascontiguousarray(matrix, dtype=np.float32)

    return tensor


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
    except _UnbuildableError as error:
        raise _unbuildable(path, str(error)) from error.__cause__


def _unbuildable(path: Path, reason: str) -> OptionError:
    backend = f"the openvino backend cannot build the model in {str(path)!r}"
    return OptionError(f"{backend}: {reason}. Use torch:{path} (sentence-transformers)")


class _UnbuildableError(Exception):
    """Why the folder's model cannot be built."""


def _settings(path: Path) -> BertFolder:
    for name in ("modules.json", "config.json", "tokenizer.json", "model.safetensors"):
        if not (path / name).is_file():
            raise _UnbuildableError(f"it has no {name}")
    modules = _modules(path)
    config = _read(path, "config.json")
    _check_architecture(config)
    settings = _read(path, "sentence_bert_config.json", optional=True)
    if settings.get("do_lower_case"):
        raise _UnbuildableError("its texts are lowercased before the tokenizer")
    prompts = _prompts(_read(path, "config_sentence_transformers.json", optional=True))
    positions = _number(config, "max_position_embeddings")
    return BertFolder(
        path=path,
        layers=_number(config, "num_hidden_layers"),
        heads=_number(config, "num_attention_heads"),
        hidden=_number(config, "hidden_size"),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=_ACTIVATIONS[config.get("hidden_act", "gelu")],
        pooling=_pooling(_read(path, f"{modules['Pooling']}/config.json")),
        normalize="Normalize" in modules,
        max_tokens=min(_number(settings, "max_seq_length", positions), positions),
        document_prompt=next(
            (prompts[name] for name in _DOCUMENT_PROMPTS if name in prompts), prompts[""]
        ),
        query_prompt=prompts.get("query", prompts[""]),
    )


def _modules(path: Path) -> dict[str, str]:
    """The folders of the model's modules by kind, in the one order that we can build."""
    entries = _read(path, "modules.json", kind=list)
    try:
        folders = {
            str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in entries
        }
    except (KeyError, TypeError) as error:
        raise _UnbuildableError(
            "its modules.json is no list of modules with a type and a path"
        ) from error
    if len(entries) != len(folders) or list(folders) not in (_MODULES[:2], _MODULES):
        raise _UnbuildableError(
            f"its modules are {', '.join(folders)}; expected Transformer and Pooling"
        )
    if (path / folders["Transformer"]).resolve() != path.resolve():
        raise _UnbuildableError(
            f"its Transformer is in {echo(folders['Transformer'])}, not in the folder itself"
        )
    return folders


def _check_architecture(config: dict[str, Any]) -> None:
    for name, (default, supported) in _SUPPORTED.items():
        if (value := config.get(name, default)) not in supported:
            raise _UnbuildableError(
                f"its {name} is {echo(value)}; expected {' or '.join(supported)}"
            )
    epsilon = config.get("layer_norm_eps", 1e-12)
    if type(epsilon) is not float or not 0 < epsilon < math.inf:
        raise _UnbuildableError(f"its layer_norm_eps is {echo(epsilon)}; expected a small number")
    if _number(config, "hidden_size") % (heads := _number(config, "num_attention_heads")):
        raise _UnbuildableError(
            f"its hidden_size {config['hidden_size']} cannot be shared by {heads} heads"
        )


def _number(config: dict[str, Any], name: str, default: int | None = None) -> int:
    value = default if config.get(name) is None else config[name]
    if type(value) is not int or value < 1:
        raise _UnbuildableError(
            f"its {name} is {echo(value)}; expected a whole number of at least 1"
        )
    return value


def _pooling(config: dict[str, Any]) -> str:
    if not config.get("include_prompt", True):
        raise _UnbuildableError("its pooling leaves out the prompt")
    active = [
        name for name, value in config.items() if name.startswith("pooling_mode_") and value is True
    ]
    modes = config.get("pooling_mode", [_POOLINGS.get(name, name) for name in active] or ["mean"])
    modes = modes if isinstance(modes, list) else [modes]
    if len(modes) != 1 or modes[0] not in _POOLINGS.values():
        raise _UnbuildableError(
            f"its pooling is {' + '.join(map(str, modes))}; expected mean or cls"
        )
    return str(modes[0])


def _prompts(config: dict[str, Any]) -> dict[str, str]:
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(
        isinstance(prompt, str | None) for prompt in prompts.values()
    ):
        raise _UnbuildableError("its prompts are not strings by name")
    named = {name: prompt for name, prompt in prompts.items() if prompt is not None}
    # For a model without prompts sentence-transformers writes empty ones.
    return {**named, "": named.get(str(config.get("default_prompt_name")), "")}


def _read(path: Path, name: str, *, kind: type = dict, optional: bool = False) -> Any:
    if optional and not (path / name).is_file():
        return {}
    try:
        content = json.loads((path / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _UnbuildableError(f"{name} cannot be read ({error})") from error
    if not isinstance(content, kind):
        raise _UnbuildableError(
            f"{name} holds a {type(content).__name__}; expected a {kind.__name__}"
        )
    return content
