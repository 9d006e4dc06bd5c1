"""ParentTurn: the turn and the call that started the task of an agent. The task is a turn, too."""

import msgspec


class ParentTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The call of another turn that started this turn as the task of an agent.

    ``block``, ``conversation``, ``turn`` and ``call`` (the key in the effect ledger) are those of the call. ``agent``
    is the name of the agent for people, and ``agent_id`` its id if it lasts beyond the task, "" otherwise. ``types``
    are the types of the agents from the person's turn down to this one, one for each level ("" for none), so their
    number is the depth. ``root`` is the turn at the top of the family, which a person, a schedule or a webhook began:
    the whole family counts toward its budget. ``root_conversation`` is the conversation of that turn.
    """

    block: str
    conversation: str
    turn: str
    call: str
    agent: str
    root: str
    root_conversation: str
    types: tuple[str, ...]
    agent_id: str = ""

    @property
    def depth(self) -> int:
        """The number of agents from the person's turn down to this one; 1 for a task of that turn."""
        return len(self.types)
