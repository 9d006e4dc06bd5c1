"""The process of an isolated plugin. Its tools serve the tools worker, and its channels call the gateway.

Checks, ledger and catalogue stay in the tools worker (``trunkline.workers.tools``). ``runtime/plugin_supervisor.py``
or a service manager starts the process.
"""
