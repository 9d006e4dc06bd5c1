"""The testing kit for plugins and for the platform itself.

``platform.platform`` runs all workers in this process, ``processes.process_platform`` as processes that a test may
kill; ``scripted_model`` and ``scripted_provider`` answer by a script; ``contexts.tool_context`` is what a tool is
given; the ``*_suite`` modules hold what every adapter and channel must do.
"""
