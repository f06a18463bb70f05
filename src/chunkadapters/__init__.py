"""chunkcore's chunkers inside LangChain, LlamaIndex and Haystack."""
