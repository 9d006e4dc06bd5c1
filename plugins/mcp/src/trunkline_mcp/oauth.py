"""OAuth with a server: the SDK's flow, tokens in files of the home that only the owner reads (0600), never in memory.

Only a person signs in, with ``trunkline mcp login SERVER``. The tools worker uses and renews what is there, and says
so when that no longer does.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from trunkline_mcp.server_config import ServerConfig

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken
    from pydantic import BaseModel

    Kept = TypeVar("Kept", bound=BaseModel)

CALLBACK = "http://127.0.0.1:{port}/callback"
CLIENT_NAME = "Trunkline"


class SignInRequiredError(Exception):
    """A person has to sign in first."""

    def __init__(self, server: ServerConfig) -> None:
        super().__init__(f'a person has to sign in: "trunkline mcp login {server.identity}"')


class SignInPage(Protocol):
    """Open the server's sign-in page for a person, and receive the callback."""

    callback: str

    async def open_page(self, url: str) -> None:
        """Have the person open the page."""
        ...

    async def wait_for_callback(self) -> "AuthorizationCodeResult":
        """Return the authorization code that the page sent back."""
        ...


class NoSignInPage:
    """Refuses a sign-in where nobody can open the page."""

    callback = CALLBACK.format(port=0)

    def __init__(self, server: ServerConfig) -> None:
        self._server = server

    async def open_page(self, url: str) -> None:
        """Say that a person is needed."""
        raise SignInRequiredError(self._server)

    async def wait_for_callback(self) -> "AuthorizationCodeResult":
        """Fail: no person is there to log in."""
        raise SignInRequiredError(self._server)


class OAuthTokenStore:
    """The stored OAuth state of one server: its tokens, and our client registration. It implements the SDK's
    ``TokenStorage``."""

    def __init__(self, folder: Path, server: ServerConfig) -> None:
        self._server = server
        name = server.identity.replace("/", ".")
        self._tokens = folder / f"{name}.tokens.json"
        self._client = folder / f"{name}.client.json"

    async def get_tokens(self) -> "OAuthToken | None":
        """The tokens, None when nobody has signed in."""
        from mcp.shared.auth import OAuthToken

        return _read(self._tokens, OAuthToken)

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Keep them."""
        _write(self._tokens, tokens)

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """As whom we are registered: by hand, as the server's entry says, or by ourselves earlier."""
        from mcp.shared.auth import OAuthClientInformationFull

        by_hand = self._server.registration
        if not by_hand.client_id:
            return _read(self._client, OAuthClientInformationFull)
        secret = by_hand.client_secret.reveal() if by_hand.client_secret else None
        method = "client_secret_basic" if secret else "none"
        return OAuthClientInformationFull(
            client_id=by_hand.client_id, client_secret=secret, token_endpoint_auth_method=method
        )

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        """Keep it."""
        _write(self._client, client_info)

    def forget(self) -> None:
        """Sign out here: nothing of the server is kept."""
        for file in (self._tokens, self._client):
            file.unlink(missing_ok=True)


def oauth_provider(server: ServerConfig, tokens: OAuthTokenStore, visit: SignInPage) -> "OAuthClientProvider":
    """Return the OAuth provider, which adds tokens to requests, renews them, and has a person sign in where one is
    present."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    return OAuthClientProvider(
        server_url=server.url,
        client_metadata=OAuthClientMetadata(client_name=CLIENT_NAME, redirect_uris=[AnyUrl(visit.callback)]),
        storage=tokens,
        redirect_handler=visit.open_page,
        callback_handler=visit.wait_for_callback,
        client_metadata_url=server.registration.metadata_url,
    )


def _read(file: Path, kind: "type[Kept]") -> "Kept | None":
    try:
        return kind.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:  # half a file, or another version's: sign in again
        return None


def _write(file: Path, value: "BaseModel") -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        os.fchmod(opened.fileno(), 0o600)
        opened.write(value.model_dump_json(exclude_none=True).encode())
    draft.replace(file)
