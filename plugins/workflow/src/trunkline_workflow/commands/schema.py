"""``trunkline workflows schema``: the JSON schema of workflows."""

import click

from trunkline.api.cli import Command


@click.command(cls=Command, examples="trunkline workflows schema > workflow.schema.json")
def command() -> None:
    """Print the JSON schema of workflows. An editor that knows it completes fields and marks mistakes."""
    from trunkline.api.cli import print_json
    from trunkline_workflow.json_schema import json_schema

    print_json(json_schema())
