"""Who may say what on the bus: ``roles`` says it in terms of the subject table, ``grants`` draws NATS subjects from it,
``nats`` writes them down as a server's accounts. Nothing here is used by a running worker.

``python -m trunkline.acl`` prints the accounts; ``deploy/README.md`` says how they are used.
"""
