"""A plugin's declaration limits it: anything beyond its manifest or the owner's consent is refused before it has an
effect."""

import pytest

from trunkline.errors import PluginError
from trunkline.plugins.manifest import PluginManifest
from trunkline.plugins.pins import Pin, read_pins, write_pins

RUNS = """
    import trunkline

    @trunkline.tool(effect="exec")
    def run(line: str) -> str:
        "Run a line."
        return line

    @trunkline.tool(effect="read")
    def look() -> str:
        "Look."
        return "seen"

    @trunkline.hookimpl
    def trunkline_tools():
        return [look, run]
"""
GUARDS = """
    import trunkline
    from trunkline.api.gateway import Identity

    class Anybody:
        name = "anybody"

        async def __call__(self, headers):
            return Identity(id="anybody")

    @trunkline.hookimpl
    def trunkline_authenticators():
        return [Anybody()]
"""
AGREED = Pin(
    version="1.2.3",
    sha256="0" * 64,
    source="wheel",
    agreed=PluginManifest(hooks=("tools",), effects=("read",)),
)


def test_a_plugin_matching_its_manifest_is_loaded(install, load, state):
    """Its implementation matches its declaration."""
    install("acme-runner", RUNS, manifest='hooks = ["tools"]\neffects = ["read", "exec"]')
    plugins = load()
    assert state(plugins, "acme-runner").status == "loaded"
    assert {"look", "run"} <= {owned.item.spec.name for owned in plugins.tools()}


def test_an_undeclared_effect_is_refused_with_owner_and_hint(install, load):
    """A plugin that hides an effect gets none of its tools loaded, and the report names tool, effect and file."""
    install("acme-runner", RUNS, manifest='hooks = ["tools"]\neffects = ["read"]')
    plugins = load()
    assert "acme-runner" not in {owned.owner for owned in plugins.tools()}
    (trouble,) = [trouble for trouble in plugins.report.troubles if trouble.owner == "acme-runner"]
    assert "the effect 'exec', which the plugin's trunkline-plugin.toml does not declare" in trouble.reason


def test_an_undeclared_hook_is_refused(install, load, state):
    """A plugin that declares a tool cannot authenticate clients, and its guard admits no one."""
    install("acme-runner", GUARDS, manifest='hooks = ["tools"]')
    plugins = load()
    found = state(plugins, "acme-runner")
    assert found.status == "refused"
    assert "authenticators, which its trunkline-plugin.toml does not declare" in found.reason
    assert [type(owned.item).__name__ for owned in plugins.authenticators()] == ["_Authenticator"], (
        "a stand-in"
    )


@pytest.mark.parametrize(
    "manifest",
    ["hooks = tools", 'hooks = ["tools"]\neffects = ["destroy"]', 'hook = ["tools"]', "effects = 1"],
)
def test_an_invalid_manifest_refuses_the_plugin(install, load, state, manifest):
    """A typing error is no permission: the plugin is not even imported."""
    install("acme-runner", "raise SystemExit('imported')", manifest=manifest)
    found = state(load(), "acme-runner")
    assert found.status == "failed" and "cannot be understood" in found.reason


@pytest.mark.parametrize("manifest", ['hooks = ["tools"]\neffects = ["read", "exec"]', None])
def test_more_than_was_agreed_to_is_not_imported(install, load, state, home, manifest):
    """A later version that requests more, or has no manifest any more, waits for consent."""
    write_pins(home, {"acme-runner": AGREED})
    install("acme-runner", "raise SystemExit('imported')", manifest=manifest)
    found = state(load(), "acme-runner")
    assert found.status == "failed" and "imported" not in found.reason
    assert "effects exec" in found.reason if manifest else "no longer declares" in found.reason
    assert "trunkline plugins install acme-runner" in found.hint


def test_agreed_permissions_apply_to_each_plugin_of_a_distribution(load, home, tmp_path, monkeypatch):
    """A second entry point, in a package without a manifest, is no way around it."""
    write_pins(home, {"acme-runner": AGREED})
    site = tmp_path / "site"
    info = site / "acme_runner-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-runner\nVersion: 1.2.3\n")
    (info / "entry_points.txt").write_text("[trunkline]\none = acme_one\ntwo = acme_two\n")
    for name in ("one", "two"):
        (site / f"acme_{name}").mkdir()
        (site / f"acme_{name}" / "__init__.py").write_text("raise SystemExit('imported')")
    (site / "acme_one" / "trunkline-plugin.toml").write_text('hooks = ["tools"]\neffects = ["read"]')
    monkeypatch.syspath_prepend(str(site))
    reasons = {one.owner: one.reason for one in load().report.plugins if one.owner.startswith("acme-runner")}
    assert "imported" in reasons["acme-runner:one"]
    assert "no longer declares its permissions" in reasons["acme-runner:two"]


def test_pins_that_cannot_be_read_stop_the_start(load, home):
    """The agreed permissions are unknown then, so no plugin is loaded."""
    (home / "plugins.toml").write_text("[acme-runner]\nversion = 1")
    with pytest.raises(PluginError, match=r"plugins\.toml cannot be read"):
        load()


def test_pins_are_read_back_as_written(home):
    """The file also describes itself to people."""
    write_pins(home, {"acme-runner": AGREED})
    assert read_pins(home) == {"acme-runner": AGREED}
    assert (home / "plugins.toml").read_text().startswith('# Written by "trunkline plugins install"')
