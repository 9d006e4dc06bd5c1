"""Builds the web app into the wheel. An editable installation takes what ``scripts/setup`` builds."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebAppBuild(BuildHookInterface[Any]):
    """Runs ``build_app.py``. Where the packages cannot be fetched the wheel has a page that says so instead."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the app, unless the installation is editable."""
        if version != "editable":
            subprocess.run([sys.executable, str(Path(self.root, "build_app.py"))], check=False)
