"""The gateway's hooks: authentication, admission, routing and HTTP routes."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    from trunkline.contracts.auth.passkey_verifier import PasskeyVerifier
    from trunkline.contracts.gateway.access import AdmissionRule, Authenticator, HttpRoute, StaticSite
    from trunkline.contracts.gateway.locale import Locale
    from trunkline.contracts.gateway.messages import SendMessage
    from trunkline.contracts.plugins.extensions import PluginSettings
    from trunkline.contracts.push.push_sender import PushSender


@hookspec
def trunkline_authenticators(settings: "PluginSettings") -> "Iterable[Authenticator]":
    """Add authenticators, which identify the caller by a request's headers. A guard.

    ```python
    import trunkline
    from trunkline.api.gateway import Identity

    class Proxy:
        name = "proxy"

        async def __call__(self, headers):
            user = headers.get("x-forwarded-user")
            return Identity(id=user) if user else None

    @trunkline.hookimpl
    def trunkline_authenticators():
        return [Proxy()]
    ```
    """


@hookspec
def trunkline_admission_rules(settings: "PluginSettings") -> "Iterable[AdmissionRule]":
    """Add rules that accept or refuse messages. A guard.

    ```python
    import trunkline
    from trunkline.api.bus import Refusal

    class NoShouting:
        name = "no-shouting"

        async def __call__(self, message, identity):
            if message.content.isupper():
                raise Refusal("forbidden", "Please do not shout.")

    @trunkline.hookimpl
    def trunkline_admission_rules():
        return [NoShouting()]
    ```
    """


@hookspec(firstresult=True)
def trunkline_route(message: "SendMessage") -> str | None:
    """Decide the block of a message that names none.

    ```python
    import trunkline

    @trunkline.hookimpl
    def trunkline_route(message):
        return "garden" if "tomato" in message.content else None
    ```
    """


@hookspec
def trunkline_http_routes(settings: "PluginSettings") -> "Iterable[HttpRoute]":
    """Add HTTP routes under ``/x/<plugin>/``.

    ```python
    import trunkline
    from trunkline.api.gateway import HttpRoute

    async def now(request):
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("noon")

    @trunkline.hookimpl
    def trunkline_http_routes():
        return [HttpRoute("/now", ("GET",), now)]
    ```
    """


@hookspec
def trunkline_static_sites(settings: "PluginSettings") -> "Iterable[StaticSite]":
    """Add a web app, whose files the gateway serves at ``/``. The first one counts.

    ```python
    from pathlib import Path

    import trunkline
    from trunkline.api.gateway import StaticSite

    @trunkline.hookimpl
    def trunkline_static_sites():
        return [StaticSite(Path(__file__).parent / "site")]
    ```
    """


@hookspec
def trunkline_locales(settings: "PluginSettings") -> "Iterable[Locale]":
    """Add languages of the web app. What is not translated is shown in English.

    ```python
    import trunkline
    from trunkline.api.gateway import Locale

    @trunkline.hookimpl
    def trunkline_locales():
        return [Locale("fr", "Français", {"chat.send": "Envoyer"})]
    ```
    """


@hookspec
def trunkline_passkey_verifiers(settings: "PluginSettings") -> "Iterable[PasskeyVerifier]":
    """Add a verifier of passkeys. The first one counts; without one, nobody signs in with a passkey.

    ```python
    import trunkline
    from trunkline.api.gateway import PasskeyVerifier

    class Nobody(PasskeyVerifier):
        algorithms = (-7,)

        def check_registration(self, response, ceremony):
            raise ValueError("Passkeys are switched off.")

        def check_sign_in(self, response, ceremony, known):
            raise ValueError("Passkeys are switched off.")

    @trunkline.hookimpl
    def trunkline_passkey_verifiers():
        return [Nobody()]
    ```
    """


@hookspec
def trunkline_push_senders(settings: "PluginSettings") -> "Iterable[PushSender]":
    """Add a sender of push notices. The first one counts; without one, no browser gets notices.

    ```python
    import trunkline
    from trunkline.api.gateway import PushSender

    class Nowhere(PushSender):
        def public_key(self, secret):
            raise ValueError("Push notices are switched off.")

        async def check(self, target):
            raise ValueError("Push notices are switched off.")

        async def send(self, target, notice, secret):
            return "gone"

    @trunkline.hookimpl
    def trunkline_push_senders():
        return [Nowhere()]
    ```
    """
