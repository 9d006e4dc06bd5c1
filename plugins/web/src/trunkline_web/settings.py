"""The section ``[plugins.web]``."""

from typing import Annotated, Literal

import msgspec

from trunkline import ConfigError, Secret
from trunkline.api.egress import HostGuard, UrlRefused, WebAddress, parse_url

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
BRAVE_KEY = Secret(env="BRAVE_API_KEY")

OPENING = "allow or ports in [plugins.web] of trunkline.toml"

IN_THE_FILE = msgspec.Meta(extra_json_schema={"readOnly": True})
"""For the form of the settings: it is changed in ``trunkline.toml`` alone, because it opens private networks."""

KEYLESS = msgspec.Meta(extra_json_schema={"keyless": True})
"""For the form of the settings: no key is sent to this address, so it may be one of another machine."""

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.web]``. ``search`` is the search engine: ``brave`` with the key in the variable that ``brave_key``
    names (by default ``BRAVE_API_KEY``), or ``searxng``, your own instance at ``searxng_url``. ``auto`` uses SearXNG
    if its address is set, else Brave. ``brave_url`` is the address of Brave, or of a proxy for it.

    ``allow`` names hosts outside of the internet that agents may reach, such as those of a private network:
    ``10.0.0.5``, ``10.1.0.0/16``, ``wiki.intern``, with a port after a colon if it is not 80 or 443. ``ports`` are
    further ports that agents may reach on the internet. ``timeout`` is the time limit of a page with its redirects,
    in seconds. ``user_agent`` is the name that servers are told; the part before the ``/`` is looked up in
    ``robots.txt``.
    """

    search: Literal["auto", "brave", "searxng"] = "auto"
    brave_key: Secret | None = None
    brave_url: str = BRAVE_URL
    searxng_url: Annotated[str | None, KEYLESS] = None
    allow: Annotated[tuple[str, ...], IN_THE_FILE] = ()
    ports: Annotated[tuple[Port, ...], IN_THE_FILE] = ()
    timeout: Annotated[float, msgspec.Meta(gt=0, le=120)] = 15.0
    user_agent: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][\x20-\x7e]{0,199}$")] = "Trunkline/0.1"

    def __post_init__(self) -> None:
        _web_address("brave_url", self.brave_url)
        if self.searxng_url is not None:
            _web_address("searxng_url", self.searxng_url)
        try:
            self.url_guard()
        except ValueError as error:
            raise ConfigError(
                f"plugins.web.allow: {error}.",
                hint='Write addresses, networks or names: allow = ["10.0.0.5", "wiki.intern:8080"].',
            ) from error

    @property
    def search_engine(self) -> Literal["brave", "searxng"]:
        """The search engine in use."""
        if self.search == "auto":
            return "brave" if self.searxng_url is None else "searxng"
        return self.search

    @property
    def brave_key_reference(self) -> Secret:
        """The reference to Brave's key."""
        return self.brave_key or BRAVE_KEY

    def url_guard(self) -> HostGuard:
        """Return the guard for the addresses that agents and pages name. Raises ValueError."""
        return HostGuard(self.allow, self.ports, setting=OPENING)


def _web_address(key: str, text: str) -> WebAddress:
    try:
        return parse_url(text)
    except UrlRefused as error:
        raise ConfigError(
            f"plugins.web.{key}: {error}",
            hint='Write the complete address, such as "https://search.example.org".',
        ) from error
