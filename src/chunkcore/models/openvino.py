"""`OpenVinoEmbedder`: a BERT sentence model on the CPU, without PyTorch.

The graph is written here, because the alternatives (openvino's converter, optimum, ONNX export) all need PyTorch,
which is several gigabytes on Linux. It loads in under a second and gives the same vectors (cosine above 0.99999,
held by a test).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from chunkcore.errors import OptionError
from chunkcore.lazy import needed
from chunkcore.models.base import TokenizerEmbedder, Vectors, in_batches, padded, sorted_batches
from chunkcore.models.model_files import BertFolder, folder_fingerprint, read_bert_folder
from chunkcore.spans import Numbers

Weights = Callable[[str], NDArray[np.float32]]
Precision = Literal["f32", "bf16", "int8"]


def import_openvino() -> Any:
    """Openvino without its telemetry, which on import sends an event to a server and writes to the home folder. Raises
    `MissingExtraError`: openvino is not installed.

    Where openvino_telemetry cannot be imported, openvino uses a stub that does nothing.
    """
    hidden = "openvino_telemetry"
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
        words = self.op.gather(self.tensor("embeddings.word_embeddings.weight"), ids, self.integer(0))
        # All tokens are of segment 0: its row is added to every position here, once.
        segment = self.weights("embeddings.token_type_embeddings.weight")[0]
        positions = self.op.constant(self.weights("embeddings.position_embeddings.weight") + segment)
        x = self.op.add(words, self.op.gather(positions, places, self.integer(0)))
        return self.normalized(x, "embeddings.LayerNorm")

    def layer(self, x: Any, bias: Any, name: str) -> Any:
        attended = self.linear(self.attention(x, bias, f"{name}attention.self."), f"{name}attention.output.dense")
        x = self.normalized(self.op.add(attended, x), f"{name}attention.output.LayerNorm")
        wide = self.op.gelu(self.linear(x, f"{name}intermediate.dense"), self.folder.activation)
        return self.normalized(self.op.add(self.linear(wide, f"{name}output.dense"), x), f"{name}output.LayerNorm")

    def attention(self, x: Any, bias: Any, name: str) -> Any:
        """softmax(q kᵀ / √d + bias) v, by heads; the operation divides by √d."""
        query, key, value = (self.by_head(self.linear(x, name + part)) for part in ("query", "key", "value"))
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
        weight = self.rounded(f"{name}.weight") if self.precision == "int8" else self.tensor(f"{name}.weight")
        return self.op.add(self.op.matmul(x, weight, False, True), self.tensor(f"{name}.bias"))

    def rounded(self, name: str) -> Any:
        """A matrix as whole numbers of 8 bits and a factor a row, which the CPU multiplies as they are."""
        matrix = self.weights(name)
        factors = np.maximum(np.abs(matrix).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny)
        whole = self.op.constant(np.rint(matrix / factors).astype(np.int8))
        return self.op.multiply(self.op.convert(whole, "f32"), self.op.constant(factors.astype(np.float32)))

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


_BATCH_TEXTS = 32
_BATCH_TOKENS = 4096
_TOKENIZED_AT_ONCE = 4096
_QUANTIZED_TOGETHER = "64"  # numbers of a matrix's input that share a factor


class OpenVinoEmbedder(TokenizerEmbedder):
    """The model of a local sentence-transformers folder with a BERT encoder.

    Args:
        folder: holds config.json, modules.json, tokenizer.json, model.safetensors and the pooling's config.
        name: what `get_embedder` builds it from; the default is "openvino:" and the folder.
        precision: of the arithmetic: "f32"; "bf16", 16 bits; "int8", weights and inputs of matrices in 8 bits and the
            rest in 16. Vectors differ, and so does the fingerprint.

    Raises:
        OptionError: the folder holds another kind of model, or not all of one; or the CPU has no arithmetic of 16 bits.
        MissingExtraError: openvino, tokenizers or safetensors is not installed.
    """

    def __init__(self, folder: Path | str, *, name: str = "", precision: Precision = "f32") -> None:
        self.precision = precision
        self._kind = "openvino" if precision == "f32" else f"openvino-{precision}"
        self.name = name or f"{self._kind}:{folder}"
        self._folder: BertFolder = read_bert_folder(Path(folder))
        self.max_tokens: int | None = self._folder.max_tokens
        self.symmetric = self._folder.document_prompt == self._folder.query_prompt
        self.dimensions = self._folder.hidden
        self._prompt, self._lowercase = self._folder.document_prompt, self._folder.lowercase
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
        """One row a token for each sequence of at most `max_tokens` ids: float32, shape (tokens, dimensions). Raises
        `OptionError`: the model pools by its first token.
        """
        if self._folder.pooling != "mean":
            raise OptionError(
                f"{self.name}: its vector of a text is its first token's, not a mean of tokens; choose a model that "
                "pools by mean"
            )
        return in_batches(windows, _BATCH_TEXTS, _BATCH_TOKENS, lambda some: self._infer(some, self._token_request))

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
            raise OptionError(f"the tokenizer.json in {str(self._folder.path)!r} cannot be read: {error}") from error
        tokenizer.no_padding()
        if truncate:
            tokenizer.enable_truncation(self._folder.max_tokens)
        else:
            tokenizer.no_truncation()
        return tokenizer

    def _embed(self, texts: Sequence[str], prompt: str) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        ready = self._ready(texts, prompt)
        tokens: list[NDArray[np.int32]] = []  # the tokenizer's own objects take ten times the memory
        for start in range(0, len(ready), _TOKENIZED_AT_ONCE):
            encodings = self._tokenizer.encode_batch_fast(ready[start : start + _TOKENIZED_AT_ONCE])
            tokens.extend(np.array(encoding.ids, dtype=np.int32) for encoding in encodings)
        for batch in sorted_batches([len(row) for row in tokens], size=_BATCH_TEXTS, total=_BATCH_TOKENS):
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
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32" if precision == "f32" else "bf16"}
    if precision == "int8":
        options["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = _QUANTIZED_TOGETHER
    if precision != "f32" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise OptionError(f"this CPU has no arithmetic of 16 bits, which {precision} needs: use openvino:{folder.path}")
    weights = _weights(folder)
    try:
        graph = _Graph(folder, weights, precision).model(pooled=pooled)
        return core.compile_model(graph, "CPU", options).create_infer_request()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise OptionError(
            f"the openvino backend cannot build the model in {str(folder.path)!r}: its weights do not fit its "
            f"config.json ({reason}). Use torch:{folder.path} (sentence-transformers)"
        ) from error


def _weights(folder: BertFolder) -> Weights:
    safetensors = needed("safetensors.numpy", "models", "read a model's weights")
    try:
        tensors = safetensors.load_file(folder.path / "model.safetensors")
    except Exception as error:
        raise OptionError(f"the model.safetensors in {str(folder.path)!r} cannot be read: {error}") from error

    def tensor(name: str) -> NDArray[np.float32]:
        matrix = tensors.get(name, tensors.get(f"bert.{name}"))
        if matrix is None:
            raise OptionError(
                f"the openvino backend cannot build the model in {str(folder.path)!r}: its weights have no {name}. "
                f"Use torch:{folder.path} (sentence-transformers)"
            )
        return np.ascontiguousarray(matrix, dtype=np.float32)

    return tensor
