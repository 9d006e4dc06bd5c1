"""Everything that is said on the bus, as frozen msgspec structs, one module an area.

Tags read ``area.name.v1``. Unknown fields pass, an unknown tag goes to the dead letters. Nothing here knows a
subject, a worker or I/O.
"""
