"""Bringing plugins in and taking them out again. Only for the command line; no worker imports this.

``pip`` runs pip · ``wheel`` reads a wheel without importing it · ``environment`` knows what is installed and who needs
it · ``gather`` fetches what a plugin would bring · ``guard`` refuses what must not come in · ``change`` does it.
"""
