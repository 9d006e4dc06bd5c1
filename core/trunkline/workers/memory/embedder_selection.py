"""The selection of the embedder: the embedder of a plugin, or a model adapter with an embedding model."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from trunkline.contracts.memory.embedder import Embedder, Vector
from trunkline.contracts.models.abilities import EMBED
from trunkline.contracts.models.adapter import (
    ModelAdapter,
    ModelMiddleware,
    ModelRequest,
    wraps_each_request,
)
from trunkline.errors import ConfigError, ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.plugins import Plugins
from trunkline.runtime.ability_call import AbilityCall, text_messages
from trunkline.runtime.ability_ledger import AbilityLedger, Amount, estimate_texts
from trunkline.telemetry import semconv
from trunkline_bus import new_id

ACTOR = "memory"
"""Who the entries of the cost ledger name."""


class AdapterEmbedder(Embedder):
    """The embedding model of a provider, called through the provider's model adapter. Each request passes the
    ``middleware`` around requests, and the ``ledger`` records it. While the kill switch is engaged no model is called.

    The worker asks the adapter itself and not a monitor, because memory also runs alone.
    """

    def __init__(
        self,
        adapter: ModelAdapter,
        model: str,
        middleware: Sequence[ModelMiddleware],
        ledger: AbilityLedger,
        kill_switch: KillSwitch,
    ) -> None:
        self._adapter = adapter
        self._wanted = model
        self._middleware = middleware
        self._ledger = ledger
        self._kill_switch = kill_switch
        self.name = adapter.name
        self.model = f"{adapter.name}/{model}"

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Call the provider. Raises ModelError; BusError if the request cannot be admitted or recorded."""
        if self._kill_switch.is_engaged:
            raise ModelError(ErrorCode.PANIC, "refused", STOPPED_SENTENCE)
        estimate = estimate_texts(tuple(texts))
        call = AbilityCall(self._adapter.vendor, self._request(texts), estimate, self._ledger)
        async with aclosing(call.replies(self._middleware, self._send)) as replies:
            return [vector async for vectors in replies for vector in vectors]

    async def _send(self, call: AbilityCall, texts: tuple[str, ...]) -> AsyncGenerator[Sequence[Vector]]:
        found = await self._adapter.embed(texts, model=self._wanted)
        call.finish(found.model, Amount(usage=found.usage))
        yield found.vectors

    def _request(self, texts: Sequence[str]) -> ModelRequest:
        return ModelRequest(
            id=new_id("request"),
            messages=text_messages(texts),
            model=self._wanted or self._adapter.embedding_model,
            max_tokens=1,  # vectors have no answer in tokens; without a limit a budget would reserve one
            actor=ACTOR,
            purpose=EMBED,
            operation=semconv.EMBEDDINGS,
            adapter=self._adapter.name,
        )

    async def aclose(self) -> None:
        """Close the adapter's connections."""
        await self._adapter.aclose()


def select_embedder(
    plugins: Plugins, configured: str | None, ledger: AbilityLedger, kill_switch: KillSwitch
) -> Embedder | None:
    """Return the embedder that ``[memory] embedder`` names; None if the setting is empty. ``ledger`` records what an
    adapter is asked, and the plugins' middleware around requests decides about it.

    Raises:
        ConfigError: there is no embedder of that name.
    """
    if not configured:
        return None
    for owned in plugins.embedders():
        if owned.item.name == configured:
            return owned.item
    name, _, model = configured.partition("/")
    for found in plugins.models():
        if found.item.name == name and found.item.embeds:
            middleware = [one.item for one in plugins.model_middleware() if wraps_each_request(one.item)]
            return AdapterEmbedder(found.item, model, middleware, ledger, kill_switch)
    names = [owned.item.name for owned in plugins.embedders()]
    names += [f"{owned.item.name}/MODEL" for owned in plugins.models() if owned.item.embeds]
    raise ConfigError(
        f"[memory] embedder is {configured!r}, but no installed embedder has that name.",
        hint=f"Choose one of {', '.join(names)}, or leave it out."
        if names
        else "Remove the setting: search then uses words only.",
    )
