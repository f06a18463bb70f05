"""A model's folder may hold Python files; loading the model runs none of them."""

from __future__ import annotations

import json

import pytest
from chunkcore.errors import OptionError
from chunkcore.models.loading import SentenceTransformersEmbedder


def test_code_in_a_models_folder_is_not_run(tmp_path):
    pytest.importorskip("sentence_transformers")
    folder, mark = tmp_path / "model", tmp_path / "it-ran"
    folder.mkdir()
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]))
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w').close()\nclass Own: pass\n")
    with pytest.raises(OptionError, match="executes third-party code"):
        SentenceTransformersEmbedder(folder)
    assert not mark.exists()
