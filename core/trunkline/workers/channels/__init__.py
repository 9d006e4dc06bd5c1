"""The channels worker and what channels share. Nothing of one particular channel may be in here."""
