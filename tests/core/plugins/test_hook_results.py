"""Asking hooks: each implementation apart, items checked, names unique, order known."""

from pathlib import Path

import pytest

import trunkline
from trunkline.api.channel import SentenceCatalogue
from trunkline.api.gateway import HttpRoute, Locale, PasskeyVerifier, PushSender, SendMessage, StaticSite
from trunkline.api.memory import SearchMemory

HEAD = "import trunkline\n"


class BlockingSender(PushSender):
    def public_key(self, secret):
        return b""

    def check(self, target):
        return None

    def send(self, target, notice, secret):
        return "gone"


class NoAlgorithms(PasskeyVerifier):
    """A verifier without the list of what it verifies."""

    def check_registration(self, response, ceremony):
        raise ValueError

    def check_sign_in(self, response, ceremony, known):
        raise ValueError


def plugin(hook, function, **options):
    """An object with one hook."""

    class Plugin:
        pass

    found = Plugin()
    setattr(found, hook, trunkline.hookimpl(**options)(function))
    return found


def tool(name, **more):
    @trunkline.tool(effect="read", name=name, **more)
    def function() -> str:
        """Do nothing."""
        return ""

    return function


def names(plugins):
    return [owned.item.spec.name for owned in plugins.tools() if owned.item.spec.name.startswith("t_")]


def troubles(plugins, hook="trunkline_tools"):
    return [trouble.reason for trouble in plugins.report.troubles if trouble.hook == hook]


def raising(error):
    def trunkline_tools():
        raise error

    return trunkline_tools


@pytest.mark.parametrize("error", [ValueError("odd"), SystemExit(3), RecursionError("deep")])
def test_an_exception_in_a_hook_drops_only_its_items(load, error):
    """The other implementations' items arrive, and the report names plugin, hook and error."""
    plugins = load(
        extra=(
            plugin("trunkline_tools", raising(error)),
            plugin("trunkline_tools", lambda: [tool("t_good")]),
        )
    )
    assert names(plugins) == ["t_good"]
    assert [type(error).__name__ in reason for reason in troubles(plugins)] == [True]
    assert plugins.report.troubles[0].owner == "Plugin"


def test_an_exception_in_the_middle_of_a_generator(load):
    """A hook that fails half-way yields nothing at all: half a plugin is worse than none."""

    def half():
        yield tool("t_first")
        raise ValueError("odd")

    assert names(load(extra=(plugin("trunkline_tools", half),))) == []


def test_hook_results_may_be_a_generator_a_list_or_none(load):
    """Lists, tuples and generators are alike, and None means nothing."""

    def generator():
        yield tool("t_a")

    extra = [
        plugin("trunkline_tools", function) for function in (generator, lambda: (tool("t_b"),), lambda: None)
    ]
    plugins = load(extra=tuple(extra))
    assert names(plugins) == ["t_a", "t_b"]
    assert troubles(plugins) == []


