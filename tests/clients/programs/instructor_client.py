"""instructor in its modes for OpenAI."""

from typing import Any, Literal

import instructor
from cases import BLOCK, KEY, REPORT, URL, run
from instructor import Mode
from openai import OpenAI
from pydantic import BaseModel


class Report(BaseModel):
    """What the client wants to know."""

    sea: Literal["calm", "rough"]
    waves: int


def _ask(mode: Mode, program: str) -> Any:
    with OpenAI(base_url=URL, api_key=KEY, max_retries=0) as openai:
        client = instructor.from_openai(openai, mode=mode)
        messages: Any = [{"role": "user", "content": program}]
        made = client.create(model=BLOCK, messages=messages, response_model=Report, max_retries=0)
        return made.model_dump()


def by_tools() -> Any:
    return _ask(Mode.TOOLS, f"call:Report {REPORT}")


def by_strict_tools() -> Any:
    return _ask(Mode.TOOLS_STRICT, f"call:Report {REPORT}")


def by_json_mode() -> Any:
    return _ask(Mode.JSON, f"say:{REPORT}")


def by_schema() -> Any:
    return _ask(Mode.JSON_SCHEMA, f"say:{REPORT}")


def by_tools_of_responses() -> Any:
    return _ask(Mode.RESPONSES_TOOLS, f"call:Report {REPORT}")


def partial() -> Any:
    """The fields appear while the answer is streamed."""
    with OpenAI(base_url=URL, api_key=KEY, max_retries=0) as openai:
        client = instructor.from_openai(openai, mode=Mode.TOOLS)
        messages: Any = [{"role": "user", "content": f"call:PartialReport {REPORT}"}]
        made = list(client.create_partial(model=BLOCK, messages=messages, response_model=Report))
        return made[-1].model_dump()


def several() -> Any:
    """A list of objects, streamed."""
    with OpenAI(base_url=URL, api_key=KEY, max_retries=0) as openai:
        client = instructor.from_openai(openai, mode=Mode.TOOLS)
        program = f'call:IterableReport {{"tasks": [{REPORT}, {{"sea": "rough", "waves": 9}}]}}'
        messages: Any = [{"role": "user", "content": program}]
        made = client.create_iterable(model=BLOCK, messages=messages, response_model=Report)
        return [one.model_dump() for one in made]


run(by_tools, by_strict_tools, by_json_mode, by_schema, by_tools_of_responses, partial, several)
