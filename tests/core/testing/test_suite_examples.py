"""The example in the docstring of each contract suite is a test module that passes."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

from trunkline import testing

DOORBELL = """
from pathlib import Path
from tempfile import mkdtemp

import anyio

from trunkline.api.channel import Letter, LetterChannel


class Doorbell(LetterChannel):
    name = "doorbell"
    shows = "Plain text."

    def __init__(self):
        super().__init__(notes=Path(mkdtemp()) / "conversations.json")
        self.waiting, self.answers = [], {}

    @property
    def display(self):
        return "\\n".join(self.answers.values())

    async def press(self, text):
        self.waiting.append(Letter(str(len(self.waiting)), text, origin=None))

    async def letters(self):
        while True:
            for letter in self.waiting:
                yield letter
            await anyio.sleep(0.05)

    async def show(self, letter, text, *, done):
        self.answers[letter.id] = text

    async def tell_owner(self, text):
        self.answers[text] = text
"""

BELL = """
from trunkline.api.channel import PostService


class BellServer:
    def __init__(self):
        self.posts = []

    def shown(self, place):
        return [content for where, content in self.posts if where == place]


class BellPosts(PostService):
    def __init__(self, bell):
        self.bell = bell

    def mark(self, place):
        return str(len(self.bell.shown(place)))

    async def post(self, place, content, delivery):
        self.bell.posts.append((place, content))
        return self.mark(place)

    async def find(self, place, post, delivery):
        return self.mark(place) if self.mark(place) != post.mark else None
"""

GIVEN = {
    "adapter": (
        "import os\n"
        "from trunkline import Secret\n"
        "from trunkline_openai.adapter import OpenAIAdapter\nfrom trunkline_openai.settings import OpenAISettings\n"
        "def MyAdapter(base_url, key):\n"
        "    os.environ['EXAMPLE_KEY'] = key\n"
        "    secret = Secret(env='EXAMPLE_KEY')\n"
        "    return OpenAIAdapter(OpenAISettings(base_url=base_url, api_key=secret, api='chat'))\n"
    ),
    "channel": DOORBELL,
    "post": BELL,
    "sandbox": (
        "from trunkline_sandbox.bubblewrap.backend import Bubblewrap\n"
        "from trunkline_sandbox.settings import SandboxSettings\n"
        "def MySandbox(home): return Bubblewrap(SandboxSettings(), home)\n"
    ),
    "store": "from trunkline_onefile import OneFile as MyStore\n",
    "tool": "from trunkline_dice import roll_dice as roll\n",
}
"""What an example leaves to its reader: the thing that is tested."""

CHOSEN = {"sandbox": "output_and_exit_code"}
"""A suite that takes long has one test run: its own backends run it whole."""


def suites() -> list[str]:
    folder = Path(str(testing.__file__)).parent
    return sorted(file.stem.removesuffix("_suite") for file in folder.glob("*_suite.py"))


@pytest.mark.parametrize("kind", [kind for kind in suites() if kind in GIVEN])
def test_the_example_of_a_suite_passes(kind: str, tmp_path: Path) -> None:
    """The example is a complete module, after the definitions that its reader provides."""
    text = inspect.getdoc(import_module(f"trunkline.testing.{kind}_suite")) or ""
    (example,) = re.findall(r"::\n\n((?:    .*\n|\n)+)", f"{text}\n")
    file = tmp_path / "test_example.py"
    file.write_text(f"{GIVEN[kind]}\n{dedent(example)}")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            CHOSEN.get(kind, "test"),
            file,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b[1-9]\d* passed", done.stdout)


def test_every_suite_has_an_example() -> None:
    """Suites without an example are parts of another: the base of all, and the half of the sandbox's."""
    assert set(suites()) - set(GIVEN) == {"contract", "sandbox_isolation"}
