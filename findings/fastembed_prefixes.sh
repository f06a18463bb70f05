#!/usr/bin/env bash
# Guess: where a model's description says that prefixes for queries and documents are necessary, fastembed's
#        query_embed and passage_embed, which LangChain and LlamaIndex call, put them before the text.
# Seen: fastembed 0.9.1's return embed's vectors for multilingual-e5, nomic-embed-text and snowflake-arctic; so
#       langchain-community 0.4.2 and llama-index-embeddings-fastembed 0.7.0 embed without a prefix, with
#       doc_embed_type="passage", too.
# Why it matters: questions are embedded as no question of the training was, and nothing tells; the app has to add
#                 "query: " and "passage: ".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet fastembed==0.9.1 onnx==1.23.2 tokenizers==0.23.3 langchain-community==0.4.2
venv/bin/pip install --quiet llama-index-embeddings-fastembed==0.7.0
venv/bin/python -W ignore - <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from fastembed import TextEmbedding
from langchain_community.embeddings import FastEmbedEmbeddings
from llama_index.embeddings.fastembed import FastEmbedEmbedding
from onnx import TensorProto, helper, numpy_helper, save
from tokenizers import Tokenizer, models, pre_tokenizers

# A stand-in for the weights, which fastembed reads from a folder: a table of vectors, one for each token.
words = ["<pad>", "<unk>", "query", "passage", "search_query", "search_document", ":", "pump"]
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save("tokenizer.json")
Path("config.json").write_text(json.dumps({"pad_token_id": 0}))
Path("tokenizer_config.json").write_text(json.dumps({"model_max_length": 512, "pad_token": "<pad>"}))
Path("special_tokens_map.json").write_text(json.dumps({"pad_token": "<pad>", "unk_token": "<unk>"}))
table = numpy_helper.from_array(np.random.default_rng(0).normal(size=(len(words), 8)).astype("f4"), "table")
names = ("input_ids", "attention_mask")
inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "n"]) for name in names]
output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["b", "n", 8])
gather = helper.make_node("Gather", ["table", "input_ids"], ["vectors"])
graph = helper.make_graph([gather], "stand-in", inputs, [output], [table])
network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)

descriptions = {model["model"]: model for model in TextEmbedding.list_supported_models()}
seen = {}
for name, prefix in {
    "intfloat/multilingual-e5-large": "query: ",
    "nomic-ai/nomic-embed-text-v1.5": "search_query: ",
    "snowflake/snowflake-arctic-embed-s": "query: ",
}.items():
    file = Path(descriptions[name]["model_file"])
    file.parent.mkdir(exist_ok=True)
    save(network, str(file))
    model = TextEmbedding(name, specific_model_path=".")
    plain, query, passage = [
        next(iter(embed(["pump"]))) for embed in (model.embed, model.query_embed, model.passage_embed)
    ]
    prefixed = next(iter(model.embed([prefix + "pump"])))
    llama = FastEmbedEmbedding(model_name=name, doc_embed_type="passage", specific_model_path=".")
    chain = FastEmbedEmbeddings.model_construct(model=model, doc_embed_type="passage", batch_size=8, parallel=None)
    vectors = {
        "query_embed": query,
        "passage_embed": passage,
        "LangChain's query": chain.embed_query("pump"),
        "LangChain's document": chain.embed_documents(["pump"])[0],
        "LlamaIndex' query": llama.get_query_embedding("pump"),
        "LlamaIndex' document": llama.get_text_embedding("pump"),
        "prefix by hand": prefixed,
    }
    assert "Prefixes for queries/documents: necessary" in descriptions[name]["description"], "changed"
    seen[name] = [way for way, vector in vectors.items() if np.allclose(vector, plain)]
libraries = ("fastembed", "langchain-community", "llama-index-embeddings-fastembed")
print({name: version(name) for name in libraries}, "the same vector as embed:", seen)
assert all(ways == list(vectors)[:-1] for ways in seen.values()), "changed"
PYTHON
