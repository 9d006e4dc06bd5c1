"""What every worker stands on: its life, its home folder, the supervisor, and the clients of the other workers.

Nothing here knows a worker by name; ``trunkline.workers`` does.
"""
