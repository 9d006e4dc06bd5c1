"""The vendors and programs whose servers speak OpenAI's protocols, and how each of them differs. Plain data."""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from trunkline.api.model import SpeechFormat

Protocol = Literal["chat", "responses"]

COMMON_PARAMETERS = (
    "reasoning_effort",
    "top_p",
    "seed",
    "stop",
    "frequency_penalty",
    "presence_penalty",
    "parallel_tool_calls",
    "user",
)
SAMPLER_PARAMETERS = ("top_k", "min_p", "repetition_penalty")


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor or program with a server of this protocol.

    ``name`` is the name of the section and of the adapter. ``url`` is the base URL. ``key_variable`` is the usual
    variable of the key, "" for a server that needs none. ``provider`` is OpenTelemetry's name. ``protocol`` is the
    protocol in use unless the section says otherwise.

    ``structured`` and ``reads`` say whether JSON Schemas are enforced and documents are read, ``json_object`` whether
    an answer may be any JSON object. ``embeds`` says whether there are embeddings, ``embedding_model`` is the default
    model for them. ``transcribes`` says whether recordings are transcribed, ``transcription_model`` is the default for
    it, and ``whisper_model`` the model for times and translations. ``speaks`` says whether texts are spoken,
    ``speech_model``, ``voice`` and ``speech_formats`` are the defaults and the formats. ``parameters`` are the names of
    the parameters that the server takes. ``effort`` is the form of ``reasoning_effort``: a field, an object
    ``reasoning``, or a field besides ``thinking``. ``seed`` is the field of the seed. ``replays`` is the field of an
    assistant message in which the vendor requires its reasoning back, "" for none. ``encrypted_models`` are patterns of
    the models whose reasoning arrives encrypted through Responses. ``tool_choice`` is ``full`` with all of OpenAI's
    forms, ``text`` with ``auto``, ``required`` and ``none``, and ``absent`` if the server ignores it. ``call_id_chars``
    is the exact length of an id of a tool call, 0 if any is accepted. ``alternates`` says that messages of one role
    must not follow each other and that one system message is the first message.
    """

    name: str
    title: str
    url: str
    key_variable: str = ""
    provider: str = ""
    protocol: Protocol = "chat"
    structured: bool = False
    json_object: bool = True
    reads: bool = False
    embeds: bool = False
    embedding_model: str = ""
    transcribes: bool = False
    transcription_model: str = ""
    whisper_model: str = ""
    speaks: bool = False
    speech_model: str = ""
    voice: str = ""
    speech_formats: tuple[SpeechFormat, ...] = ("mp3", "opus", "aac", "flac", "wav", "pcm")
    parameters: tuple[str, ...] = COMMON_PARAMETERS
    effort: Literal["field", "object", "thinking"] = "field"
    seed: str = "seed"
    replays: Literal["", "reasoning_content", "reasoning_details"] = ""
    encrypted_models: tuple[str, ...] = ()
    tool_choice: Literal["full", "text", "absent"] = "text"
    call_id_chars: int = 0
    alternates: bool = False

    @property
    def local(self) -> bool:
        """Report whether the server runs on a machine of the owner and needs no key."""
        return not self.key_variable


REASONING_MODELS = ("o[1-9]*", "gpt-5", "gpt-5-[!c]*", "gpt-5-codex*", "gpt-5.*", "gpt-[6-9]*", "codex-*")
"""Patterns of OpenAI's reasoning models. They refuse a temperature, unless they are asked not to reason."""

OPENAI = Vendor(
    name="openai",
    title="OpenAI",
    url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    provider="openai",
    protocol="responses",
    structured=True,
    reads=True,
    embeds=True,
    embedding_model="text-embedding-3-small",
    transcribes=True,
    transcription_model="gpt-transcribe",
    whisper_model="whisper-1",
    speaks=True,
    speech_model="gpt-4o-mini-tts",
    voice="alloy",
    encrypted_models=REASONING_MODELS,
    tool_choice="full",
)

OTHER = Vendor(
    name="openai",
    title="another server",
    url="",
    key_variable="OPENAI_API_KEY",
    provider="openai",
    embeds=True,
    embedding_model="text-embedding-3-small",
    transcribes=True,
    transcription_model="whisper-1",
    whisper_model="whisper-1",
    speaks=True,
    speech_model="tts-1",
    voice="alloy",
    encrypted_models=REASONING_MODELS,
    parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
)
"""A server with an address of its own in ``[adapters.openai]``, of which nothing else is known."""

