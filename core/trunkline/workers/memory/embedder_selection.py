"""The selection of the embedder: the embedder of a plugin, or a model adapter with an embedding model."""

from collections.abc import Sequence

from trunkline.contracts.memory.embedder import Embedder, Vector
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.errors import ConfigError
from trunkline.plugins import Plugins


class AdapterEmbedder(Embedder):
    """The embedding model of a provider, called through the provider's model adapter."""

    def __init__(self, adapter: ModelAdapter, model: str) -> None:
        self._adapter = adapter
        self._wanted = model
        self.name = adapter.name
        self.model = f"{adapter.name}/{model}"

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Call the provider. Raises ModelError."""
        return (await self._adapter.embed(texts, model=self._wanted)).vectors

    async def aclose(self) -> None:
        """Close the adapter's connections."""
        await self._adapter.aclose()


def select_embedder(plugins: Plugins, configured: str | None) -> Embedder | None:
    """Return the embedder that ``[memory] embedder`` names; None if the setting is empty.

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
            return AdapterEmbedder(found.item, model)
    names = [owned.item.name for owned in plugins.embedders()]
    names += [f"{owned.item.name}/MODEL" for owned in plugins.models() if owned.item.embeds]
    raise ConfigError(
        f"[memory] embedder is {configured!r}, but no installed embedder has that name.",
        hint=f"Choose one of {', '.join(names)}, or leave it out."
        if names
        else "Remove the setting: search then uses words only.",
    )
