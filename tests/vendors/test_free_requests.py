"""Commands that look at vendors ask for what is free: lists of models, never an answer, vectors or audio."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from trunkline.testing.platform import clean_environ
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY


@dataclass(frozen=True)
class Vendor:
    """An adapter with its settings, and the requests of a list of its models. ``{at}`` is the vendor's address."""

    adapter: str
    settings: Mapping[str, str]
    requests: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


AWS = {"endpoint_url": "{at}", "region": "us-east-1", "model": "m"}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
VENDORS = (
    Vendor("openai", {"base_url": "{at}/v1"}, ("GET /v1/models",), {"OPENAI_API_KEY": "sk-test"}),
    Vendor("anthropic", {"base_url": "{at}"}, ("GET /v1/models",), {"ANTHROPIC_API_KEY": "sk-test"}),
    Vendor("gemini", {"base_url": "{at}"}, ("GET /v1beta/models",), {"GEMINI_API_KEY": "sk-test"}),
    Vendor("ollama", {"base_url": "{at}", "model": "m"}, ("GET /api/tags", "POST /api/show")),
    Vendor("bedrock", AWS, ("GET /foundation-models", "GET /inference-profiles"), CREDENTIALS),
    Vendor("sagemaker", AWS, ("POST / SageMaker.ListEndpoints",), CREDENTIALS),
)


ATTEMPTS = 4
"""How often a command may be too late."""


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.adapter)
def test_models_and_doctor_ask_for_lists_only(vendor: Vendor, tmp_path: Path) -> None:
    """In a home without anything else, ``models --refresh`` and ``doctor --online`` send the requests of the list, and
    no other. None is billed."""
    with ScriptedProvider() as provider:
        for command, ended in ((("models", "--refresh"), is_listed), (("doctor", "--online"), is_reachable)):
            for _ in range(ATTEMPTS):
                found = run(vendor, provider, tmp_path, *command, "--json")
                if ended(found, vendor.adapter):
                    break
            else:
                raise AssertionError(found)
            assert {*sent(provider)} == {*vendor.requests}, command
            assert {one.billed for one in provider.requests} == {(0, 0)}
            provider.forget()


def is_listed(found: dict[str, Any], adapter: str) -> bool:
    """Report whether the list was had. A busy machine may need longer to import an SDK than a list may take."""
    return any(one["adapter"] == adapter and not one["problem"] for one in found["adapters"])


def is_reachable(found: dict[str, Any], adapter: str) -> bool:
    """Report whether the vendor answered in time."""
    return any((one["id"], one["status"]) == ("adapter.reachable", "ok") for one in found["checks"])


def sent(provider: ScriptedProvider) -> list[str]:
    """Return the requests: method, path, and the operation of AWS's JSON protocol."""
    asked = ((one.method, one.path, one.headers.get("x-amz-target", "")) for one in provider.requests)
    return [" ".join(filter(None, parts)) for parts in asked]


def run(vendor: Vendor, provider: ScriptedProvider, folder: Path, *words: str) -> dict[str, Any]:
    """Return what a command prints as JSON."""
    settings = {
        f"TRUNKLINE_ADAPTERS__{vendor.adapter}__{name}".upper(): value.format(at=provider.address)
        for name, value in vendor.settings.items()
    }
    environ = {
        **clean_environ(), **vendor.environ, **settings, "TRUNKLINE_HOME": str(folder / "home"),
        "TRUNKLINE_RUNTIME__PROVIDER_ADAPTER": vendor.adapter, "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"), "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    command = [sys.executable, "-m", "trunkline.cli.main", *words]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, timeout=60, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)
