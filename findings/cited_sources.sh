#!/usr/bin/env bash
# Guess: the sources of a cited answer are the chunks that were retrieved, each that the answer names.
# Seen: llama-index-core 0.14.25's CitationQueryEngine gives new nodes, with other ids, without a place, whose texts
#       begin with 'Source 1:'. haystack-ai 3.4.1's AnswerBuilder, with the usual pattern, reads '[3]' and not '[1, 2]'.
# Why it matters: a citation cannot be traced to its document, and sources that were cited vanish from the answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet llama-index-core==0.14.25 haystack-ai==3.4.1
HAYSTACK_TELEMETRY_ENABLED=False venv/bin/python -W ignore - <<'PYTHON'
from importlib.metadata import version

from haystack import Document
from haystack.components.builders import AnswerBuilder
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import CitationQueryEngine

Settings.llm, Settings.embed_model = MockLLM(), MockEmbedding(embed_dim=4)
nodes = SentenceSplitter().get_nodes_from_documents([LlamaDocument(text="The pump is red. The valve is blue.")])
engine = CitationQueryEngine.from_args(VectorStoreIndex(nodes), similarity_top_k=1)
(source,) = engine.query("Which colour has the pump?").source_nodes
llama = [source.node.text, source.node.node_id == nodes[0].node_id, nodes[0].start_char_idx, source.node.start_char_idx]
documents = [Document(id=name, content=name) for name in "abc"]
builder = AnswerBuilder(reference_pattern=r"\[(\d+)\]")
(answer,) = builder.run(query="?", replies=["It is red [1, 2]. It is not blue [3]."], documents=documents)["answers"]
haystack = [document.id for document in answer.documents]
print({name: version(name) for name in ("llama-index-core", "haystack-ai")}, llama, haystack)
assert llama == ["Source 1:\nThe pump is red. The valve is blue.\n", False, 0, None], "changed"
assert haystack == ["c"], "changed"
PYTHON
