"""The NATS accounts: the permissions of each kind of process on the bus, generated from the subject table.

``python -m trunkline.acl`` prints the accounts; ``deploy/README.md`` describes how to use them. No running worker
uses this package.
"""
