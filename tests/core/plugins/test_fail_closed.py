"""Guards fail closed: calls behind a broken guard are refused."""

import pytest

import trunkline
from trunkline.api.bus import Refusal
from trunkline.api.model import ModelError, ModelRequest
from trunkline.api.store import Change

GUARDS = {
    "trunkline_tool_middleware": trunkline.ToolError,
    "trunkline_authenticators": Refusal,
    "trunkline_admission_rules": Refusal,
    "trunkline_memory_rules": Refusal,
    "trunkline_model_middleware": ModelError,
}

BROKEN = {
    "import": "import trunkline\n@trunkline.hookimpl\ndef {hook}():\n    return []\nraise RuntimeError('no device')",
    "syntax": "def {hook}(\n",
    "async": "import trunkline\n@trunkline.hookimpl\nasync def {hook}():\n    return []",
    "hook": "import trunkline\n@trunkline.hookimpl\ndef {hook}():\n    raise RuntimeError('no device')",
    "item": "import trunkline\n@trunkline.hookimpl\ndef {hook}():\n    return [3]",
}


async def ask(hook, guard):
    """Puts a request before the guard, as its worker would."""
    if hook == "trunkline_model_middleware":
        async for _ in guard(ModelRequest(messages=()), None):
            pass
    elif hook == "trunkline_memory_rules":
        guard(Change({}, actor="ada", reason=""))
    elif hook == "trunkline_authenticators":
        await guard({})
    else:
        await guard(None, None)


@pytest.mark.anyio
@pytest.mark.parametrize("hook", GUARDS)
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_guard_refuses(install, load, hook, kind):
    """For any fault in a guard, an object that refuses everything replaces it, and the report names it."""
    install("acme-guard", BROKEN[kind].format(hook=hook))
    plugins = load()
    (broken,) = plugins.broken_guards(hook)
    assert (broken.owner, broken.hook) == ("acme-guard", hook)
    (owned,) = (owned for owned in plugins.collect(hook) if owned.owner == "acme-guard")
    with pytest.raises(GUARDS[hook], match="acme-guard"):
        await ask(hook, owned.item)


def test_a_broken_guard_in_a_package_is_seen(install, load, tmp_path):
    """The guard may be in any module of the package whose import fails."""
    package = tmp_path / "site-packages" / "acme_deep"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError")
    (package / "rules.py").write_text("def trunkline_memory_rules(): ...")
    install("acme-deep", "", module="acme_deep_unused")
    info = tmp_path / "site-packages" / "acme_deep-1.2.3.dist-info" / "entry_points.txt"
    info.write_text("[trunkline]\ndeep = acme_deep.rules\n")
    assert [guard.owner for guard in load().broken_guards("trunkline_memory_rules")] == ["acme-deep"]


def test_a_broken_file_with_a_guard(load, sources):
    """A dropped-in file counts as well."""
    (sources / "rule.py").write_text("import nowhere_at_all\ndef trunkline_admission_rules(): ...")
    assert [guard.owner for guard in load().broken_guards("trunkline_admission_rules")] == ["file:rule"]


def test_hooks_that_only_add_may_fail(install, load):
    """A plugin without guards that fails is missing, and nothing is refused for it."""
    install("acme-tools", "raise RuntimeError\ndef trunkline_tools(): ...")
    assert load().report.broken_guards == ()


def test_a_disabled_guard_is_not_broken(install, load):
    """A disabled guard is the owner's choice."""
    install("acme-guard", BROKEN["import"].format(hook="trunkline_memory_rules"))
    plugins = load('[plugins]\ndisabled = ["acme-guard"]\n')
    assert plugins.broken_guards("trunkline_memory_rules") == ()


def test_guards_of_the_same_name_all_apply(load):
    """A guard is never dropped because another one has its name."""

    class Rule:
        name = "rule"

        async def __call__(self, message, identity):
            return None

    class Plugin:
        @trunkline.hookimpl
        def trunkline_admission_rules(self):
            return [Rule()]

    found = load(extra=(Plugin(), Plugin())).admission_rules()
    assert [owned.owner for owned in found] == ["Plugin", "Plugin-2"]


@pytest.mark.parametrize("answer", ["1 / 0", "7"])
def test_a_broken_bound_stops_the_turn(install, load, answer):
    """A bounding plugin that fails, or returns an invalid answer, does not permit the turn to continue."""
    source = "import trunkline\n@trunkline.hookimpl\ndef trunkline_stop_turn(turn):\n    return " + answer
    install("acme-bound", source)
    assert "acme-bound" in (load().stop_turn(None) or "")
