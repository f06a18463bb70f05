#!/usr/bin/env bash
# Guess: the places that sentencepiece gives with the pieces of a Python string are places in that string.
# Seen: 0.2.3 refuses immutable_proto, whose places (0.2.1) were those of characters, and says to use 'proto': its
#       places are those of bytes. Only 'offset_mapping' has characters.
# Why it matters: chunks that are cut at a multilingual model's tokens shift by one for each accent before them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet sentencepiece==0.2.3 protobuf==7.36.2
venv/bin/python - <<'PYTHON'
from importlib.metadata import version
from io import BytesIO

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

text, model = "Öl ist im Kühler", BytesIO()
SentencePieceTrainer.train(
    sentence_iterator=iter([text] * 50), model_writer=model, vocab_size=30, hard_vocab_limit=False, minloglevel=2
)
processor = SentencePieceProcessor(model_proto=model.getvalue())
try:
    processor.encode(text, out_type="immutable_proto")
    advice = ""
except ValueError as error:
    advice = str(error)
last = processor.encode(text, return_type="proto").pieces[-1]
mapped = processor.encode(text, return_type="offset_mapping")["offsets"][-1]
print("sentencepiece", version("sentencepiece"), advice, last.piece, (last.begin, last.end), mapped, len(text))
assert "return_type='proto'" in advice, "changed"
assert (last.end, mapped[1], len(text), len(text.encode())) == (18, 16, 16, 18), "changed"
PYTHON
