"""What memory costs: ``python -m benchmarks.memory [FIGURE ...] [--scale 0.1]``. One module a figure.

A figure is a module with ``async def measure(bench: Bench) -> AsyncIterator[Row]``, named in ``FIGURES``.
"""
