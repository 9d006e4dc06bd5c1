"""Every bundled plugin declares what it asks for, so that the settings page and the platform can hold it to that."""

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_bundled_plugin_has_a_manifest() -> None:
    """Beside each ``plugin.py`` of a bundled distribution lies a ``trunkline-plugin.toml``."""
    plugins = {
        file.parent
        for folder in ("plugins", "adapters", "channels")
        for file in (ROOT / folder).glob("*/src/*/plugin.py")
    }
    assert plugins
    assert {one.name for one in plugins if not (one / "trunkline-plugin.toml").is_file()} == set()
