"""Bringing plugins in and taking them out again. Only for the command line; no worker imports this.

``pip`` runs pip · ``described`` is what a distribution says of itself · ``wheel`` and ``project`` read that without
running anything · ``environment`` knows what is installed and who needs it · ``gather`` fetches what a plugin would
bring · ``guard`` refuses what must not come in · ``build`` makes a project's wheel in a sandbox, ``build_backend`` is
the part in there · ``change`` installs and removes.
"""
