"""The result of a health check and the context that checks receive. This module has no checks."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from trunkline.config import Config
from trunkline.contracts.plugins.extensions import HealthResult
from trunkline.errors import TrunklineError
from trunkline.home.paths import Home
from trunkline.home.run_file import RunFile
from trunkline.plugins import Plugins
from trunkline_bus import Bus

Status = Literal["ok", "warning", "error", "skipped"]


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``id`` is stable. ``owner`` is the plugin that provides the check, "" for the
    platform.
    """

    id: str
    status: Status
    summary: str
    hint: str = ""
    owner: str = ""


@dataclass
class CheckContext:
    """The input of checks. ``bus`` is a connection, if one could be made. ``run`` is the running instance."""

    config: Config
    home: Home
    online: bool
    resources: AsyncExitStack
    run: RunFile | None = None
    plugins: Plugins | None = None
    plugins_error: TrunklineError | None = None
    bus: Bus | None = None
    bus_error: str = field(default="")


Check = Callable[[CheckContext], Awaitable[HealthResult | None]]
"""A check of one thing. None means that it does not apply here."""


def ok(summary: str) -> HealthResult:
    """Report that the check passed."""
    return HealthResult("ok", summary)


def warning(summary: str, hint: str) -> HealthResult:
    """Report that the checked part works but needs attention."""
    return HealthResult("warning", summary, hint)


def failure(summary: str, hint: str) -> HealthResult:
    """Report that the checked part does not work."""
    return HealthResult("error", summary, hint)
