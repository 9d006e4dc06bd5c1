"""Running Python as a user whom the modes of files bind: root is one whom they do not."""

import os
import shutil
import subprocess
import sys

import pytest

DROPPED = "--bounding-set=-dac_override,-dac_read_search"
"""Root without these has the rights of an ordinary owner of its files."""


def run_bound(script: str, *arguments: str) -> str:
    """Run a script and return its output; skips where no unprivileged user can be used."""
    command = [sys.executable, "-c", script, *arguments]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root reads everything, and there is no setpriv here")
        command = ["setpriv", DROPPED, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
