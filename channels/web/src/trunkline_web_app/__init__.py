"""The web app: its files, which the gateway serves at ``/``."""
