"""The tools worker: the catalogue, the way every call takes, and the effect ledger.

::

    CALL_TOOL ─> calls ─> ledger: seen before?
                  │            └─ no ─> dispatch: schema ─> policy ─> path ─> gate ─> execute
                  └── a sign of life every second, then the outcome

Nothing here talks to a model or keeps a conversation.
"""
