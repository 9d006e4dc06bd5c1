"""The content of the wheel."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]

TESTING = {
    "__init__", "adapter_suite", "channel_installation", "channel_runner", "channel_suite", "contexts",
    "contract_suite", "platform", "post_suite", "pytest_plugin", "sandbox_fixture", "sandbox_isolation_suite",
    "sandbox_suite", "script", "scripted_abilities", "scripted_completer", "scripted_fault", "scripted_gateway",
    "scripted_model", "scripted_outgoing_files", "scripted_provider", "scripted_records", "store_suite",
    "tool_calls", "tool_suite", "vendor_apis", "worker_process",
}  # fmt: skip
"""The fixtures and contract suites for authors of plugins, and what those need."""


def test_the_wheel_has_the_packages_and_the_public_test_suites() -> None:
    """Our own test harness, which is ``tests/support``, is not shipped."""
    files = [Path(file.distribution_path) for file in WheelBuilder(str(ROOT)).recurse_included_files()]
    assert {file.parts[0] for file in files} == {"trunkline", "trunkline_bus"}
    testing = [file for file in files if file.parts[:2] == ("trunkline", "testing")]
    assert {file.parts[2].removesuffix(".py") for file in testing} == TESTING
    assert all(file.suffix == ".py" for file in testing)
