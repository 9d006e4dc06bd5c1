"""What the programs in this folder share. Each runs in an environment with its client, not with Trunkline."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

URL = os.environ["CLIENT_URL"]
"""The base URL of the API, with ``/v1``."""

KEY = os.environ["CLIENT_KEY"]
BLOCK = "main"

LOOK = 'say:I look. ;; call:weather {"town": "Ulm"} ;; quote'
"""A message to the scripted model, which says something, calls the client's tool, and repeats the tool's result."""

REPORT = '{"sea": "calm", "waves": 3}'


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFklEQVR42mP4z8CAFWEXZRiaEv///wcA+/8j3fMsMTEAAAAASUVORK5CYII="
"""A PNG image, in base64."""


def run(*cases: Callable[[], Any]) -> None:
    """Run the cases, and print what each returns, or its traceback, as a JSON object."""
    json.dump({case.__name__: _result(case) for case in cases}, sys.stdout)


def _result(case: Callable[[], Any]) -> Any:
    try:
        return case()
    except Exception:
        return traceback.format_exc()
