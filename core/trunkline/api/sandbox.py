"""Sandboxes: backends, and the programs that they run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.sandbox.detached_program import DetachedProgram as DetachedProgram
    from trunkline.contracts.sandbox.detached_program import ExitRecord as ExitRecord
    from trunkline.contracts.sandbox.detached_program import ProgramSpec as ProgramSpec
    from trunkline.contracts.sandbox.detached_program import list_programs as list_programs
    from trunkline.contracts.sandbox.detached_program import programs_folder as programs_folder
    from trunkline.contracts.sandbox.program_request import DEFAULT_LIMITS as DEFAULT_LIMITS
    from trunkline.contracts.sandbox.program_request import WORKSPACE as WORKSPACE
    from trunkline.contracts.sandbox.program_request import ProgramRequest as ProgramRequest
    from trunkline.contracts.sandbox.program_request import check_program as check_program
    from trunkline.contracts.sandbox.report import describe_run as describe_run
    from trunkline.contracts.sandbox.sandbox import NoSandbox as NoSandbox
    from trunkline.contracts.sandbox.sandbox import SandboxProcess as SandboxProcess
    from trunkline.contracts.sandbox.sandbox import SandboxResult as SandboxResult
    from trunkline.home.kill_switch import KillSwitch as KillSwitch
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
