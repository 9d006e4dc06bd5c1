"""``trunkline learning profile``: how you work, as far as it was seen."""

import click

from trunkline.api.cli import Command, with_memory


@click.command(cls=Command, examples="trunkline learning profile\ntrunkline learning profile --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Show the profile, and the part of it that models receive. The exit status is 1 when there is none."""
    from trunkline.api.cli import print_json
    from trunkline_learning import files
    from trunkline_learning.profile import SHOWN_AFTER, Profile, describe_profile
    from trunkline_learning.store import LearningStore

    text = with_memory(lambda bus: LearningStore(bus).text(files.PROFILE))
    profile = files.decode(text, Profile) if text is not None else None
    if profile is None:
        click.echo(
            "There is no profile yet." if text is None else f"{files.PROFILE} cannot be read.", err=True
        )
        return 1
    if as_json:
        print_json(profile)
        return 0
    for name in ("verbosity", "directness", "technical_level", "abstraction"):
        click.echo(f"{name:<16} {getattr(profile, name):.2f}")
    click.echo(
        f"{'fields':<16} {', '.join(f'{one.name} {one.score:.2f}' for one in profile.top_domains) or '-'}"
    )
    click.echo(f"{'messages':<16} {profile.interaction_count}")
    description = describe_profile(profile)
    click.echo(description or f"Models receive it after {SHOWN_AFTER} messages, as far as it stands out.")
    return 0
