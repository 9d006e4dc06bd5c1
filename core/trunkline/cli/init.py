"""``trunkline init``: chooses the model and creates the first block, from a dialog at a terminal or from flags."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.cli.model_probe import ModelProbeResult
    from trunkline.config import Config

EXAMPLES = """
trunkline init
trunkline init --yes
trunkline init --yes --adapter openai --key-env OPENAI_API_KEY --test
trunkline init --yes --adapter openai --base-url http://127.0.0.1:11434/v1 --model llama3.2
trunkline init --yes --adapter bedrock --model amazon.nova-pro-v1:0 --set region=eu-central-1 --set profile=work
trunkline init --yes --adapter ollama --model qwen3:8b --set pull=true --test
trunkline init --yes --json
"""


@dataclass(frozen=True, slots=True)
class InitFlags:
    """The values of the options. ``key_env`` is the name of an environment variable, never a key. ``further`` are
    settings of the adapter as ``NAME=VALUE``.
    """

    block: str | None = None
    adapter: str | None = None
    key_env: str | None = None
    base_url: str | None = None
    model: str | None = None
    further: tuple[str, ...] = ()


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--yes", is_flag=True, help="Ask nothing; use the options and the defaults.")
@click.option("--block", help="Name of the first block.  [default: main]")
@click.option("--adapter", help="The model adapter.  [default: auto]")
@click.option("--key-env", help="NAME of the environment variable that holds the provider's key.")
@click.option("--base-url", help="Address of the provider's server, if it is not the vendor's own.")
@click.option("--model", help="Name of the provider's model.")
@click.option(
    "--set", "further", multiple=True, metavar="NAME=VALUE", help="Another setting of the adapter, such as "
    "region=eu-central-1; repeatable.",
)  # fmt: skip
@click.option(
    "--test/--no-test",
    default=None,
    help="Send a test message to the model. Default: yes, except with --yes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; needs --yes.")
def command(yes: bool, test: bool | None, as_json: bool, **options: Any) -> int:
    """Choose a model, and set up the home folder and the first block.

    The command announces that it looks for Ollama, LM Studio and vLLM on this machine, and then does so. It lists all
    installed adapters with what each needs. It saves each answer at once, so Ctrl-C loses nothing and the next
    "trunkline init" continues from there. It never asks for a key and never stores one; it stores the name of the
    environment variable that holds the key.

    At the end it offers to send one test message, and says before what is sent to whom. Budgets hold for the message,
    and "trunkline costs" shows it. On a server where each worker has a NATS user of its own the command cannot ask a
    model, because only a monitor may; then it says how to let the monitor ask. Without a terminal the command asks
    nothing and needs --yes. The exit status is 1 when the model test failed or could not be made.
    """
    from trunkline.cli.init_settings import InitSettings

    if as_json and not yes:
        raise click.UsageError("--json needs --yes, because a script cannot answer questions.")
    if not yes:
        _insist_on_terminal()
    settings = InitSettings()
    _take(settings, InitFlags(**options), yes)
    missing = settings.missing()
    wanted = not yes if test is None else test
    answer = _test(settings.config(), missing, ask=not yes and test is None) if wanted else None
    _report(settings, missing, answer, as_json)
    return 1 if answer and answer.problem else 0


def _insist_on_terminal() -> None:
    import sys

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            "The questions need a terminal. Nothing was changed. Give --yes, and options for values "
            "other than the defaults."
        )


def _take(settings: Any, flags: InitFlags, yes: bool) -> None:
    """Save the flags and the person's answers."""
    from trunkline.cli.init_questions import ask_questions

    settings.require_adapter(flags.adapter)
    if yes:
        settings.save_flags(flags)
        return
    try:
        ask_questions(settings, flags)
    except click.Abort:
        click.echo(
            f'\nStopped. Your answers so far are in {settings.file}; "trunkline init" continues from there.',
            err=True,
        )
        raise


def _test(config: "Config", missing: list[str], *, ask: bool) -> "ModelProbeResult | None":
    """Announce the test message and return the model's answer to it. Return None when there is no model, its key is
    missing, or the person declines. ``ask``: the person was not asked yet.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.confirmation import agrees
    from trunkline.cli.model_probe import (
        ASK_MONITOR,
        ONLY_MONITORS,
        QUESTION,
        answering_model,
        not_permitted,
        probe_model,
    )
    from trunkline.cli.output import fit_text

    if config.settings.runtime.provider_adapter == "offline":
        return None
    if refused := not_permitted(config):
        if not ask:
            return refused
        click.echo(fit_text(f"Not tested: {ONLY_MONITORS}. {ASK_MONITOR}", err=True), err=True)
        return None
    if missing:
        return None
    told = (
        f'Test: one message goes to {answering_model(config)}: "{QUESTION}" It may cost a fraction of a cent.'
    )
    click.echo(fit_text(told, err=True), err=True)
    if ask and not agrees("Send it?"):
        return None
    return run(probe_model, config)


def _report(settings: Any, missing: list[str], answer: "ModelProbeResult | None", as_json: bool) -> None:
    from trunkline.cli.output import fit_text, print_json

    if as_json:
        print_json(settings.report() | {"missing": missing, "answer": answer})
        return
    click.echo(fit_text(settings.summary()))
    for name in missing:
        note = f"The variable {name} is not set here. Set it before you start: export {name}=…"
        click.echo(fit_text(note, err=True), err=True)
    if answer is not None:
        _show(answer)
    click.echo('Next: "trunkline chat". Anything wrong: "trunkline doctor".')


def _show(answer: "ModelProbeResult") -> None:
    from trunkline.cli.output import fit_text, print_text

    if answer.text:
        print_text(fit_text(f"{answer.adapter} answers: {answer.text}"))
        if answer.tokens:
            print_text(f"({answer.tokens})")
    else:
        print_text(fit_text(f"Error: {answer.adapter} did not answer: {answer.problem}.", err=True), err=True)
        hint = 'Change the settings with "trunkline init"; "trunkline doctor --online" tries again.'
        print_text(fit_text(f"Hint: The settings are saved. {answer.hint or hint}", err=True), err=True)
