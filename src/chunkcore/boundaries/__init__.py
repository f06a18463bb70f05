"""Where a text could be cut: each kind of text has its finder, and `chunkcore.packing` does the rest."""