@pytest.mark.parametrize(
    ("hook", "result", "said"),
    [
        ("trunkline_tools", lambda: tool("t_x"), "return a list of Tool objects"),
        ("trunkline_tools", lambda: "t_x", "return a list of Tool objects"),
        ("trunkline_tools", lambda: [print], "is not a trunkline.Tool"),
        ("trunkline_tools", lambda: [trunkline.Tool], "is a class; yield an instance: Tool()"),
        ("trunkline_tools", lambda: iter(int, 1), "more than 10000"),
        ("trunkline_models", lambda: [object()], "is not a trunkline.api.model.ModelAdapter"),
        ("trunkline_context_sources", lambda: [lambda turn: []], "must be `async def __call__`"),
        ("trunkline_messages", lambda: [dict], "is not a subclass of trunkline.api.bus.Payload"),
        ("trunkline_commands", lambda: [print], "is not a click.Command"),
        ("trunkline_http_routes", lambda: [HttpRoute("x", ("GET",), print)], "must begin with /"),
        (
            "trunkline_http_routes",
            lambda: [HttpRoute("/x", ("GET",), print, by_block=True)],
            "{block} in its path",
        ),
        ("trunkline_passkey_verifiers", lambda: [NoAlgorithms()], "has no algorithms"),
        ("trunkline_push_senders", lambda: [BlockingSender()], "must have `async def check`"),
        ("trunkline_static_sites", lambda: [StaticSite(Path("site"))], "must be absolute"),
        ("trunkline_sentences", lambda: [SentenceCatalogue("FR", {})], "has the tag 'FR'"),
        ("trunkline_sentences", lambda: [SentenceCatalogue("fr", {"a.b": 1})], "not a mapping of texts"),
        ("trunkline_locales", lambda: [Locale("FR", "Français", {})], "has the tag 'FR'"),
        ("trunkline_locales", lambda: [Locale("../fr", "Français", {})], "has the tag '../fr'"),
        ("trunkline_locales", lambda: [Locale("fr", "", {})], "has no name"),
        ("trunkline_locales", lambda: [Locale("fr", "Français", {"chat.send": 1})], "not a mapping of texts"),
    ],
)
def test_an_invalid_hook_result_is_refused_with_a_hint(load, hook, result, said):
    """The result of a hook is validated before any use."""
    plugins = load(extra=(plugin(hook, result),))
    assert [owned for owned in plugins.collect(hook) if owned.owner == "Plugin"] == []
    (reason,) = troubles(plugins, hook)
    assert said in reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "a b"}, "has a name with other characters"),
        ({"effect": "delete"}, "has the effect 'delete'"),
        ({"parameters": {"type": "string"}}, "not a JSON schema"),
        ({"timeout": 0.0}, "timeout that is not above 0"),
    ],
)
def test_a_tool_that_cannot_be_called_is_refused(load, changes, said):
    """A tool's spec is checked at the door."""
    import msgspec

    bad = tool("t_bad")
    bad.spec = msgspec.structs.replace(bad.spec, **changes)
    plugins = load(extra=(plugin("trunkline_tools", lambda: [bad]),))
    assert names(plugins) == []
    assert said in troubles(plugins)[0]


def test_the_first_of_two_plugins_keeps_a_name(install, load):
    """Distributions load by name, so the first of the alphabet keeps the name; the report names both owners."""
    source = """
        import trunkline
        @trunkline.tool(effect="read")
        def {name}() -> str:
            "Do nothing."
        @trunkline.tool(effect="read")
        def t_{own}() -> str:
            "Do nothing."
        @trunkline.hookimpl(tryfirst={pushy})
        def trunkline_tools():
            return [{name}, t_{own}]
    """
    install("zeta", source.format(name="t_same", own="zeta", pushy=True))
    install("alpha", source.format(name="t_same", own="alpha", pushy=False))
    plugins = load()
    owners = {
        owned.item.spec.name: owned.owner for owned in plugins.tools() if owned.owner in ("alpha", "zeta")
    }
    assert owners == {"t_same": "alpha", "t_alpha": "alpha", "t_zeta": "zeta"}
    (reason,) = (trouble.reason for trouble in plugins.report.troubles if trouble.owner == "zeta")
    assert "'t_same' of zeta" in reason and "alpha, which keeps it" in reason


@pytest.mark.parametrize("dist", ["aardvark", "trunkline-aardvark"])
def test_a_plugin_cannot_take_a_name_of_the_platform(install, load, dist):
    """The platform's own distributions load first, regardless of the alphabet; a plugin is not the platform's own by
    its name alone."""
    source = """
        import trunkline
        @trunkline.tool(effect="read")
        def read_file() -> str:
            "Read something else."
        @trunkline.hookimpl
        def trunkline_tools():
            return [read_file]
    """
    install(dist, source)
    plugins = load()
    (owner,) = (owned.owner for owned in plugins.tools() if owned.item.spec.name == "read_file")
    assert owner == "trunkline-files"


def test_output_of_a_plugin_at_import_is_suppressed(install, load, capsys):
    """Standard output belongs to the command: a script reads JSON from it."""
    install("chatty", "print('hello from chatty')")
    load()
    printed = capsys.readouterr()
    assert "chatty" not in printed.out and "hello from chatty" in printed.err


def test_a_hook_is_called_once_and_its_objects_are_reused(load):
    """A hook is called once; an adapter's connections are not opened again for each question."""
    asked = []

    def trunkline_tools():
        asked.append(1)
        return [tool("t_a")]

    plugins = load(extra=(plugin("trunkline_tools", trunkline_tools),))
    assert plugins.tools() is plugins.tools()
    assert len(asked) == 1


