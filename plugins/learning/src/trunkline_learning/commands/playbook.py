"""``trunkline learning playbook``: the strategies with their counters, and where each was learned."""

import click

from trunkline.api.cli import Command, with_memory


@click.command(
    cls=Command, examples="trunkline learning playbook\ntrunkline learning playbook --section pitfalls"
)
@click.option("--model", help="Only items of this model.")
@click.option("--section", help="Only this section.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str | None, section: str | None, as_json: bool) -> int:
    """Show the strategies, by model and section. The exit status is 1 when there is none."""
    from trunkline.api.cli import print_json, print_text
    from trunkline_learning.inventory import Inventory
    from trunkline_learning.playbook import SECTIONS

    if section is not None and section not in SECTIONS:
        raise click.UsageError(f"There is no section {section!r}. There are: {', '.join(SECTIONS)}.")
    books = with_memory(lambda bus: Inventory(bus).all_playbooks(model))
    found = {
        folder: [one for one in book.values() if section in (None, one.section)]
        for folder, book in books.items()
    }
    if as_json:
        print_json(found)
    elif not any(found.values()):
        click.echo("There is no strategy yet.", err=True)
    for folder, strategies in () if as_json else found.items():
        for name, heading in SECTIONS.items():
            mine = [one for one in strategies if one.section == name]
            if mine:
                click.echo(f"{folder}: {heading}")
            for one in sorted(mine, key=lambda one: (one.harmful - one.helpful, one.id)):
                print_text(f"  {one.id}  helpful {one.helpful}, harmful {one.harmful}  {one.strategy}")
                if one.sources:
                    print_text(f"{'':16}from {one.sources[-1].conversation}, {one.sources[-1].turn}")
    return 0 if any(found.values()) else 1
