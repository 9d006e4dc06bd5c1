"""Imports nats-py before any other module of this package does, without aiohttp.

nats-py imports aiohttp, if it is installed, for servers whose address begins with ``ws://``. The bus has none, and the
channels for Discord and Slack have aiohttp installed. Without it every command and worker starts an eighth faster.
"""

import sys

UNUSED = "aiohttp"

if UNUSED not in sys.modules:
    sys.modules[UNUSED] = None  # type: ignore[assignment]  # an import of it fails, which nats-py expects
    try:
        import nats  # noqa: F401
    finally:
        del sys.modules[UNUSED]
