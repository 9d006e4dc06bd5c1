"""The mails of the owner, and what each asks for: a message to an agent, a decision, or a command."""

import msgspec

from trunkline import RemoteFault
from trunkline.api.channel import (
    Chats,
    DeliveryLedger,
    DeliveryState,
    FileRefused,
    Gateway,
    message_with_files,
)
from trunkline.api.gateway import MessageAccepted, SendMessage
from trunkline_email.commands import parse_command, run_command
from trunkline_email.incoming_mail import IncomingMail
from trunkline_email.mail_decision import decide, parse_mail_decision
from trunkline_email.outbound_mail import answer_subject
from trunkline_email.posts import new_key
from trunkline_email.settings import EmailSettings
from trunkline_email.threads import MailThreads, references_of

LEFT_OUT = "\n\n(These files are left out, because a mail may have at most 20: {})"


class OwnerRequests:
    """Carries out the mails of the owner. Methods raise Unavailable if no gateway answers; call them again then."""

    def __init__(
        self, settings: EmailSettings, gateway: Gateway, ledger: DeliveryLedger, chats: Chats
    ) -> None:
        self._settings = settings
        self._gateway = gateway
        self._ledger = ledger
        self._chats = chats
        self._threads = MailThreads(settings.domain)

    async def answer(self, mail: IncomingMail, *, too_large: bool) -> DeliveryState:
        """Carry out a mail, and return the delivery that answers it. A repetition changes nothing."""
        thread = self._threads.key(mail)
        details = {
            "key": new_key(),
            "thread": thread,
            "subject": answer_subject(mail.subject),
            "references": references_of(mail),
            "in_reply_to": mail.message_id,
        }
        said = await self._said(mail, thread, too_large=too_large)
        state = DeliveryState(id=mail_delivery(mail), place=mail.sender.address, details=details)
        if isinstance(said, str):
            return msgspec.structs.replace(state, details={**details, "text": said})
        return msgspec.structs.replace(state, conversation=said.conversation, turn=said.turn)

    async def _said(self, mail: IncomingMail, thread: str, *, too_large: bool) -> MessageAccepted | str:
        """Return the turn that answers a mail, or the text that does."""
        say = self._gateway.sentences
        if too_large:
            limit = self._settings.max_mail_bytes // 1_000
            return say("email.too_large", limit=limit)
        if not mail.text and not mail.files:
            return say("email.empty")
        decision = parse_mail_decision(mail.text, say)
        if decision is not None:
            return await decide(self._gateway, self._ledger, mail.sender.address, decision)
        command = parse_command(mail.text)
        if command is not None:
            return await run_command(self._gateway, await self._chats.get(thread), *command)
        try:
            return await self._send(mail, thread)
        except RemoteFault as fault:
            return say.translate(fault.message)

    async def _send(self, mail: IncomingMail, thread: str) -> MessageAccepted | str:
        state = await self._chats.get(thread)
        known = state.conversation
        subject = f"{mail.subject}\n\n" if known is None and mail.subject else ""
        note = LEFT_OUT.format(", ".join(mail.left_out)) if mail.left_out else ""
        message = SendMessage(
            content=f"{subject}{mail.text}{note}",
            client_id=f"email:{self._settings.account}:{mail.id}",
            conversation=known,
            block=state.block if known is None else None,
        )
        try:
            abilities = self._gateway.abilities(state.block)
            accepted = await self._gateway.send(
                await message_with_files(message, mail.files, abilities, self._gateway.sentences)
            )
        except FileRefused as refused:
            return refused.sentence
        except RemoteFault as fault:
            if known is None or fault.code != "not_found":
                raise
            # the conversation was deleted: begin another one
            await self._chats.put(thread, msgspec.structs.replace(state, conversation=None, turn=""))
            return await self._send(mail, thread)
        now = msgspec.structs.replace(state, conversation=accepted.conversation, turn=accepted.turn)
        await self._chats.put(thread, now)
        return accepted


def mail_delivery(mail: IncomingMail) -> str:
    """Return the id of the delivery that answers a mail."""
    return f"mail:{mail.id}"
