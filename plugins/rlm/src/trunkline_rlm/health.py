"""What ``trunkline doctor`` finds out about running code here."""

from trunkline import HealthResult
from trunkline_rlm.repl.process import CannotConfine, Limits, begun


async def confined() -> HealthResult:
    """Begin a process that shuts itself in, and end it."""
    try:
        process = await begun((), Limits())
    except CannotConfine as error:
        hint = (
            "retrieve needs Linux on x86_64 or aarch64; without it the tool is refused, and the rest works."
        )
        return HealthResult("warning", str(error), hint)
    await process.end()
    if process.apart:
        return HealthResult("ok", "Code of models is shut in: system calls filtered, no network, no files")
    return HealthResult(
        "ok",
        "Code of models is shut in by a filter of system calls, without namespaces",
        "Let ordinary users make user namespaces, and code gets a network and a root folder of its own too.",
    )
