"""The plugin: its verifier."""

from collections.abc import Iterable

import trunkline
from trunkline.api.gateway import PasskeyVerifier


@trunkline.hookimpl
def trunkline_passkey_verifiers() -> Iterable[PasskeyVerifier]:
    """The verifier. It imports fido2 when the first response is checked."""
    from trunkline_passkeys.verifier import Fido2Verifier

    return [Fido2Verifier()]
