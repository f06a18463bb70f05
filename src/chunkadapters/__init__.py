"""chunkcore's chunkers inside LangChain, LlamaIndex and Haystack."""

from chunkcore import guesses


def __getattr__(name: str) -> object:
    """Raises ImportError, which says where it is, for a name that one of the adapters has."""
    if name in guesses.HOMES:
        raise ImportError(guesses.elsewhere(__name__, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
