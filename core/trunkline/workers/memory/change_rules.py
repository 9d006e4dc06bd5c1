"""The memory worker's own rules, which see every change before it is committed."""

from collections.abc import Iterable

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.conversations.paths import conversation_of
from trunkline.contracts.memory.store import Change
from trunkline_bus import Refusal

OWNER = "owner"


class ExistingBlockRule:
    """Refuses a change that writes into a block that is not there: no folder of a block is made by mistake.

    A worker that still handles a turn of a block when the block is archived or deleted, such as a learner that waits
    for a model, comes too late: a new folder would stand where the archive is to be restored to.

    The owner's own commands may write into the ``default`` block before its first message has made it, so that a new
    home can be given what another system kept.
    """

    def __init__(self, default: str) -> None:
        self._default = default

    def __call__(self, change: Change) -> Change:
        """Raises Refusal."""
        by_hand = change.actor == OWNER and change.scope.conversation is None
        for block in sorted(change.homeless - ({self._default} if by_hand else set())):
            name = block[:80]
            hint = f"Make it: trunkline blocks create {name}"
            raise Refusal("not_found", f"Nothing was written: there is no block called {name!r}. {hint}")
        return change


class PurgedTurnRule:
    """Refuses changes of turns that were purged; while nobody knows which, of every turn.

    A worker that still handles a turn of a purged conversation, such as a learner that waits for a model, may not store
    what it learned there.
    """

    def __init__(self) -> None:
        self._turns: set[str] = set()
        self._unknown_reason = ""

    def add(self, turns: Iterable[str]) -> None:
        """Refuse what comes of these turns from now on."""
        self._turns.update(turns)

    def refuse_all(self, why: str) -> None:
        """Refuse what comes of any turn: which ones were purged is not known. ``why`` is a sentence."""
        self._unknown_reason = why

    def __call__(self, change: Change) -> Change:
        """The change, unless it comes of a purged turn. The conversation itself may begin anew."""
        if not change.scope.turn or all(map(conversation_of, change.files)):
            return change
        if self._unknown_reason:
            raise Refusal("purged", self._unknown_reason)
        if change.scope.turn in self._turns:
            raise Refusal("purged", "The conversation that this comes of was purged: nothing of it is kept.")
        return change


class RedactionRule:
    """Keeps keys and passwords out of memory.

    ``api_key=...``, ``token: ...`` and the like become ``[REDACTED]``, in every file of text and in every layer. It is
    a net under people and models who paste such things, and text alone cannot tell a password from a word: what is
    plainly a reference, a type, a call or a placeholder is left as it is, so that notes and code about secrets survive.
    """

    def __init__(self, secrets: Redactor) -> None:
        self._secrets = secrets

    def __call__(self, change: Change) -> Change:
        """The change without the secrets in what it adds; the same one when there are none."""
        files = {path: self._file(data, change.known.get(path, 0)) for path, data in change.files.items()}
        if all(files[path] is data for path, data in change.files.items()):
            return change
        return Change(files, actor=change.actor, reason=change.reason, scope=change.scope, known=change.known)

    def redact(self, text: str) -> str:
        """A text without the secrets in it."""
        return self._secrets.redact(text)

    def _file(self, data: bytes | None, known: int) -> bytes | None:
        """Only what is new of a file that grew is looked at; a line is looked at whole."""
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
