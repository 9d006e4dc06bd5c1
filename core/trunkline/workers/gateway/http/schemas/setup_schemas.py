"""The schemas of the first steps: model vendors, and model servers on the machine of Trunkline."""

from trunkline.workers.gateway.http.schemas.schema_base import Out


class VendorField(Out, frozen=True, kw_only=True):
    """A setting that a vendor needs, and the text to ask for it with."""

    name: str
    question: str


class VendorItem(Out, frozen=True, kw_only=True):
    """An installed model adapter and its needs. ``keys`` are the usual variables of its key, each with whether it is
    set where the gateway runs. ``address`` is the setting of its server's address, "" if it has none. ``listed`` is
    false for a vendor to name only if its key is set. The settings are those of ``/api/settings/adapters.ADAPTER``.
    """

    adapter: str
    title: str
    keys: dict[str, bool] = {}
    address: str = ""
    fields: tuple[VendorField, ...] = ()
    takes_key: bool = False
    listed: bool = False


class SetupChoices(Out, frozen=True, kw_only=True):
    """The vendors, those whose key is set first, and the addresses of this machine that ``POST /api/setup/servers``
    asks."""

    vendors: tuple[VendorItem, ...]
    addresses: tuple[str, ...]


class ModelServerItem(Out, frozen=True, kw_only=True):
    """A model server that answers, its models, and the adapter and address to set for it."""

    name: str
    adapter: str
    address: str
    models: tuple[str, ...] = ()


class ModelServers(Out, frozen=True, kw_only=True):
    """The model servers that answer on the machine of the gateway."""

    servers: tuple[ModelServerItem, ...]
