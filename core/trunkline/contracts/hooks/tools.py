"""The tools worker's hooks: tools, their sources and middleware, sandboxes and document readers."""

# A specification has no body.
# pyright: reportReturnType=false

# mypy: disable-error-code="empty-body"
# A specification is never called: pluggy reads its name and arguments, people read its docstring.

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trunkline.contracts.hooks.markers import hookspec

if TYPE_CHECKING:
    from trunkline.contracts.documents.reader import Reader
    from trunkline.contracts.plugins.extensions import PluginSettings
    from trunkline.contracts.sandbox.sandbox import Sandbox
    from trunkline.contracts.tools.tool import Tool, ToolMiddleware, ToolSource


@hookspec
def trunkline_tools(settings: "PluginSettings") -> "Iterable[Tool]":
    """Add tools. The signature is the schema, the docstring the description.

    ```python
    import random
    import trunkline

    @trunkline.tool(effect="read")
    def roll(sides: int = 6) -> str:
        \"\"\"Roll a die.\"\"\"
        return str(random.randint(1, sides))

    @trunkline.hookimpl
    def trunkline_tools():
        return [roll]
    ```

    A tool can have aliases, for models that know it by another name. Put ``@roll.alias`` above a function with
    the alias's name and parameters; it returns a ``CanonicalCall``, the call that the alias stands for. An alias
    that may stand for calls of several tools is declared at each of these tools. Aliases are not sent to models, and
    every rule for the tool applies to calls by its aliases.
    """


@hookspec
def trunkline_tool_sources(settings: "PluginSettings") -> "Iterable[ToolSource]":
    """Add sources of tools that appear and disappear while the tools worker runs.

    ```python
    import anyio
    import trunkline
    from trunkline.api.tool import SourcedTool, ToolSource

    @trunkline.tool(effect="read")
    def tide() -> str:
        \"\"\"Tell the tide.\"\"\"
        return "high"

    class Harbour(ToolSource):
        name = "harbour"

        async def run(self, context):
            here = SourcedTool(tide, source="harbour:north")
            context.publish([here])
            await anyio.sleep_forever()

    @trunkline.hookimpl
    def trunkline_tool_sources():
        return [Harbour()]
    ```
    """


@hookspec
def trunkline_tool_middleware(settings: "PluginSettings") -> "Iterable[ToolMiddleware]":
    """Add middleware that wraps every tool call, at one stage of the dispatch. A guard.

    ```python
    import trunkline

    class NightRest:
        stage = "policy"

        async def __call__(self, invocation, proceed):
            if invocation.spec.effect == "exec":
                text = "Programs may not run at night. Ask again in the morning."
                raise trunkline.ToolError(text, kind="permission_denied")
            return await proceed(invocation)

    @trunkline.hookimpl
    def trunkline_tool_middleware():
        return [NightRest()]
    ```
    """


@hookspec
def trunkline_sandboxes(settings: "PluginSettings") -> "Iterable[Sandbox]":
    """Add sandbox backends, in which programs run isolated by the operating system.

    ```python
    import trunkline

    class Nowhere(trunkline.Sandbox):
        name = "nowhere"

        async def unavailable(self):
            return "Nothing can run here. Install bubblewrap."

        async def start_program(self, request):
            raise trunkline.ToolError("Nothing can run here.", kind="unsupported")

    @trunkline.hookimpl
    def trunkline_sandboxes():
        return [Nowhere()]
    ```
    """


@hookspec
def trunkline_readers(settings: "PluginSettings") -> "Iterable[Reader]":
    """Add formats of documents that ``trunkline memory add``, watched folders and the document tools can read.

    A reader runs in a separate process, with limits on memory and time.

    ```python
    import trunkline
    from trunkline.api.documents import Document, Reader, Section

    class Subtitles(Reader):
        name = "subtitles"
        suffixes = (".srt",)

        def read(self, file, name):
            said = [line for line in file.read().decode().splitlines() if line[:1].isalpha()]
            return Document(sections=(Section(text=" ".join(said)),))

    @trunkline.hookimpl
    def trunkline_readers():
        return [Subtitles()]
    ```
    """
