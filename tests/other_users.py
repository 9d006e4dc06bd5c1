"""People who are let in though they are not the owner."""

from collections.abc import Mapping

import trunkline
from trunkline.contracts.gateway.access import Identity

HEADER = "x-visitor"


class Visitors:
    """A plugin that knows these people; who sends the name of one in ``HEADER`` is that one."""

    name = "visitors"

    def __init__(self, *known: Identity) -> None:
        self._known = {one.id: one for one in known}

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        return self._known.get(headers.get(HEADER, ""))

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[object]:
        return [self]


GUEST = Identity(id="guest", type="collaborator")
