"""``trunkline init`` at a real terminal: it looks, asks, saves each answer at once, and shows the first answer."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.tmux import MISSING, Tmux
from trunkline.config import load_config
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """Run a server with OpenAI's protocol, on loopback."""
    with ScriptedProvider() as found:
        yield found


@contextmanager
def init(environ: dict[str, str], provider: ScriptedProvider, *flags: str) -> Iterator[Tmux]:
    """The command at a terminal, on a machine whose Ollama is the provider."""
    variables = {**environ, "OLLAMA_HOST": urlsplit(provider.url).netloc}
    words = [sys.executable, "-m", "trunkline.cli.main", "init", *flags]
    assigned = [f"{name}={value}" for name, value in variables.items()]
    with Tmux(shlex.join(["env", "-i", *assigned, *words]), columns=140, rows=50) as terminal:
        yield terminal


def number_of(terminal: Tmux, label: str) -> str:
    """The number before a choice."""
    return next(line for line in terminal.screen().splitlines() if label in line).split()[0]


def test_a_server_that_responds_is_offered_with_its_first_answer(
    environ: dict[str, str], home: Path, provider: ScriptedProvider
) -> None:
    """Each probe is announced first. Enter accepts the server that was found, and its first model. The test message is
    announced with its text and its receiver, and is sent once."""
    with init(environ, provider) as terminal:
        terminal.wait_shows("Who should answer?")
        terminal.wait_shows("Number [1]")
        shown = terminal.screen()
        assert shown.index("Looking for model servers on this machine: Ollama") < shown.index("Who should")
        assert f"Ollama at {provider.address} (1 model)" in shown
        assert (
            "Anthropic (Claude) (its key is read from a variable; ANTHROPIC_API_KEY is not set here)" in shown
        )
        assert "Amazon Bedrock (the credentials of AWS, no key)" in shown and "groq" in shown
        terminal.type(number_of(terminal, "Ollama at"))
        terminal.wait_shows("Model (number or name)")
        terminal.type("")
        terminal.wait_shows("Name of the first block")
        terminal.type("garden")
        terminal.wait_shows("Send it? [Y/n]")
        told = " ".join(terminal.screen().split())
        assert (
            f'Test: one message goes to ollama/scripted at {provider.address}: "Say hello in one short'
            in told
        )
        assert "It may cost" in told and not provider.answer_requests
        terminal.type("")
        terminal.wait_shows("ollama answers: ")
        terminal.wait_shows("left with 0")
    settings = load_config(home, environ={}).settings
    assert (settings.runtime.provider_adapter, settings.gateway.default_block) == ("ollama", "garden")
    assert [request.path for request in provider.requests].count("/api/chat") == 1


def test_a_model_that_the_server_lacks_can_be_pulled_later(
    environ: dict[str, str], home: Path, provider: ScriptedProvider
) -> None:
    """The person is told that it may be large. Ctrl-C at the announcement of the test sends and loses nothing."""
    with init(environ, provider) as terminal:
        terminal.wait_shows("Number [1]")
        terminal.type(number_of(terminal, "Ollama at"))
        terminal.wait_shows("Model (number or name)")
        terminal.type("qwen3:8b")
        terminal.wait_shows("Pull it when it is first used?")
        terminal.type("y")
        terminal.wait_shows("Name of the first block")
        terminal.type("")
        terminal.wait_shows("Send it? [Y/n]")
        terminal.keys("C-c")
        terminal.wait_shows("left with 130")
        assert "Traceback" not in terminal.screen(history=True)
    text = (home / "trunkline.toml").read_text()
    assert 'model = "qwen3:8b"' in text and "pull = true" in text and not provider.answer_requests


