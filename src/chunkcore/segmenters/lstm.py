"""A bidirectional LSTM's forward pass in numpy: what a trained segmenter needs at inference, without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chunkcore.models.base import Vectors

__all__ = ["boundary_probabilities"]


def boundary_probabilities(inputs: Vectors, weights: Mapping[str, Vectors]) -> Vectors:
    """For each row the probability that a segment begins there: float32, shape (n,).

    Layers of LSTMs in both directions, then one linear unit and the logistic function. The weights have PyTorch's
    names and layout: ``lstm.weight_ih_l0`` and so on, gates in the order input, forget, cell, output; ``out.weight``
    and ``out.bias``. O(n) time.
    """
    states = inputs
    for layer in range(sum(name.startswith("lstm.weight_ih_l") for name in weights) // 2):
        forward = _direction(states, weights, f"l{layer}")
        backward = _direction(states[::-1], weights, f"l{layer}_reverse")[::-1]
        states = np.hstack((forward, backward))
    return _logistic(states @ weights["out.weight"][0] + weights["out.bias"][0])


def _direction(inputs: Vectors, weights: Mapping[str, Vectors], name: str) -> Vectors:
    """The hidden states of one layer in one direction: shape (n, hidden)."""
    recurrent = weights[f"lstm.weight_hh_{name}"].T
    bias = weights[f"lstm.bias_ih_{name}"] + weights[f"lstm.bias_hh_{name}"]
    entering = inputs @ weights[f"lstm.weight_ih_{name}"].T + bias
    width = len(recurrent)
    found = np.empty((len(inputs), width), dtype=np.float32)
    hidden, cell = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    for row, gates in enumerate(entering):
        gates = gates + hidden @ recurrent
        opened = _logistic(gates)
        cell = opened[width : 2 * width] * cell + opened[:width] * np.tanh(gates[2 * width : 3 * width])
        hidden = opened[3 * width :] * np.tanh(cell)
        found[row] = hidden
    return found


def _logistic(values: Vectors) -> Vectors:
    # By tanh, which no large value makes overflow.
    result: Vectors = (0.5 * np.tanh(0.5 * values) + 0.5).astype(np.float32)
    return result
