"""The page of adapters: what each of them can do, and the parameters that each takes."""

from generator.markdown import table
from trunkline.api.model import ModelParameter
from trunkline_anthropic.settings import PARAMETERS as ANTHROPIC
from trunkline_bedrock.settings import PARAMETERS as BEDROCK
from trunkline_gemini.settings import PARAMETERS as GEMINI
from trunkline_ollama.settings import PARAMETERS as OLLAMA
from trunkline_openai.parameters import parameter_table
from trunkline_openai.sagemaker_settings import PARAMETERS as SAGEMAKER
from trunkline_openai.vendors import OPENAI, VENDORS

INTRODUCTION = """
# Adapters

`yes` means that the adapter does it wherever the model can. A test asks a scripted server of each vendor for every cell
of this table (`tests/vendors/test_adapter_matrix.py`). *OpenAI* is OpenAI itself, by Responses; *Chat Completions* are
the servers with that protocol, with the rules of an unknown one. What a vendor with a section of its own has besides is
in [the table of vendors](../how-to/openai-compatible-vendors.md).

An adapter that cannot do what is asked for refuses with the reason; nothing is sent to another vendor instead.
"""

COLUMNS = ("OpenAI", "Chat Completions", "Anthropic", "Bedrock", "Gemini", "Ollama", "SageMaker")

ALL = COLUMNS
_NOT_OLLAMA = tuple(name for name in COLUMNS if name != "Ollama")

MATRIX: dict[str, tuple[str, ...]] = {
    "text as it arrives": ALL,
    "reasoning, if the vendor shows it": ALL,
    "reasoning back to the vendor between tool steps": ("OpenAI", "Anthropic", "Bedrock", "Gemini", "Ollama"),
    "several tool calls in one answer": ALL,
    "arguments that are no JSON kept as text": ("OpenAI", "Chat Completions", "Anthropic", "Bedrock", "SageMaker"),
    "images": ("OpenAI", "Chat Completions", "Anthropic", "Bedrock", "Gemini", "Ollama"),
    "documents": ("OpenAI", "Anthropic", "Bedrock", "Gemini"),
    "tokens of input and answer": ALL,
    "tokens read from the prompt cache": ("OpenAI", "Chat Completions", "Anthropic", "Bedrock", "Gemini", "SageMaker"),
    "marks for the prompt cache": ("Anthropic", "Bedrock"),
    "an answer cut by the limit of tokens told": ALL,
    "an answer stopped by the content filter told": _NOT_OLLAMA,
    "a partial answer continued": ("Anthropic", "Bedrock", "Gemini"),
    "JSON Schema enforced by the vendor": ("OpenAI", "Anthropic", "Gemini", "Ollama"),
    "tokens counted before a request": ("OpenAI", "Anthropic", "Bedrock", "Gemini"),
    "models listed": ALL,
    "`Retry-After` kept": ALL,
    "vectors": ("OpenAI", "Chat Completions", "Bedrock", "Gemini", "Ollama"),
    "recordings transcribed": ("OpenAI", "Chat Completions", "Gemini"),
    "recordings translated": ("OpenAI", "Chat Completions", "Gemini"),
    "texts spoken": ("OpenAI", "Chat Completions", "Gemini"),
}  # fmt: skip
"""What the adapters can do: for each ability the columns that have it."""

PARAMETERS_NOTE = """
## Parameters

`parameters` in an adapter's section sets these for every request. Another one is refused when Trunkline starts, with
the list of those that the model takes.
"""


def page() -> str:
    """The whole page."""
    rows = [
        [ability, *("yes" if column in able else "" for column in COLUMNS)]
        for ability, able in MATRIX.items()
    ]
    return "\n\n".join(
        [
            INTRODUCTION.strip(),
            table(["", *COLUMNS], rows),
            PARAMETERS_NOTE.strip(),
            table(["section", "parameters"], list(_parameters())),
        ]
    )


def _parameters() -> list[list[str]]:
    own = {
        "anthropic": ANTHROPIC,
        "bedrock": BEDROCK,
        "gemini": GEMINI,
        "ollama": OLLAMA,
        "sagemaker": SAGEMAKER,
    }
    others = {vendor.name: parameter_table(vendor, vendor.protocol) for vendor in (OPENAI, *VENDORS)}
    return [[f"`[adapters.{name}]`", _names(found)] for name, found in {**others, **own}.items()]


def _names(parameters: tuple[ModelParameter, ...]) -> str:
    return ", ".join(f"`{one.name}`" for one in parameters)
