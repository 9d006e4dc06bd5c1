"""Ways for code to escape from Python, and a session that does not prevent attempts."""

from trunkline import Sandbox
from trunkline_rlm.repl.process import ReplLimits
from trunkline_rlm.repl.session import ReplSession

WAY_OUT = """
def find(name):
    for kind in ().__class__.__base__.__subclasses__():
        try:
            space = kind.__init__.__globals__
        except AttributeError:
            continue
        if name in space:
            return space[name]
        if 'sys' in space and name in space['sys'].modules:
            return space['sys'].modules[name]
os = find('os')
"""
"""From a tuple to the module ``os``: works in every Python, so nothing may hang on it."""


async def read() -> str:
    return "read"


def open_session(sandbox: Sandbox, limits: ReplLimits | None = None) -> ReplSession:
    """A session without the check, as for code that has found a way past it."""
    return ReplSession(sandbox, {"read": read}, limits or ReplLimits(timeout=5.0), checked=False)
