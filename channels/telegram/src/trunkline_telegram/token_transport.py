"""The HTTP transport that knows the bot's token. Nothing else does: the Bot API has the token in its URLs, and HTTP
libraries put URLs into logs, traces and errors. All of them see ``HIDDEN`` in its place.
"""

from urllib.parse import quote

import httpx

HIDDEN = "hidden"
"""What stands for the secret part of the token in URLs."""


class TokenTransport(httpx.AsyncBaseTransport):
    """Sends requests, with the token in place of the hidden one."""

    def __init__(self, token: str, inner: httpx.AsyncBaseTransport) -> None:
        self._token = token.encode()
        hidden = hidden_token(token)
        self._hidden = (hidden.encode(), quote(hidden).encode())  # addresses of files are quoted
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and return the response to the request as it was before."""
        target = request.url.raw_path
        for hidden in self._hidden:
            target = target.replace(hidden, self._token, 1)
        revealed = httpx.Request(
            request.method,
            request.url.copy_with(raw_path=target),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._inner.handle_async_request(revealed)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def hidden_token(token: str) -> str:
    """Return the token without its secret part."""
    account, _, _ = token.partition(":")
    return f"{account}:{HIDDEN}"
