"""Where a text can be cut: one boundary finder per format. `chunkcore.packing` packs the blocks into chunks."""
