"""Builds a BERT sentence encoder as an OpenVINO graph, straight from its safetensors file.

Devlin et al., 2019 (BERT); Reimers and Gurevych, 2019 (pooling). The graph takes token ids (texts, tokens;
int32) and their mask (the same shape; float32; 1 for a token, 0 for padding) and gives one float32 row a text,
or one a token.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkcore.models.bert_folder import BertFolder

__all__ = ["build_graph", "import_openvino"]

Weights = Callable[[str], NDArray[np.float32]]


def build_graph(folder: BertFolder, weights: Weights, *, pooled: bool = True) -> Any:
    """The encoder as an `openvino.Model`.

    Args:
        folder: what is to be built.
        weights: a tensor of the model by its name.
        pooled: one row a text; else one a token, shape (texts, tokens, hidden).
    """
    return _Graph(folder, weights).model(pooled=pooled)


def import_openvino() -> Any:
    """openvino, without what it would do when it is imported: send an event to a server and write to the home folder.

    It does so by the package openvino_telemetry. Where that cannot be imported, it has a stand-in that does nothing.

    Raises:
        ImportError: openvino is not installed.
    """
    hidden = "openvino_telemetry"
    before = {name: module for name, module in sys.modules.items() if name == hidden}
    sys.modules[hidden] = None  # type: ignore[assignment]  # which makes an import of it fail
    try:
        return import_module("openvino")
    finally:
        del sys.modules[hidden]
        sys.modules.update(before)


class _Graph:
    """One building of the graph: `x` is the hidden state, (texts, tokens, hidden), until it is pooled."""

    def __init__(self, folder: BertFolder, weights: Weights) -> None:
        # By name, because openvino has no types for a checker to find.
        self.openvino = import_openvino()
        self.op: Any = import_module("openvino.opset13")
        self.folder = folder
        self.weights = weights

    def model(self, *, pooled: bool) -> Any:
        ids = self.op.parameter([-1, -1], np.int32, name="ids")
        mask = self.op.parameter([-1, -1], np.float32, name="mask")
        x = self.embeddings(ids)
        # A large negative number before the softmax is a zero after it.
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
        # All tokens are of segment 0, so its row is added to every position once and for all.
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
        """softmax(q kᵀ / √d + bias) v, by heads; the operation divides by √d itself."""
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
        product = self.op.matmul(x, self.tensor(f"{name}.weight"), False, True)
        return self.op.add(product, self.tensor(f"{name}.bias"))

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
