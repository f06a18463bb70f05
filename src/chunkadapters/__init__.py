"""chunkcore's chunkers inside LangChain, LlamaIndex and Haystack."""

from chunkcore.guesses import HOMES, elsewhere


def __getattr__(name: str) -> object:
    """Raises ImportError, which says where it is, for a name that one of the adapters has."""
    if name in HOMES:
        raise ImportError(elsewhere(__name__, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
