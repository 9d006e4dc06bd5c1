"""Who may do what: a policy, the conditions under which it counts, and a block's table of permissions.

The owner's policies are files ``policies/<id>.json`` in memory. No agent writes there, or in a ``block.toml``.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

PolicyEffect = Literal["allow", "deny"]
FileScope = Literal["block", "workspace", "system"]
ApprovalMode = Literal["all", "some", "none"]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
TIME_WINDOW_PATTERN = r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"

PolicyId = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class Conditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """When a policy counts, and what it demands. All that are given must hold.

    ``requires_approval``: a person decides each time. ``max_per_day``: so many times a day, counted from midnight.
    ``time_window`` is ``HH:MM-HH:MM``; one that ends before it begins goes past midnight. ``days`` are those on which
    it begins. ``zone`` is the time zone of both and of midnight. ``until``: not from then on. ``conversation``: in
    that one alone. ``shape``: for calls of that shape alone (a tool and the values of all its arguments but free
    ones).
    """

    requires_approval: bool = False
    max_per_day: Annotated[int, msgspec.Meta(ge=0)] | None = None
    time_window: Annotated[str, msgspec.Meta(pattern=TIME_WINDOW_PATTERN)] | None = None
    days: tuple[Day, ...] = ()
    zone: str = "UTC"
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    conversation: str | None = None
    shape: str | None = None


UNCONDITIONAL = Conditions()


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule. Denials win over permissions, and what no rule permits is refused.

    ``subject``: ``block:NAME`` (its agent), ``type:agent``, ``*``, or the id of the person whom the agent works for.
    ``resource``: ``tool:NAME`` or ``tool:SOURCE:NAME``, ``files:block|workspace|system``, ``memory:/path``,
    ``external:HOST`` (one that the model chose), ``system:network``, ``system:host-network``; ``*`` stands for any
    text. ``action``: ``read``, ``write``, ``send``, ``exec``, ``network``, or ``*``. ``id`` is the name of its file,
    ``note`` says in words what it is for.
    """

    subject: str
    resource: str
    action: str
    effect: PolicyEffect
    conditions: Conditions = UNCONDITIONAL
    id: str = ""
    note: str = ""
    created: datetime | None = None
    created_by: str = ""


class QuotaUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The number of times that a policy with a daily quota was used on one day."""

    times: int


class PermissionTable(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The permissions of a block's agent: the table ``[permissions]`` of its ``block.toml``, and in
    ``trunkline.toml`` the default of all blocks.

    ``scope``: how far file tools reach: the block's folder, those of all blocks, or the whole system (which permits
    programs too). ``allow_shell``: ``true`` permits programs, ``false`` denies all of them; unset, a program needs
    a policy that permits it. ``allow_network``: ``true`` permits the network to tools and programs, ``false`` denies it
    to both; unset, only tools that reach out by themselves may use it. ``max_timeout``: how many seconds a program may
    run. ``approvals``: which calls a person is asked about: ``all``, ``some`` (what writes, sends or runs), ``none``.
    ``plan``: only reading and planning are permitted.
    """

    scope: FileScope | None = None
    allow_shell: bool | None = None
    allow_network: bool | None = None
    max_timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    approvals: ApprovalMode | None = None
    plan: bool | None = None

    def with_defaults(self, defaults: "PermissionTable") -> "PermissionTable":
        """These, and for what they do not say, the defaults."""
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        return msgspec.structs.replace(
            defaults, **{name: one for name, one in said.items() if one is not None}
        )