VENDORS = (
    Vendor(
        name="openrouter",
        title="OpenRouter",
        url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        embeds=True,
        embedding_model="openai/text-embedding-3-small",
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS, "verbosity"),
        effort="object",
        replays="reasoning_details",
    ),
    Vendor(
        name="groq",
        title="Groq",
        url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        provider="groq",
        transcribes=True,
        transcription_model="whisper-large-v3-turbo",
        whisper_model="whisper-large-v3",
        parameters=(*COMMON_PARAMETERS, "service_tier"),
    ),
    Vendor(
        name="mistral",
        title="Mistral",
        url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        provider="mistral_ai",
        structured=True,
        embeds=True,
        embedding_model="mistral-embed",
        transcribes=True,
        transcription_model="voxtral-mini-latest",
        parameters=tuple(name for name in COMMON_PARAMETERS if name != "user"),
        seed="random_seed",
        call_id_chars=9,
    ),
    Vendor(
        name="deepseek",
        title="DeepSeek",
        url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        provider="deepseek",
        parameters=("reasoning_effort", "top_p", "stop", "frequency_penalty", "presence_penalty"),
        effort="thinking",
        replays="reasoning_content",
    ),
    Vendor(
        name="xai",
        title="xAI",
        url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        provider="x_ai",
        structured=True,
        encrypted_models=("grok-*",),
    ),
    Vendor(
        name="together",
        title="Together",
        url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
        embeds=True,
        embedding_model="intfloat/multilingual-e5-large-instruct",
        transcribes=True,
        transcription_model="openai/whisper-large-v3",
        whisper_model="openai/whisper-large-v3",
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
    ),
    Vendor(
        name="fireworks",
        title="Fireworks",
        url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
        structured=True,
        embeds=True,
        embedding_model="nomic-ai/nomic-embed-text-v1.5",
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
    ),
    Vendor(
        name="cerebras",
        title="Cerebras",
        url="https://api.cerebras.ai/v1",
        key_variable="CEREBRAS_API_KEY",
        structured=True,
        parameters=("reasoning_effort", "top_p", "seed", "stop", "parallel_tool_calls", "user"),
    ),
    Vendor(
        name="moonshot",
        title="Moonshot (Kimi)",
        url="https://api.moonshot.ai/v1",
        key_variable="MOONSHOT_API_KEY",
        parameters=("reasoning_effort", "top_p", "stop", "frequency_penalty", "presence_penalty"),
        replays="reasoning_content",
    ),
    Vendor(
        name="vllm",
        title="vLLM",
        url="http://127.0.0.1:8000/v1",
        structured=True,
        embeds=True,
        transcribes=True,
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
        alternates=True,
    ),
    Vendor(
        name="lmstudio",
        title="LM Studio",
        url="http://127.0.0.1:1234/v1",
        structured=True,
        json_object=False,
        embeds=True,
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
        alternates=True,
    ),
    Vendor(
        name="llamacpp",
        title="llama.cpp",
        url="http://127.0.0.1:8080/v1",
        structured=True,
        embeds=True,
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
        alternates=True,
    ),
    Vendor(
        name="ollama-v1",
        title="Ollama, by its /v1",
        url="http://127.0.0.1:11434/v1",
        structured=True,
        embeds=True,
        tool_choice="absent",
    ),
    Vendor(
        name="litellm",
        title="a LiteLLM proxy",
        url="http://127.0.0.1:4000/v1",
        embeds=True,
        transcribes=True,
        speaks=True,
        voice="alloy",
        parameters=(*COMMON_PARAMETERS, *SAMPLER_PARAMETERS),
    ),
    Vendor(
        name="mantle",
        title="Amazon Bedrock's OpenAI-compatible endpoint (Mantle)",
        url="https://bedrock-mantle.us-east-1.api.aws/v1",
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        provider="aws.bedrock",
    ),
)
"""The vendors that have a section of their own. OpenAI's section is ``[adapters.openai]``."""


def vendor_at(url: str) -> Vendor | None:
    """Return the vendor whose public server has this address. The address of a local server says too little."""
    host = urlsplit(url).hostname or ""
    return next(
        (vendor for vendor, known in _public_hosts() if host == known or host.endswith(f".{known}")), None
    )


def _public_hosts() -> Iterator[tuple[Vendor, str]]:
    for vendor in (OPENAI, *VENDORS):
        if not vendor.local:
            yield vendor, urlsplit(vendor.url).hostname or ""
