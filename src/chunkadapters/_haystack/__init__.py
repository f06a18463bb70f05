"""What `chunkadapters.haystack` and the components in Haystack's own namespace are made of."""
