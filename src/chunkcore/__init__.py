"""Chunking for retrieval with exact spans, and honest evaluation of it."""
