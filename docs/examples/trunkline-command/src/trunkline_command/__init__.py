"""A model that is a program: the conversation goes to its standard input, and what it prints is the answer."""

from typing import Annotated

import msgspec

import trunkline
from trunkline.api.model import Finish, ModelAdapter, Text, program


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # "readOnly": no client of the gateway may name a program.
    argv: Annotated[tuple[str, ...], msgspec.Meta(extra_json_schema={"readOnly": True})] = ()


class Command(ModelAdapter):
    name = vendor = "command"

    def __init__(self, argv):
        self.argv, self.configured = argv, bool(argv)

    async def stream(self, request):
        conversation = "\n\n".join(f"{message.role}: {message.content}" for message in request.messages)
        async with program(self.argv, conversation) as printed:
            async for text in printed:
                yield Text(text)
        yield Finish()


@trunkline.hookimpl
def trunkline_config():
    return [trunkline.ConfigSection("adapters", "command", Settings)]


@trunkline.hookimpl
def trunkline_models(settings):
    return [Command(settings.section(Settings).argv)]
