"""How much memory large files take: a process each, with the most that it held.

    python -m integration_tests.benchmarks.large_files --gigabytes 1

Writes files of this size into a temporary folder, and takes them away.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks import load_documents
from chunkcore.files import csv_rows, json_lines

TEXT = "words and more words, " * 4545  # some 100 KB
MB = 1024**2


def written(path: Path, size: int, row: str, head: str = "", tail: str = "") -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for number in range(size // len(row)):
            file.write(row.replace("NUMBER", str(number)))
        file.write(tail)
    return path


def read(what: str, file: Path) -> str:
    if what == "lines":
        return f"{sum(1 for _ in json_lines(file)):,} lines, looked at one by one"
    if what == "documents":
        return f"{sum(len(each.text) for each in load_documents(file)) // MB:,} MB of documents' text, kept"
    try:
        return f"{sum(1 for _ in csv_rows(file, ('id',))):,} rows"
    except DataError as error:
        return str(error).replace(str(file.parent) + "/", "")


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--read", nargs=2, default=None)
    arguments = parser.parse_args()
    if arguments.read:
        before = memory()
        told = read(arguments.read[0], Path(arguments.read[1]))
        print(f"{arguments.read[0]}: {told}; {memory()} MB at most, {before} MB of them before")
        return
    with tempfile.TemporaryDirectory() as folder:
        size = int(arguments.gigabytes * 1024 * MB)
        lines = written(Path(folder) / "documents.jsonl", size, json.dumps({"id": "dNUMBER", "text": TEXT}) + "\n")
        table = written(Path(folder) / "table.csv", size, f'NUMBER,"{TEXT}"\n', "id,text\n", "1,2,3\n")
        for what, file in (("lines", lines), ("documents", lines), ("table", table)):
            command = [sys.executable, "-m", "integration_tests.benchmarks.large_files", "--read", what, str(file)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
