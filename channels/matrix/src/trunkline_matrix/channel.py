"""The channel ``matrix``."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline.api.channel import AccountReport, AccountSession, ChatChannel, Gateway
from trunkline_matrix.settings import MatrixSettings


class MatrixChannel(ChatChannel):
    """Talks with the owner through an account of a Matrix homeserver.

    Guarantees: of all processes with the same account and bus, one is connected. Where the account reads on is recorded
    when the gateway has each message before it; an answer is shown once, whichever process is killed. An encrypted room
    gets one sentence and nothing else. Approvals and notices go only to a room in which the owner is alone with the
    account.

    Not guaranteed: that a message is read which was written before 500 others in the same room while no process was
    connected; that the homeserver keeps what it was sent from its administrators.
    """

    name = "matrix"
    shows = (
        "Matrix: bold, italics, links, quotes and code blocks of Markdown are drawn; headings are bold, lists are "
        "plain text, and tables are text of one width. Long answers come in several messages."
    )

    def __init__(self, settings: MatrixSettings) -> None:
        super().__init__(label="the Matrix account", lease_seconds=settings.lease_seconds)
        self._settings = settings

    def account(self) -> str:
        """Return the account's name. Raises ConfigError for a missing setting, or a token that cannot be one."""
        account = self._settings.account()
        self._settings.reveal_token()
        return account

    @asynccontextmanager
    async def open_session(
        self, gateway: Gateway, account: str, report: AccountReport
    ) -> AsyncIterator[AccountSession]:
        """Sign in. Raises ConfigError for a token that the homeserver refuses, or that is of another account."""
        # imported by the channel that runs, not by each process that lists channels
        from trunkline_matrix.client import MatrixClient
        from trunkline_matrix.session import MatrixSession

        async with MatrixClient(self._settings) as client:
            yield MatrixSession(self._settings, gateway, client, account, report)
