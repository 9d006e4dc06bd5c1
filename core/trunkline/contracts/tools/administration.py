"""Identities, permissions and schedules as a tool sees them. Only tools that declare it change anything, only in
turns of the owner, and only after the owner has approved exactly that call.
"""

from abc import ABC, abstractmethod

from trunkline.contracts.auth.identity import IdentityRecord, IdentityType
from trunkline.contracts.auth.messages import AccessChecked, AccessToken, PolicyList, PolicyView
from trunkline.contracts.policies.messages import PolicyEffect
from trunkline.errors import ToolError

NOT_HERE = "Identities, permissions and schedules cannot be seen or changed from here."


class Administration(ABC):
    """Identities, permissions, access tokens and the block's schedules, for the caller of one tool call.

    Guarantees: nobody but the owner learns about others. A change needs a tool that administers and the owner's
    approval of exactly this call. No method returns a token, a key or a hash of one.

    Not guaranteed: that a change counts in other workers when a method returns; it does within a second.

    Errors: every async method raises ToolError: ``permission_denied`` for a caller who may not, ``unavailable`` if no
    gateway answers, and the kind of the gateway's refusal.
    """

    @property
    @abstractmethod
    def is_owner(self) -> bool:
        """Report whether the turn is the owner's alone, with a credential for all blocks. Raises nothing."""

    @abstractmethod
    async def check(self, resource: str, action: str, identity: str = "") -> AccessChecked:
        """Return whether an identity may do something; "" is the agent of this call for its caller. Blocks are used by
        identities and not by agents, so about ``block:NAME`` "" is the caller. A denial wins, and what nothing permits
        is refused. Raises ToolError.
        """

    @abstractmethod
    async def identities(self) -> tuple[IdentityRecord, ...]:
        """Return all identities. Raises ToolError."""

    @abstractmethod
    async def policies(self) -> PolicyList:
        """Return the owner's policies. Raises ToolError."""

    @abstractmethod
    async def tokens(self) -> tuple[AccessToken, ...]:
        """Return the access tokens, without their texts. Raises ToolError."""

    @abstractmethod
    async def create_identity(self, id: str, type: IdentityType, display_name: str) -> IdentityRecord:
        """Create an identity that may do nothing yet. Raises ToolError."""

    @abstractmethod
    async def grant(
        self, subject: str, action: str, resource: str, *, effect: PolicyEffect = "allow", note: str = ""
    ) -> PolicyView:
        """Add a policy. The words are those of a policy file. Raises ToolError."""

    @abstractmethod
    async def revoke(self, policy_id: str) -> PolicyView:
        """Remove a policy. Raises ToolError."""

    @abstractmethod
    async def save_schedule(self, name: str, text: str) -> None:
        """Write the file of a schedule of this block. What it says will run in the owner's name. Raises ToolError."""

    @abstractmethod
    async def remove_schedule(self, name: str) -> None:
        """Delete the file of a schedule of this block; history keeps it. Raises ToolError, ``not_found`` if there is
        none.
        """


class NoAdministration(Administration):
    """Identities, permissions and schedules are out of reach: on other hosts, in isolated processes, and in tests
    without them.
    """

    @property
    def is_owner(self) -> bool:
        """Return False. Raises nothing."""
        return False

    async def check(self, resource: str, action: str, identity: str = "") -> AccessChecked:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def identities(self) -> tuple[IdentityRecord, ...]:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def policies(self) -> PolicyList:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def tokens(self) -> tuple[AccessToken, ...]:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def create_identity(self, id: str, type: IdentityType, display_name: str) -> IdentityRecord:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def grant(
        self, subject: str, action: str, resource: str, *, effect: PolicyEffect = "allow", note: str = ""
    ) -> PolicyView:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def revoke(self, policy_id: str) -> PolicyView:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def save_schedule(self, name: str, text: str) -> None:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")

    async def remove_schedule(self, name: str) -> None:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError(NOT_HERE, kind="unsupported")
