"""Writing settings back, as ``trunkline init`` does."""

import pytest

from trunkline.config import Secret, load_config
from trunkline.config.editor import write_settings
from trunkline.errors import ConfigError


def test_comments_and_order_stay(tmp_path):
    """Only the settings that were named change."""
    file = tmp_path / "trunkline.toml"
    file.write_text("# mine\n[gateway]\nport = 1 # why\nhost = '::1'\n")
    write_settings(file, {"gateway.port": 2, "gateway.host": None, "runtime.provider_adapter": "openai"})
    assert file.read_text() == '# mine\n[gateway]\nport = 2 # why\n\n[runtime]\nprovider_adapter = "openai"\n'


def test_edited_settings_can_be_read_back(tmp_path):
    """A new file is made, secrets are written as references, and loading gives the same values."""
    file = tmp_path / "new" / "trunkline.toml"
    write_settings(
        file,
        {
            "adapters.openai.base_url": "http://localhost:11434/v1",
            "adapters.openai.api_key": Secret("OPENAI_API_KEY"),
            "plugins.disabled": ("dice",),
        },
    )
    config = load_config(file.parent, environ={})
    assert config.settings.plugins.disabled == ("dice",)
    assert 'api_key = {env = "OPENAI_API_KEY"}' in file.read_text()
    assert config.has_section("adapters", "openai")
    assert [child.name for child in file.parent.iterdir()] == ["trunkline.toml"]


@pytest.mark.parametrize(
    ("before", "key"), [("[gateway\n", "gateway.port"), ("gateway = 1\n", "gateway.port")]
)
def test_a_file_that_cannot_be_edited_stays_as_it_is(tmp_path, before, key):
    """An error names the file or key, and nothing is changed."""
    file = tmp_path / "trunkline.toml"
    file.write_text(before)
    with pytest.raises(ConfigError):
        write_settings(file, {key: 2})
    assert file.read_text() == before
