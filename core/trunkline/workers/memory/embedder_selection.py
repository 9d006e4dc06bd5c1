"""The selection of the embedder: the embedder of a plugin, or a model adapter with an embedding model."""

from collections.abc import Sequence

from trunkline.contracts.memory.embedder import Embedder, Vector
from trunkline.contracts.models.abilities import EMBED
from trunkline.contracts.models.adapter import ModelAdapter, ModelRequest
from trunkline.errors import ConfigError, ErrorCode, ModelError
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.plugins import Plugins
from trunkline.runtime.ability_ledger import AbilityLedger, AbilityRecord, Amount, estimate_texts
from trunkline.telemetry import semconv

ACTOR = "memory"
"""Who the entries of the cost ledger name."""


class AdapterEmbedder(Embedder):
    """The embedding model of a provider, called through the provider's model adapter. The ``ledger`` records each
    request. While the kill switch is engaged no model is called.

    The worker asks the adapter itself and not a monitor, because memory also runs alone.
    """

    def __init__(
        self, adapter: ModelAdapter, model: str, ledger: AbilityLedger, kill_switch: KillSwitch
    ) -> None:
        self._adapter = adapter
        self._wanted = model
        self._ledger = ledger
        self._kill_switch = kill_switch
        self.name = adapter.name
        self.model = f"{adapter.name}/{model}"

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Call the provider. Raises ModelError; BusError if the request cannot be recorded."""
        if self._kill_switch.is_engaged:
            raise ModelError(ErrorCode.PANIC, "refused", STOPPED_SENTENCE)
        async with self._record(texts) as record:
            found = await self._adapter.embed(texts, model=self._wanted)
            record.finish(found.model, Amount(usage=found.usage))
        return found.vectors

    def _record(self, texts: Sequence[str]) -> AbilityRecord:
        adapter = self._adapter
        model = self._wanted or adapter.embedding_model
        request = ModelRequest(messages=(), adapter=adapter.name, model=model, purpose=EMBED, actor=ACTOR)
        return self._ledger.request(request, adapter.vendor, semconv.EMBEDDINGS, estimate_texts(tuple(texts)))

    async def aclose(self) -> None:
        """Close the adapter's connections."""
        await self._adapter.aclose()


def select_embedder(
    plugins: Plugins, configured: str | None, ledger: AbilityLedger, kill_switch: KillSwitch
) -> Embedder | None:
    """Return the embedder that ``[memory] embedder`` names; None if the setting is empty. ``ledger`` records what an
    adapter is asked.

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
            return AdapterEmbedder(found.item, model, ledger, kill_switch)
    names = [owned.item.name for owned in plugins.embedders()]
    names += [f"{owned.item.name}/MODEL" for owned in plugins.models() if owned.item.embeds]
    raise ConfigError(
        f"[memory] embedder is {configured!r}, but no installed embedder has that name.",
        hint=f"Choose one of {', '.join(names)}, or leave it out."
        if names
        else "Remove the setting: search then uses words only.",
    )
