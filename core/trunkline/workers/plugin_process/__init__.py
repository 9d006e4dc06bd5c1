"""A plugin in a process of its own: what runs there. Its tools answer the tools worker, its channels the gateway.

Checks, ledger and catalogue stay in the tools worker (``trunkline.workers.tools``); who starts such a process is
``runtime/plugin_supervisor.py``, or a service manager.
"""
