"""The sender of a mail, as far as the receiving server has confirmed it. What is not clear counts as unconfirmed.

Anybody can write any From. The receiving server verifies DKIM and DMARC and writes what it found into the topmost
``Authentication-Results`` (RFC 8601). Only that one is read: what lies below it may come from the sender.
"""

import logging
from dataclasses import dataclass
from email.headerregistry import AddressHeader, BaseHeader
from email.message import EmailMessage, Message
from email.parser import BytesHeaderParser
from email.policy import compat32

import authres

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MailSender:
    """The address in From, "" if there is not exactly one. ``doubt`` says why it is not confirmed, "" if it is."""

    address: str
    doubt: str


def check_sender(raw: bytes, message: EmailMessage, server: str) -> MailSender:
    """Return the sender of a mail, confirmed if ``server`` confirms it. ``raw`` is the mail, or its header."""
    address = _only_address(message)
    if not address:
        return MailSender("", "the mail does not have exactly one address in From")
    if not server:
        return MailSender(address, "channels.email.authentication_server is not set")
    # This parser leaves encoded words alone: decoded, they could look like results.
    header: Message = BytesHeaderParser(policy=compat32).parsebytes(raw)
    fields = header.get_all("Authentication-Results", [])
    if not fields:
        return MailSender(address, "the receiving server has not added Authentication-Results")
    return MailSender(address, _doubt(" ".join(str(fields[0]).split()), server, address.rpartition("@")[2]))


def _only_address(message: EmailMessage) -> str:
    fields = message.get_all("From", [])
    if len(fields) != 1:
        return ""
    field = fields[0]
    if not isinstance(field, AddressHeader) or not isinstance(field, BaseHeader) or field.defects:
        return ""
    addresses = field.addresses
    if any(group.display_name is not None for group in field.groups):
        return ""
    if len(addresses) != 1 or not addresses[0].username or not addresses[0].domain:
        return ""
    return addresses[0].addr_spec.lower()


def _doubt(field: str, server: str, domain: str) -> str:
    """Return why a value of Authentication-Results does not confirm a sender of this domain, "" if it does."""
    try:
        found = authres.AuthenticationResultsHeader.parse_value(field)
    except Exception as error:  # whatever the parser raises for what a sender made up
        log.debug("Authentication-Results cannot be read: %s", error)
        return "the topmost Authentication-Results cannot be read"
    if str(found.authserv_id).lower() != server.lower():
        return f"the topmost Authentication-Results is from {found.authserv_id}, not from {server}"
    dmarc = [one for one in found.results if str(one.method).lower() == "dmarc"]
    if len(dmarc) > 1 or any(one.result.lower() in ("fail", "temperror", "permerror") for one in dmarc):
        return "DMARC does not confirm the domain in From"
    if dmarc and dmarc[0].result.lower() == "pass":
        return (
            "" if _values(dmarc[0], "from") == [domain] else "DMARC confirms another domain than that in From"
        )
    passed = [
        one for one in found.results if str(one.method).lower() == "dkim" and one.result.lower() == "pass"
    ]
    if any(_values(one, "d") == [domain] or _values(one, "i") == [domain] for one in passed):
        return ""
    return "no DKIM signature of the domain in From is confirmed"


def _values(result: authres.AuthenticationResult, name: str) -> list[str]:
    """Return the domains in the properties ``header.NAME`` of a result."""
    found = (one for one in result.properties if one.type.lower() == "header" and one.name.lower() == name)
    return [str(one.value).lower().rpartition("@")[2] for one in found]