def test_middleware_respects_tryfirst_and_trylast(load):
    """Implementations marked tryfirst run before all others and those marked trylast after; otherwise in load order."""

    class Layer:
        stage = "policy"

        def __init__(self, name):
            self.name = name

        async def __call__(self, invocation, proceed):
            return await proceed(invocation)

    def layered(name, **options):
        return plugin("trunkline_tool_middleware", lambda: [Layer(name)], **options)

    plugins = load(
        extra=(layered("last", trylast=True), layered("a"), layered("b"), layered("first", tryfirst=True))
    )
    found = [owned.item.name for owned in plugins.tool_middleware() if isinstance(owned.item, Layer)]
    assert found == ["first", "a", "b", "last"]


def test_the_first_answer_decides(load):
    """None passes the question to the next plugin; a failing or ill-typed answer is reported and skipped."""
    message = SendMessage(content="hi")
    plugins = load(
        extra=(
            plugin("trunkline_route", lambda message: None),
            plugin("trunkline_route", lambda message: 1 / 0),
            plugin("trunkline_route", lambda message: 7),
            plugin("trunkline_route", lambda: "garden"),
            plugin("trunkline_route", lambda: "kitchen"),
        )
    )
    assert plugins.route(message) == "garden"
    assert plugins.route(message) == "garden"
    reasons = troubles(plugins, "trunkline_route")
    assert len(reasons) == 2
    assert "ZeroDivisionError" in reasons[0] and "answered with int" in reasons[1]


def test_ranking_cannot_invent_hits(load):
    """A ranker may reorder and drop hits, and nothing else."""
    hit = trunkline.MemoryHit(path="a.md", line=1, content="x", context="x", score=1.0)
    other = trunkline.MemoryHit(path="b.md", line=1, content="x", context="x", score=0.5)
    query = SearchMemory(query="x")
    inventing = load(extra=(plugin("trunkline_rank", lambda query, hits: [other]),))
    assert inventing.rank(query, [hit]) == [hit]
    reversing = load(extra=(plugin("trunkline_rank", lambda query, hits: hits[::-1]),))
    assert reversing.rank(query, [hit, other]) == [other, hit]


def test_a_plugin_reads_its_own_section(install, load):
    """``settings.section`` gives the declared section, [plugins.<entry point>] otherwise, and the platform's own."""
    install(
        "acme-weather",
        """
        import msgspec
        import trunkline
        from trunkline.api.hooks import ToolsSettings

        class Weather(msgspec.Struct, frozen=True):
            city: str = "Lisbon"

        class Other(msgspec.Struct, frozen=True):
            n: int = 0

        @trunkline.hookimpl
        def trunkline_config():
            return [trunkline.ConfigSection("channels", "sky", Weather)]

        @trunkline.hookimpl
        def trunkline_health_checks(settings):
            city = settings.section(Weather).city
            seconds = settings.section(ToolsSettings).timeout
            n = settings.section(Other).n
            yield trunkline.HealthCheck(f"{city}.{seconds}.{n}.{settings.home.name}", None)
        """,
        name="weather",
    )
    plugins = load('[channels.sky]\ncity = "Faro"\n[tools]\ntimeout = 7\n[plugins.weather]\nn = 3\n')
    assert [owned.item.id for owned in plugins.health_checks() if owned.owner == "acme-weather"] == [
        "Faro.7.0.3.home"
    ]
    assert [str(problem) for problem in plugins.config_problems()] == []


def test_an_invalid_section_affects_only_its_plugin(install, load):
    """A plugin whose section is wrong yields nothing, and the reason names the key, file and line."""
    install(
        "acme-weather",
        """
        import msgspec
        import trunkline

        class Weather(msgspec.Struct, frozen=True):
            city: str = "Lisbon"

        @trunkline.hookimpl
        def trunkline_config():
            return [trunkline.ConfigSection("plugins", "weather", Weather)]

        @trunkline.hookimpl
        def trunkline_health_checks(settings):
            settings.section(Weather)
            return []
        """,
    )
    plugins = load("[plugins.weather]\ncity = 3\n")
    plugins.health_checks()
    (reason,) = troubles(plugins, "trunkline_health_checks")
    assert "plugins.weather.city must be text" in reason and "line 4" in reason
    assert any("plugins.weather.city must be text" in str(problem) for problem in plugins.config_problems())
