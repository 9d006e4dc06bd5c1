"""Real plugins: distributions with a ``dist-info``, and files dropped into a folder."""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

from trunkline.config import Config, load_config
from trunkline.plugins import Plugins, PluginState

Install = Callable[..., str]
_numbers = count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution: its metadata, an entry point, and a module with this source, or with a ``manifest`` a
    package that holds both."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def run(
        dist: str,
        source: str,
        *,
        name: str | None = None,
        module: str | None = None,
        manifest: str | None = None,
    ) -> str:
        module = module or f"plugin_{next(_numbers)}_{dist.replace('-', '_')}"
        if manifest is None:
            (site / f"{module}.py").write_text(dedent(source))
        else:
            (site / module).mkdir()
            (site / module / "__init__.py").write_text(dedent(source))
            (site / module / "trunkline-plugin.toml").write_text(manifest)
        info = site / f"{dist.replace('-', '_')}-1.2.3.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.2.3\n")
        (info / "entry_points.txt").write_text(f"[trunkline]\n{name or dist} = {module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        return module

    return run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def sources(home: Path) -> Path:
    folder = home / "drop-in"
    folder.mkdir()
    return folder


@pytest.fixture
def load(home: Path, sources: Path) -> Callable[..., Plugins]:
    """Loads plugins with a configuration of this text; the drop-in folder is among the sources."""

    def run(
        text: str = "", *, extra: tuple[object, ...] = (), worker: object = None, **environ: str
    ) -> Plugins:
        return Plugins.load(config_of(home, text, environ), worker=worker, extra=extra)  # type: ignore[arg-type]

    return run


def config_of(home: Path, text: str, environ: dict[str, str]) -> Config:
    (home / "trunkline.toml").write_text(f'[runtime]\ntool_sources = ["drop-in"]\n{dedent(text)}')
    return load_config(home, environ=environ)


@pytest.fixture
def state() -> Callable[[Plugins, str], PluginState]:
    """The report's line about a plugin."""

    def find(plugins: Plugins, owner: str) -> PluginState:
        return next(state for state in plugins.report.plugins if state.owner == owner)

    return find
