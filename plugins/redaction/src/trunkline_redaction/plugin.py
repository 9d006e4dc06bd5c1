"""The plugin: its section, the middleware of models, and the key that workers share."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import WorkerKind
from trunkline.api.model import ModelMiddleware
from trunkline_redaction.settings import RedactionSettings

if TYPE_CHECKING:
    from trunkline_redaction.key_source import KeySource


class RedactionPlugin:
    """Connects the middleware with the key on the bus. Every worker has its own instance."""

    @cached_property
    def _keys(self) -> "KeySource":
        from trunkline_redaction.key_source import KeySource

        return KeySource()

    @trunkline.hookimpl
    def trunkline_config(self) -> Iterable[trunkline.ConfigSection]:
        return [trunkline.ConfigSection("plugins", "redaction", RedactionSettings)]

    @trunkline.hookimpl
    def trunkline_lifespan(
        self, worker: WorkerKind, settings: trunkline.PluginSettings
    ) -> Iterable[trunkline.Lifespan]:
        """Share the key, in every worker that asks models, if redaction is on."""
        on = worker in ("monitor", "memory") and settings.section(RedactionSettings).enabled
        return [self._keys.lifespan] if on else []

    @trunkline.hookimpl
    def trunkline_model_middleware(self, settings: trunkline.PluginSettings) -> Iterable[ModelMiddleware]:
        """Yield the middleware, if redaction is on."""
        section = settings.section(RedactionSettings)
        if not section.enabled:
            return []
        from trunkline_redaction.middleware import RedactionMiddleware
        from trunkline_redaction.process_redactor import ProcessRedactor
        from trunkline_redaction.request_redaction import RequestRedaction

        redactor = ProcessRedactor(section, self._keys)
        return [RedactionMiddleware(redactor), RequestRedaction(section, self._keys, redactor)]
