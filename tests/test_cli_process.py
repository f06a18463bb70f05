"""The console script, as a process."""

from __future__ import annotations

import subprocess
import sys


def _process(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, timeout=200)


def test_an_interruption_while_modules_are_imported_is_one_line():
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from chunkadapters._command import main\n"
        "sys.exit(main())"
    )
    done = _process("-c", code)
    assert (done.returncode, done.stderr) == (130, b"chunkcore: stopped before it began\n")


def test_the_console_script_is_the_command_line():
    done = _process("-c", "import sys; from chunkadapters._command import main; sys.exit(main())", "list", "strategies")
    assert done.returncode == 0
    assert b"recursive" in done.stdout
