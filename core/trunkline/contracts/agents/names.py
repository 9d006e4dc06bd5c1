"""The ids of tasks and agents. Each is derived from what started it, so that a repeat finds the same one. Pure."""

import re

from trunkline_bus import key_of

SINGLE = "agent"
"""The name of an agent without a type that ends with its task."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def is_agent_name(text: str) -> bool:
    """Report whether a text can be the name of an agent or of a type: ``a-z``, ``0-9``, ``-`` and ``_``, at most 40.
    Raises nothing.
    """
    return _NAME.fullmatch(text) is not None


def task_id(call: str, number: int) -> str:
    """Return the id of a call's task with this number, which is the id of its turn. Raises nothing."""
    return f"turn_{key_of('task', call, str(number))}"


def task_conversation(task: str) -> str:
    """Return the conversation of a task of an agent that does not last. Raises nothing."""
    return f"conv_{key_of('task', task)}"


def lasting_agent_id(conversation: str, name: str) -> str:
    """Return the id of a conversation's lasting agent. Raises nothing."""
    return f"agent_{key_of('agent', conversation, name)}"


def agent_conversation(id: str, created_by: str) -> str:
    """Return the conversation of a lasting agent. One that is created again, by another turn, begins anew. Raises
    nothing.
    """
    return f"conv_{key_of('agent', id, created_by)}"
