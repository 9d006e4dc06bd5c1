"""The memory worker's own rules, which check every change before its commit."""

from collections.abc import Iterable

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.actors import OWNER
from trunkline.contracts.conversations.paths import conversation_of
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal


class ExistingBlockRule:
    """Refuses a change that writes into a block that does not exist, so that no block's folder is created by mistake.

    Such a change comes from a worker that still handles a turn when the block is archived or deleted, for example from
    a learner that waits for a model. A new folder would occupy the path to which the archive is restored.

    The owner's own commands may write into the ``default`` block before its first message creates it, so that an import
    into a new home can add files there.
    """

    def __init__(self, default: str) -> None:
        self._default = default

    def __call__(self, change: Change) -> Change:
        """Return the change. Raises Refusal ``not_found``."""
        by_hand = change.actor == OWNER and change.scope.conversation is None
        for block in sorted(change.missing_blocks - ({self._default} if by_hand else set())):
            name = block[:80]
            hint = f"Make it: trunkline blocks create {name}"
            raise Refusal("not_found", f"Nothing was written: there is no block called {name!r}. {hint}")
        return change


class PurgedTurnRule:
    """Refuses changes of purged turns. If it is unknown which turns were purged, refuses changes of every turn.

    A worker that still handles a turn of a purged conversation, such as a learner that waits for a model, must not
    store anything from that turn.
    """

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._unknown_reason = ""

    def add(self, turns: Iterable[str]) -> None:
        """Refuse changes of these turns from now on."""
        self._turns.update(turns)

    def refuse_all(self, why: str) -> None:
        """Refuse changes of every turn, because it is unknown which turns were purged. ``why`` is a sentence."""
        self._unknown_reason = why

    def __call__(self, change: Change) -> Change:
        """Return the change. Raises Refusal if it belongs to a purged turn. Changes of conversation files alone are
        allowed, because a purged conversation may begin again.
        """
        if not change.scope.turn or all(map(conversation_of, change.files)):
            return change
        if self._unknown_reason:
            raise Refusal("purged", self._unknown_reason)
        if change.scope.turn in self._turns:
            raise Refusal("purged", "The conversation that this comes of was purged: nothing of it is kept.")
        return change


class RedactionRule:
    """Keeps keys and passwords out of memory.

    ``api_key=...``, ``token: ...`` and similar values become ``[REDACTED]``, in every text file and in every layer. The
    rule protects against secrets that people and models paste. It does not find every secret, because text alone does
    not show whether a word is a password. A value that clearly is a reference, a type, a call or a placeholder stays,
    so that notes and code about secrets are not damaged.
    """

    def __init__(self, secrets: Redactor) -> None:
        self._secrets = secrets

    def __call__(self, change: Change) -> Change:
        """Return the change with the secrets in the added text redacted; the same object if there are none."""
        files = {path: self._file(data, change.known.get(path, 0)) for path, data in change.files.items()}
        if all(files[path] is data for path, data in change.files.items()):
            return change
        return Change(files, actor=change.actor, reason=change.reason, scope=change.scope, known=change.known)

    def redact(self, text: str) -> str:
        """Return the text with its secrets redacted."""
        return self._secrets.redact(text)

    def _file(self, data: bytes | None, known: int) -> bytes | None:
        """Redact the new part of a file, from the beginning of the line in which it starts."""
        if data is None:
            return None
        start = data.rfind(b"\n", 0, known) + 1 if known else 0
        fresh = data[start:]
        try:
            text = fresh.decode("utf-8")
        except UnicodeDecodeError:
            return data
        cleaned = self.redact(text)
        return data if cleaned == text else data[:start] + cleaned.encode("utf-8")
