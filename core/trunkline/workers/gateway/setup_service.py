"""The setup service: which model vendors there are and what each needs, for the first steps. Callers check that the
owner asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio.to_thread
import msgspec

from trunkline.config import Config
from trunkline.contracts.plugins.extensions import ConfigSection, SetupField
from trunkline.plugins import Plugins
from trunkline.runtime.model_servers import ModelServer, default_servers, probe_servers

COMPATIBLE = "openai"
"""The adapter for servers with OpenAI's protocol."""

ADDRESSES = ("base_url", "url")
"""The names that adapters use for the setting of their server's address."""


@dataclass(frozen=True, slots=True)
class VendorNeeds:
    """An installed model adapter and its needs. ``keys`` are the usual variables of its key, each with whether it is
    set here. ``address`` is the setting of its server's address, "" if it has none, and ``fields`` are further
    settings. ``listed`` is false for a vendor that is named only if its key is set.
    """

    adapter: str
    title: str
    keys: Mapping[str, bool]
    address: str
    fields: Sequence[SetupField]
    takes_key: bool
    listed: bool


class SetupService:
    """Methods raise nothing.

    Guarantees: of keys only the names of their variables are returned. ``vendors`` asks nobody.
    """

    def __init__(self, config: Config, plugins: Plugins) -> None:
        self._environ = config.environ
        self._plugins = plugins

    def vendors(self) -> tuple[VendorNeeds, ...]:
        """Return the installed adapters that have settings, those whose key is set first."""
        sections = (one.item for one in self._plugins.config_sections() if one.item.table == "adapters")
        found = [self._vendor(section) for section in sections]
        return tuple(sorted(found, key=lambda one: (not any(one.keys.values()), not one.listed, one.title)))

    def server_addresses(self) -> tuple[ModelServer, ...]:
        """Return where ``find_servers`` looks, so that it can be announced."""
        return default_servers(self._environ)

    async def find_servers(self) -> list[ModelServer]:
        """Ask the default addresses of model servers on this machine, and return those that answer."""
        return await anyio.to_thread.run_sync(probe_servers, self.server_addresses())

    def adapter_of(self, server: ModelServer) -> tuple[str, str]:
        """Return the adapter for a server on this machine, and the address in that adapter's settings."""
        if any(one.adapter == server.adapter for one in self.vendors()):
            return server.adapter, server.url.removesuffix("/v1")
        return COMPATIBLE, server.url

    def _vendor(self, section: ConfigSection) -> VendorNeeds:
        setup = section.setup
        names = {field.encode_name for field in msgspec.structs.fields(section.type)}
        return VendorNeeds(
            adapter=section.name,
            title=setup.title if setup else section.name,
            keys={name: bool(self._environ.get(name)) for name in setup.keys} if setup else {},
            address=next((name for name in ADDRESSES if name in names), ""),
            fields=tuple(one for one in setup.fields if one.name in names) if setup else (),
            takes_key="api_key" in names,
            listed=setup is not None and setup.listed,
        )
