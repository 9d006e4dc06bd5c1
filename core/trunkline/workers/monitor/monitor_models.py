"""All of a monitor that calls models outside and inside of turns: its registry, its cost ledger, and its endpoints."""

from functools import partial

import anyio

from trunkline.contracts.models.price_list import installed_prices
from trunkline.contracts.models.subjects import (
    ANSWERER,
    CHECK_MODEL,
    COMPLETE,
    EMBED_TEXTS,
    LIST_MODELS,
    SPEAK_TEXT,
    TRANSCRIBE_AUDIO,
)
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.ability_ledger import AbilityLedger
from trunkline.runtime.adapter_selection import adapter_model, default_adapter
from trunkline.runtime.cost_ledger import CostLedger
from trunkline.runtime.worker import WorkerContext
from trunkline.workers.monitor.ability_handler import AbilityHandler
from trunkline.workers.monitor.answerer_handler import AnswererHandler, ModelListHandler
from trunkline.workers.monitor.attachment_loader import AttachmentLoader
from trunkline.workers.monitor.completion_handler import CompletionHandler
from trunkline.workers.monitor.content_capture import ContentCapture
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.cost_recovery import CostRecovery
from trunkline.workers.monitor.model_call import ModelCallConfig
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline.workers.monitor.model_registry import ModelRegistry
from trunkline_bus import Service


class MonitorModels:
    """The models of one monitor.

    ``registry`` and ``call_config`` are for turns and for the agent loop. Completions and abilities, which tools and
    the gateway request over the bus, are served here.
    """

    def __init__(self, context: WorkerContext, kill_switch: KillSwitch, builder: ContextBuilder) -> None:
        settings = context.config.settings
        prices = installed_prices(settings.models.prices)
        self._context = context
        self._ledger = CostLedger(context.bus, context.id, prices)
        self.registry = model_registry(context, kill_switch, self._ledger)
        self.call_config = ModelCallConfig(
            max_answer=settings.monitor.max_answer,
            prices=prices,
            explainer=ModelErrorFormatter(context.config.redactor()),
        )
        block, config = settings.gateway.default_block, self.call_config
        self._completions = CompletionHandler(self.registry, builder.profile, block, config)
        self._abilities = AbilityHandler(
            context.bus, self.registry, builder.profile, block, config, kill_switch,
            AbilityLedger(self._ledger, prices, context.id),
        )  # fmt: skip
        self._answerers = AnswererHandler(
            context.config, self.registry, builder.profile, config.explainer, builder.windows
        )
        self._lists = ModelListHandler(self.registry, prices)

    async def add_endpoints(self, service: Service) -> None:
        """Serve the endpoints about models. Each of the three kinds of call runs as often as turns may, at the same
        time."""
        await service.add(ANSWERER, self._answerers.get_answerer)
        await service.add(CHECK_MODEL, self._lists.check_model)
        await service.add(LIST_MODELS, self._lists.list_models)
        add = partial(service.add, limit=self._context.config.settings.monitor.concurrency)
        await add(COMPLETE, self._completions.complete)
        await add(EMBED_TEXTS, self._abilities.embed)
        await add(TRANSCRIBE_AUDIO, self._abilities.transcribe)
        await add(SPEAK_TEXT, self._abilities.speak)

    async def run(self) -> None:
        """Store the entries of the ledger, and those that crashed monitors left open."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ledger.run)
            tasks.start_soon(CostRecovery(self._context.bus, self._context.id).run)

    async def drain(self) -> None:
        """Wait until no completion and no ability is called any more."""
        await self._completions.drain()
        await self._abilities.drain()

    def stop(self) -> None:
        """Cancel every running completion and ability."""
        self._completions.stop()
        self._abilities.stop()


def model_registry(context: WorkerContext, kill_switch: KillSwitch, ledger: CostLedger) -> ModelRegistry:
    """Return the registry of a worker's adapters and model middleware, as its configuration chooses them. Raises
    ConfigError, as ``default_adapter`` does."""
    settings, plugins = context.config.settings, context.plugins
    adapters = [owned.item for owned in plugins.models()]
    return ModelRegistry(
        adapters,
        default_adapter(context.config, plugins),
        {adapter.name: adapter_model(context.config, adapter.name) for adapter in adapters},
        [owned.item for owned in plugins.model_middleware()],
        kill_switch,
        ContentCapture() if settings.telemetry.capture_content else None,
        prices=installed_prices(settings.models.prices),
        ledger=ledger,
        idle_timeout=settings.monitor.model_idle_timeout,
        attachments=AttachmentLoader(context.bus),
    )
