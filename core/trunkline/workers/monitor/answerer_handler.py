"""The handler that returns which model would answer in a block, before a message is sent."""

from collections.abc import Awaitable, Callable

from trunkline.config import Config
from trunkline.contracts.gateway.answerer import Answerer, GetAnswerer
from trunkline.errors import ErrorCode, ModelError
from trunkline.workers.monitor.block_profile import BlockProfile
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline.workers.monitor.model_registry import ModelRegistry
from trunkline_bus import BusError, Refusal, Request


class AnswererHandler:
    """Reports the model that would answer in a block, chosen as for a turn. ``profile`` returns a block's profile."""

    def __init__(
        self,
        config: Config,
        models: ModelRegistry,
        profile: Callable[[str], Awaitable[BlockProfile]],
        explainer: ModelErrorFormatter,
    ) -> None:
        self._config = config
        self._models = models
        self._profile = profile
        self._explainer = explainer

    async def get_answerer(self, request: Request[GetAnswerer]) -> Answerer:
        """Return the model that would answer, or why none can. Raises Refusal while memory or tools do not
        answer."""
        try:
            profile = await self._profile(request.data.block or self._config.settings.gateway.default_block)
            choice = self._models.choose(profile.preferred_model(None))
        except BusError as error:
            code = ErrorCode.ENGINE_UNAVAILABLE
            raise Refusal(
                code, "The model cannot be determined now: memory or tools do not answer."
            ) from error
        except ModelError as error:
            return Answerer(problem=self._explainer.describe(error))
        return Answerer(
            label=choice.label, window=self._config.settings.models.context_windows.get(choice.label, 0)
        )
