"""How long starting takes: `import chunkcore`, first uses of it, and the command's help, beside the interpreter alone.

chrt -f 10 python -m integration_tests.benchmarks.import_speed
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

ROUNDS = 11
STARTS = {
    "python -c pass": ["-c", "pass"],
    **{
        program: ["-c", program]
        for program in (
            "import numpy",
            "import chunkcore",
            "from chunkcore import get_chunker",
            "from chunkcore import *",
            "import langchain_core, langchain_text_splitters",
            "import chunkadapters.langchain",
            "from chunkadapters.langchain import ChunkcoreTextSplitter",
            "import llama_index.core",
            "import chunkadapters.llamaindex",
            "from chunkadapters.llamaindex import ChunkcoreNodeParser",
            "import haystack",
            "import chunkadapters.haystack",
            "from chunkadapters.haystack import ChunkcoreDocumentSplitter",
            "import typer.rich_utils",
        )
    },
    "chunkcore --help": ["-m", "chunkcore", "--help"],
}
WANTED = {"import chunkcore": "0.12 beyond the interpreter", "chunkcore --help": "0.25"}


def seconds(arguments: list[str]) -> float:
    started = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - started


def main() -> None:
    for arguments in STARTS.values():  # compiled and in the file cache from here on
        seconds(arguments)
    rounds = [{name: seconds(arguments) for name, arguments in STARTS.items()} for _ in range(ROUNDS)]
    bare = median(each["python -c pass"] for each in rounds)
    print(f"| medians of {ROUNDS} interleaved rounds | seconds | beyond the interpreter | wanted |\n|---|--:|--:|--:|")
    for name in STARTS:
        taken = median(each[name] for each in rounds)
        print(f"| `{name}` | {taken:.3f} | {taken - bare:.3f} | {WANTED.get(name, '')} |")


if __name__ == "__main__":
    main()
