"""The channels worker's hooks: channels and the text of their events."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    from trunkline.contracts.channels.channel import Channel
    from trunkline.contracts.plugins.extensions import PluginSettings
    from trunkline.contracts.sentences.catalogue import SentenceCatalogue
    from trunkline.contracts.turns.feed_messages import FeedEvent


@hookspec
def trunkline_channels(settings: "PluginSettings") -> "Iterable[Channel]":
    """Add channels, which connect people to the gateway.

    ```python
    import trunkline
    from trunkline.api.channel import Channel
    from trunkline.api.gateway import SendMessage

    class Doorbell(Channel):
        name = "doorbell"

        async def run(self, gateway):
            await gateway.send(SendMessage(content="Somebody is at the door."))

    @trunkline.hookimpl
    def trunkline_channels():
        return [Doorbell()]
    ```
    """


@hookspec(firstresult=True)
def trunkline_render(event: "FeedEvent", channel: str) -> str | None:
    """Decide the text of an event in a channel. Return None to leave it to the channel.

    ```python
    import trunkline
    from trunkline.api.turn import ReasoningDelta

    @trunkline.hookimpl
    def trunkline_render(event, channel):
        return "(thinking)" if isinstance(event, ReasoningDelta) else None
    ```
    """


@hookspec
def trunkline_sentences(settings: "PluginSettings") -> "Iterable[SentenceCatalogue]":
    """Add sentences that people meet in channels: a language, or the plugin's own sentences in several languages. The
    first one with a key counts in each language. In the platform's languages, in every region of them too, its own
    sentences cannot be replaced. Missing ones are in the parent language (``de`` for ``de-AT``), and else in English.

    ```python
    import trunkline
    from trunkline.api.channel import SentenceCatalogue

    @trunkline.hookimpl
    def trunkline_sentences():
        return [SentenceCatalogue("fr", {"button.once": "Permettre une fois"})]
    ```
    """
