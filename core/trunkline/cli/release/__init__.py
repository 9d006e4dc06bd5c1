"""Installs a release of Trunkline beside another one, tries it, and changes to it. No worker imports this package."""