def test_bedrock_asks_for_the_profile_and_the_region(
    environ: dict[str, str], home: Path, provider: ScriptedProvider
) -> None:
    """No key is asked for; what the environment has is named."""
    with init({**environ, "AWS_REGION": "us-west-2"}, provider) as terminal:
        terminal.wait_shows("Number [1]")
        terminal.type(number_of(terminal, "Amazon Bedrock"))
        terminal.wait_shows("AWS profile (empty: the standard credential chain)")
        terminal.type("work")
        terminal.wait_shows("AWS region (Enter: AWS_REGION is us-west-2)")
        terminal.type("eu-central-1")
        terminal.wait_shows("Model (")
        terminal.keys("C-c")
        terminal.wait_shows("left with 130")
    text = (home / "trunkline.toml").read_text()
    assert (
        'profile = "work"' in text
        and 'region = "eu-central-1"' in text
        and "api_key" not in text.split("[")[-1]
    )


def test_init_asks_for_an_address_and_keeps_answers_after_ctrl_c(
    environ: dict[str, str], home: Path, provider: ScriptedProvider
) -> None:
    """The address and the variable are kept when the person leaves at a later question, and the next run offers them.
    A key in the place of a name is refused and asked for again."""
    with init(environ, provider) as terminal:
        terminal.wait_shows("Number [1]")
        terminal.type(number_of(terminal, "another server"))
        terminal.wait_shows("Its address")
        terminal.type("127.0.0.1:9")
        terminal.wait_shows("That is not a URL")
        terminal.type(provider.url)
        terminal.wait_shows("Environment variable that holds the key")
        terminal.type("sk-not-a-name")
        terminal.wait_shows("not the name of an environment variable")
        terminal.type("GARDEN_KEY")
        terminal.wait_shows("Model (")
        terminal.keys("C-c")
        terminal.wait_shows("Your answers so far are in")
        terminal.wait_shows("left with 130")
        assert "Traceback" not in terminal.screen(history=True)
    text = (home / "trunkline.toml").read_text()
    assert provider.url in text and 'env = "GARDEN_KEY"' in text and "sk-not" not in text
    with init({**environ, "GARDEN_KEY": "x"}, provider) as terminal:
        terminal.wait_shows("Number [1]")
        assert f"1  as it is: openai at {provider.url}" in terminal.screen()
        terminal.type("")
        terminal.wait_shows("[GARDEN_KEY]")
        terminal.type("")
        terminal.wait_shows("Model (number or name)")
        terminal.type("")
        terminal.wait_shows("Name of the first block")
        terminal.type("")
        terminal.wait_shows("Send it?")
        terminal.type("n")
        terminal.wait_shows("left with 0")


def test_enter_selects_an_available_model(environ: dict[str, str], home: Path) -> None:
    """Without a server and without a key that is the offline adapter; lines fit the terminal."""
    nobody = {**environ, "OLLAMA_HOST": "127.0.0.1:9"}
    words = ["env", "-i", *(f"{name}={value}" for name, value in nobody.items())]
    command = shlex.join([*words, sys.executable, "-m", "trunkline.cli.main", "init"])
    with Tmux(command, columns=60, rows=40) as terminal:
        terminal.wait_shows("Number [")
        shown = terminal.screen()
        assert f"Number [{number_of(terminal, 'no model yet')}]" in shown
        assert "quotes\n" in shown or "quotes what\n" in shown, shown
        terminal.type("")
        terminal.wait_shows("Name of the first block")
        terminal.type("")
        terminal.wait_shows("left with 0")
    assert load_config(home, environ={}).settings.runtime.provider_adapter == "offline"


def test_a_key_that_is_not_set_is_named_and_nothing_is_lost(
    environ: dict[str, str], home: Path, provider: ScriptedProvider
) -> None:
    """OpenAI itself, without the variable: no question goes out, the variable is named, the settings are there."""
    with init(environ, provider) as terminal:
        terminal.wait_shows("Number [1]")
        terminal.type(number_of(terminal, "OpenAI (its key"))
        terminal.wait_shows("Environment variable that holds the key")
        terminal.type("")
        terminal.wait_shows("Model (")
        terminal.type("")
        terminal.wait_shows("Name of the first block")
        terminal.type("")
        terminal.wait_shows("The variable OPENAI_API_KEY is not set here.")
        terminal.wait_shows("left with 0")
    assert load_config(home, environ={}).settings.runtime.provider_adapter == "openai"
    assert 'env = "OPENAI_API_KEY"' in (home / "trunkline.toml").read_text()
