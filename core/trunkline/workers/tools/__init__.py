"""The tools worker: the catalogue, the checks before each call, the call, and the effect ledger.

::

    CALL_TOOL ─> call_registry ─> ledger: did this call run before?
                       │             └─ no ─> dispatch: schema ─> policy ─> path ─> gate ─> execute
                       └── a progress message every second, then the outcome

Nothing here talks to a model or stores a conversation.
"""
