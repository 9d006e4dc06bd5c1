"""The handlers that tell which model would answer before a message is sent, which models there are, and whether a model
can be had."""

from collections.abc import Awaitable, Callable

import anyio

from trunkline.config import Config
from trunkline.contracts.blocks.model_choice import CHAT
from trunkline.contracts.gateway.answerer import Answerer, CheckModel, GetAnswerer
from trunkline.contracts.models.listing import (
    AdapterListing,
    ListModels,
    ModelListings,
    is_listed,
    list_models,
    nearest_models,
)
from trunkline.contracts.models.prices import PriceTable
from trunkline.errors import ErrorCode, ModelError
from trunkline.runtime.context_window import ContextWindows
from trunkline.workers.monitor.block_profile import BlockProfile
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline_bus import BusError, Refusal, Request


class AnswererHandler:
    """Reports the model that would answer in a block, chosen as for a turn. ``profile`` returns a block's profile."""

    def __init__(
        self,
        config: Config,
        models: ModelRegistry,
        profile: Callable[[str], Awaitable[BlockProfile]],
        explainer: ModelErrorFormatter,
        windows: ContextWindows,
    ) -> None:
        self._config = config
        self._models = models
        self._profile = profile
        self._explainer = explainer
        self._windows = windows

    async def get_answerer(self, request: Request[GetAnswerer]) -> Answerer:
        """Return the model that would answer, or why none can. Raises Refusal while memory or tools do not
        answer."""
        asked = request.data
        try:
            profile = await self._profile(asked.block or self._config.settings.gateway.default_block)
            choice = self._models.choose(profile.preferred_model(None, CHAT, asked.chosen))
        except BusError as error:
            code = ErrorCode.ENGINE_UNAVAILABLE
            raise Refusal(
                code, "The model cannot be determined now: memory or tools do not answer."
            ) from error
        except ModelError as error:
            return Answerer(problem=self._explainer.describe(error))
        return self._answerer(choice, chosen=bool(asked.chosen))

    def _answerer(self, choice: SelectedModel, *, chosen: bool) -> Answerer:
        window = self._windows.find(choice.label) or 0
        return Answerer(label=choice.label, window=window, chosen=chosen)


class ModelListHandler:
    """Lists the models of this monitor's adapters, and checks names against the lists. Lists are kept in this process
    for a day."""

    def __init__(self, models: ModelRegistry, prices: PriceTable) -> None:
        self._models = models
        self._prices = prices
        self._kept: dict[str, AdapterListing] = {}
        self._listing = anyio.Lock()

    async def list_models(self, request: Request[ListModels]) -> ModelListings:
        """Return the lists of all configured adapters. Raises nothing."""
        async with self._listing, anyio.create_task_group() as tasks:  # one caller at a time asks the vendors
            for name in self._models.configured:
                tasks.start_soon(self._list, name, request.data.refresh)
        return ModelListings(adapters=tuple(self._kept[name] for name in sorted(self._models.configured)))

    async def check_model(self, request: Request[CheckModel]) -> Answerer:
        """Return the model that a name selects, with the problem if it cannot be had.

        A vendor that lists no models, or does not answer now, decides when it is asked for an answer.
        """
        wanted = request.data.model.strip()
        try:
            choice = self._models.choose(wanted)
        except ModelError as error:
            return Answerer(problem=error.detail)
        if not wanted or not choice.model:
            return Answerer(label=choice.label)
        await self._list(choice.adapter.name, refresh=False)
        names = self._kept[choice.adapter.name].names
        if not names or is_listed(choice.label, names):
            return Answerer(label=choice.label)
        return Answerer(label=choice.label, problem=self._unlisted(choice))

    async def _list(self, adapter: str, refresh: bool) -> None:
        kept = self._kept.get(adapter)
        if refresh or kept is None or not kept.is_fresh:
            self._kept[adapter] = await list_models(self._models.adapter(adapter), self._prices)

    def _unlisted(self, choice: SelectedModel) -> str:
        every = [name for listing in self._kept.values() for name in listing.names]
        near = nearest_models(choice.label, self._kept[choice.adapter.name].names)
        elsewhere = [name for name in every if name.partition("/")[2] == choice.model]
        meant = ", ".join(dict.fromkeys((*elsewhere, *near)))
        hint = f" Did you mean {meant}?" if meant else " `trunkline models` lists those that can be asked."
        return f"{choice.adapter.name} lists no model {choice.model}.{hint}"
