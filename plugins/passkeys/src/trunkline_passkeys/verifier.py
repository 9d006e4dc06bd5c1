"""Fido2Verifier: checks the responses of authenticators with Yubico's fido2."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from trunkline.api.gateway import NewPasskey, PasskeyCeremony, PasskeyVerifier

if TYPE_CHECKING:
    from fido2.server import Fido2Server

ES256, EDDSA, RS256 = -7, -8, -257
"""COSE's numbers of the algorithms that authenticators of phones, computers and keys have."""

LONGEST_CREDENTIAL = 1023
"""The largest number of bytes of an authenticator's name of a passkey, by WebAuthn."""


class Fido2Verifier(PasskeyVerifier):
    """Checks responses with ``fido2``, which is imported by the first check. Attestations are not read."""

    algorithms = (ES256, EDDSA, RS256)

    def check_registration(self, response: Mapping[str, Any], ceremony: PasskeyCeremony) -> NewPasskey:
        """Return the passkey of a response. Raises ValueError and whatever fido2 raises about a malformed response."""
        from fido2 import cbor
        from fido2.webauthn import RegistrationResponse

        parsed = RegistrationResponse.from_dict(response)
        _refuse_embedded(parsed.response.client_data)
        found = _server(ceremony).register_complete(_state(ceremony), parsed)
        made = found.credential_data
        if made is None or parsed.raw_id != made.credential_id:
            raise ValueError("The response is about another passkey.")
        if len(made.credential_id) > LONGEST_CREDENTIAL or made.public_key.get(3) not in self.algorithms:
            raise ValueError("The passkey has another form than the gateway asked for.")
        return NewPasskey(
            credential=bytes(made.credential_id),
            public_key=cbor.encode(dict(made.public_key)),
            counter=found.counter,
        )

    def check_sign_in(self, response: Mapping[str, Any], ceremony: PasskeyCeremony, known: NewPasskey) -> int:
        """Return the counter of a response. Raises ValueError and whatever fido2 raises about a malformed response."""
        from fido2 import cbor
        from fido2.cose import CoseKey
        from fido2.webauthn import Aaguid, AttestedCredentialData, AuthenticationResponse

        parsed = AuthenticationResponse.from_dict(response)
        _refuse_embedded(parsed.response.client_data)
        if parsed.response.user_handle not in (None, ceremony.user):
            raise ValueError("The passkey is that of another identity.")
        key = CoseKey.parse(cast(Mapping[int, Any], cbor.decode(known.public_key)))
        expected = AttestedCredentialData.create(Aaguid.NONE, known.credential, key)
        _server(ceremony).authenticate_complete(_state(ceremony), [expected], parsed)
        return parsed.response.authenticator_data.counter


def _server(ceremony: PasskeyCeremony) -> "Fido2Server":
    from fido2.server import Fido2Server
    from fido2.webauthn import PublicKeyCredentialRpEntity

    party = PublicKeyCredentialRpEntity(name="Trunkline", id=ceremony.host)
    return Fido2Server(party, verify_origin=lambda origin: origin == ceremony.origin)


def _state(ceremony: PasskeyCeremony) -> Mapping[str, Any]:
    """Return what fido2 compares with: the challenge, and that the person must be verified."""
    from fido2.utils import websafe_encode
    from fido2.webauthn import UserVerificationRequirement

    return {
        "challenge": websafe_encode(ceremony.challenge),
        "user_verification": UserVerificationRequirement.REQUIRED,
    }


def _refuse_embedded(client_data: Any) -> None:
    """Refuse a response that was made for a page within a page of another origin."""
    if client_data.cross_origin:
        raise ValueError("The page was within a page of another origin.")
