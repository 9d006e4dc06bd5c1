"""Permissions: a policy, its conditions, and a block's permission table.

The owner's policies are the files ``policies/<id>.json`` in memory. No agent can write these files or a
``block.toml``.
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
    """The conditions under which a policy applies, and its demands. All given conditions must hold.

    ``requires_approval``: a person decides each time. ``max_per_day``: the number of uses per day, counted from
    midnight. ``time_window``: ``HH:MM-HH:MM``; a window whose end is before its start extends past midnight.
    ``days``: the days on which the window starts. ``zone``: the time zone of the window, the days and midnight.
    ``until``: the time at which the policy ends. ``conversation``: the only conversation. ``shape``: the only call
    shape, which is a tool with the values of all its arguments except the unbound ones.
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
    """One rule. A denial takes precedence over a permission, and an action that no rule permits is refused.

    ``subject``: ``block:NAME`` (its agent), ``type:agent``, ``*``, or the id of the person for whom the agent works.
    ``resource``: ``tool:NAME`` or ``tool:SOURCE:NAME``, ``files:block|workspace|system``, ``memory:/path``,
    ``external:HOST`` (a host that the model chose), ``system:network``, ``system:host-network``, or ``block:NAME`` (a
    block that is shared with an identity); ``*`` matches any text. ``action``: ``read``, ``write``, ``send``, ``exec``,
    ``network``, or ``*``; for a shared block ``read``, ``chat``, ``approve`` or ``operate``. ``id`` is the name of its
    file. ``note`` describes its purpose.
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
    """The permissions of a block's agent: the table ``[permissions]`` of its ``block.toml``. The same table in
    ``trunkline.toml`` is the default of all blocks.

    ``scope``: the reach of the file tools: the block's folder, the folders of all blocks, or the whole system (which
    permits programs too). ``allow_shell``: ``true`` permits programs, ``false`` denies all of them; if unset, a
    program needs a policy that permits it. ``allow_network``: ``true`` permits the network to tools and programs,
    ``false`` denies it to both; if unset, only tools that declare that they reach other hosts may use it.
    ``max_timeout``: the longest run of a program, in seconds. ``approvals``: the calls about which a person is asked:
    ``all``, ``some`` (calls that write, send or run), ``none``. ``plan``: ``true`` permits only reading and planning.
    """

    scope: FileScope | None = None
    allow_shell: bool | None = None
    allow_network: bool | None = None
    max_timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    approvals: ApprovalMode | None = None
    plan: bool | None = None

    def with_defaults(self, defaults: "PermissionTable") -> "PermissionTable":
        """Return this table with the values of ``defaults`` for the fields that are unset."""
        said = {name: getattr(self, name) for name in self.__struct_fields__}
        return msgspec.structs.replace(
            defaults, **{name: one for name, one in said.items() if one is not None}
        )
