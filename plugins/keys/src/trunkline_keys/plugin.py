"""The plugin: its section, the middleware around requests, and the pools that monitors share."""

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

import trunkline
from trunkline.api.hooks import WorkerKind
from trunkline.api.model import ModelMiddleware
from trunkline_keys.settings import KeysSettings

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline_keys.key_pool import SharedKeyPool

RENEW_SECONDS = 10.0
"""Seconds between two renewals of the requests under way."""


class KeysPlugin:
    """Connects the middleware with the pools on the bus. Every worker has its own instance."""

    def __init__(self) -> None:
        self._pools: dict[str, SharedKeyPool] = {}
        self._bus: Bus | None = None

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        return [trunkline.ConfigSection("plugins", "keys", KeysSettings)]

    @trunkline.hookimpl
    def trunkline_health_checks(self, settings: trunkline.PluginSettings) -> Iterable[trunkline.HealthCheck]:
        """Report whether the variables of all keys are set, if there are pools."""
        section = settings.section(KeysSettings)

        async def check() -> trunkline.HealthResult:
            return check_variables(section, os.environ)

        return [trunkline.HealthCheck("keys.variables", check)] if section.pools else []

    @trunkline.hookimpl
    def trunkline_lifespan(self, worker: WorkerKind) -> Iterable[trunkline.Lifespan]:
        """Share the pools, in every monitor."""
        return [self._lifespan] if worker == "monitor" else []

    @trunkline.hookimpl(tryfirst=True)
    def trunkline_model_middleware(self, settings: trunkline.PluginSettings) -> Iterable[ModelMiddleware]:
        """Yield the middleware, if there are pools. It is outside of other middleware around requests, such as budgets,
        so that a request that waits for a key reserves nothing, and one with another key is counted by itself.
        """
        section = settings.section(KeysSettings)
        if not section.pools:
            return []
        from trunkline_keys.key_pool import SharedKeyPool
        from trunkline_keys.middleware import KeyMiddleware

        for adapter, pool in section.pools.items():
            self._pools[adapter] = SharedKeyPool(adapter, pool, section.max_wait)
            self._pools[adapter].connect(self._bus)
        return [KeyMiddleware(section, self._pools)]

    @asynccontextmanager
    async def _lifespan(self, context: trunkline.LifespanContext) -> AsyncIterator[None]:
        """Share the pools with the other monitors while the context is open."""
        async with anyio.create_task_group() as tasks:
            self._connect(context.bus)
            tasks.start_soon(self._renew)
            try:
                yield
            finally:
                self._connect(None)
                tasks.cancel_scope.cancel()

    def _connect(self, bus: "Bus | None") -> None:
        """Connect the pools, those that the hook for middleware makes before and those that it makes later."""
        self._bus = bus
        for pool in self._pools.values():
            pool.connect(bus)

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(RENEW_SECONDS)
            for pool in tuple(self._pools.values()):
                await pool.renew()


def check_variables(section: KeysSettings, environ: Mapping[str, str]) -> trunkline.HealthResult:
    """Report which variables of the pools are not set."""
    names = [key.env for pool in section.pools.values() for key in pool.keys]
    missing = [name for name in names if not environ.get(name)]
    if missing:
        return trunkline.HealthResult(
            "warning",
            f"Keys of [plugins.keys] are not set: {', '.join(missing)}.",
            "Set these variables before the start, or take them out of the pool. The other keys are used.",
        )
    return trunkline.HealthResult("ok", f"All {len(names)} keys of {len(section.pools)} pools are set.")
