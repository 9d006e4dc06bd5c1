"""The isolation part of the sandbox contract: the files, processes and devices that no program can read, write or
see.
"""

import os
from pathlib import Path

import pytest

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.errors import ToolError
from trunkline.testing.sandbox_fixture import SECRET, SandboxFixture

PROTECTED = (".env", "auth.json", "deep/down/id_rsa", ".ssh/config", "my.env", ".aws/credentials", ".ENV")

WITH_PASSWORD = (
    f'[remote "origin"]\n\turl = https://{SECRET}@example.org/x',
    f'[remote "origin"]\n\turl = https://name:{SECRET}@example.org/x',
    f'[remote "origin"]\n\tpushurl = "ftp://name:{SECRET}@example.org/x"',
    f'[remote "origin"] url = https://{SECRET}@example.org/x',
    f'[remote "origin"]\n\tproxy = http://name:{SECRET}@example.org:3128',
    f'[submodule "x"]\n\tURL=HTTPS://{SECRET}@EXAMPLE.org/x',
    f'[url "https://name:{SECRET}@example.org/"]\n\tinsteadOf = https://example.org/',
    f'[http "https://example.org/"]\n\textraheader = AUTHORIZATION: basic {SECRET}',
    f'[credential]\n\thelper = "!f() {{ echo password={SECRET}; }}; f"',
)
"""Settings of git that contain a password, a token or an HTTP header for a server."""

KERNEL_CALLS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
for name, *numbers in (("unshare", 272, 0x10000000), ("mount", 165, 0, 0, 0, 0, 0), ("ptrace", 101, 16, 1, 0, 0),
                       ("keyctl", 250, 0, -3), ("bpf", 321, 0, 0, 0), ("perf_event_open", 298, 0, 0, -1, -1, 0),
                       ("io_uring_setup", 425, 1, 0), ("setns", 308, 0, 0), ("userfaultfd", 323, 0),
                       ("clone", 56, 0x10000000 | 17, 0, 0, 0, 0), ("open_by_handle_at", 304, 0, 0, 0)):
    if libc.syscall(*numbers) != -1:
        print("allowed:", name)
for family in (40, 38, 17):
    try:
        socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM)
        print("allowed: socket", family)
    except OSError:
        pass
print("done")
"""
"""Tries the forbidden system calls, by their numbers on x86_64, and prints those that succeed."""


class SandboxIsolationSuite(SandboxFixture):
    """The isolation part of ``SandboxSuite``."""

    # Files --------------------------------------------------------------------------------------------------------

    @pytest.mark.anyio
    async def test_cc_t11_only_the_workspace_can_be_written(self, workspace: Path) -> None:
        """Files written to the workspace stay. Everything else is read-only or disappears with the program."""
        places = "/ /usr /usr/bin /etc /bin /proc /proc/sys/kernel /sys /home /root /opt /var /run"
        tried = f"for at in {places}; do (: > $at/planted) 2>/dev/null && echo $at; done; :"
        assert (await self.shell(workspace, tried)).stdout == b""
        await self.the_machine_cannot_be_changed(workspace)
        ran = await self.shell(
            workspace, "echo kept > /workspace/file; echo lost > /tmp/planted; : > /dev/shm/planted; cat file"
        )
        assert ran.stdout == b"kept\n"
        assert (workspace / "file").read_text() == "kept\n"
        assert (
            await self.shell(workspace, "cat /tmp/planted /dev/shm/planted || echo gone")
        ).stdout == b"gone\n"

    async def the_machine_cannot_be_changed(self, workspace: Path) -> None:
        """Check that even root cannot open the kernel's settings for writing. The check writes nothing."""
        files = "sys/kernel/core_pattern sys/vm/drop_caches sysrq-trigger sys/kernel/modprobe sys/net/ipv4/ip_forward"
        tried = f"for at in {files}; do (: >> /proc/$at) 2>/dev/null && echo $at; done; :"
        assert (await self.shell(workspace, tried)).stdout == b""

    @pytest.mark.anyio
    async def test_protected_names_hold_nothing(self, workspace: Path) -> None:
        """Protected files (MB-T7) can be neither read nor changed, under any path."""
        for name in PROTECTED:
            file = workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(SECRET)
        attempts = (
            "cat .env; cat .e''nv; cat .en*; cat *.env; cat deep/*/*; cat .ssh/* .aws/*; grep -r secret . ; "
        )
        attempts += "cp -r . /tmp/all; cat /tmp/all/.env; "
        attempts += "ln .env x; cat x; mv .env y; cat y; echo no > .env; rm -f .env"
        ran = await self.shell(workspace, attempts)
        assert SECRET.encode() not in ran.stdout
        for name in PROTECTED:
            assert (workspace / name).read_text() == SECRET

    @pytest.mark.anyio
    async def test_mn_t6_no_program_changes_a_bare_repository(self, workspace: Path) -> None:
        """No program can change a bare repository by any path, except a program that was started for exactly this
        repository (MN-T6).
        """
        remotes = [workspace / name for name in ("remote", "deep/er/remote.git", "other")]
        for remote in remotes:
            bare_repository(remote)
            (remote / "deep").mkdir()
            (remote / "deep/id_rsa").write_text("kept")
        before = {remote: _content(remote) for remote in remotes}
        (workspace / "link").symlink_to("remote")
        attempts = """
            for at in remote link deep/er/remote.git deep/../remote /proc/self/cwd/remote /proc/1/root/workspace/other
            do
                echo x > $at/refs/heads/main; echo x >> $at/config; rm -f $at/HEAD; ln $at/refs/heads/main kept
                mv $at/refs $at/x; touch $at/packed-refs; mkdir $at/hooks; chmod 777 $at/refs/heads/main; rm -rf $at/*
                echo x > $at/deep/new; ln -sfn /etc $at/refs/heads; mount -o remount,rw $at; umount $at
            done
            mv remote gone; mv deep gone; mv deep/er gone; rm -rf deep remote other; rmdir other
            test -e kept && echo linked; cat remote/refs/heads/main; echo made > new; cat new
        """
        ran = await self.shell(workspace, attempts)
        assert ran.stdout == b"0123\nmade\n"
        assert {remote: _content(remote) for remote in remotes} == before
        pushes = SandboxLimits(repository="deep/er/remote.git")
        await self.shell(
            workspace,
            "for at in remote deep/er/remote.git other; do echo 45 > $at/refs/heads/main; done",
            limits=pushes,
        )
        assert [(remote / "refs/heads/main").read_text() for remote in remotes] == [
            "0123\n",
            "45\n",
            "0123\n",
        ]
        ran = await self.shell(
            workspace,
            "mkdir -p new.git/objects new.git/refs; cp remote/HEAD remote/config new.git; ls new.git",
        )
        assert ran.stdout == b"HEAD\nconfig\nobjects\nrefs\n"

    @pytest.mark.anyio
    async def test_settings_of_git_with_a_password_hold_nothing(self, workspace: Path) -> None:
        """Settings of git that contain credentials are empty in the sandbox; other files with the same name are
        unchanged."""
        for number, line in enumerate(WITH_PASSWORD):
            for file in (workspace / f"{number}/.git/config", workspace / f"{number}/.git/modules/x/config"):
                file.parent.mkdir(parents=True)
                file.write_text(f"[core]\n\tbare = false\n{line}\n[user]\n\tname = x\n")
        (workspace / ".gitconfig").write_text(f"[http]\n{WITH_PASSWORD[0]}\n")
        for name in (".git-credentials", ".netrc"):
            (workspace / name).write_text(f"https://x:{SECRET}@example.org")
        for name, text in (
            ("plain", '[remote "origin"]\n\turl = https://somebody@example.org/x'),
            ("app", f"url = {SECRET}"),
        ):
            (workspace / name).mkdir()
            (workspace / name / "config").write_text(text)
        ran = await self.shell(
            workspace,
            "cat .g* .n* */.git/config */.git/modules/*/config; mv 0/.git/config y; cat y; mv 0 z; cat z/.git/config; "
            "cat plain/config",
        )
        assert SECRET.encode() not in ran.stdout
        assert b"example.org/x" in ran.stdout
        app = await self.shell(workspace, "cat app/config")
        assert SECRET.encode() in app.stdout

    @pytest.mark.anyio
    async def test_no_link_leaves_the_workspace(self, workspace: Path) -> None:
        """Links in the workspace, planted before or by the program, reach nothing of the host."""
        outside = workspace.parent
        (workspace / "link").symlink_to(outside / "secret.txt")
        (workspace / "up").symlink_to(outside)
        (workspace / ".env").symlink_to("../secret.txt")
        ran = await self.shell(
            workspace,
            f"cat link up/secret.txt .env ../secret.txt /proc/1/root{outside}/secret.txt /proc/1/cwd/secret.txt "
            f"/proc/self/cwd/../secret.txt; ln -s {outside} new; cat new/secret.txt; "
            "echo x > link; echo x > up/planted",
        )
        assert SECRET.encode() not in ran.stdout
        assert (outside / "secret.txt").read_text() == SECRET
        assert not (outside / "planted").exists()

    @pytest.mark.anyio
    async def test_a_program_receives_exactly_its_arguments_and_environment(self, workspace: Path) -> None:
        """A program starts in the given folder, with exactly the given arguments and environment. It can read the
        additional files at their given paths, and cannot write them.
        """
        tool = workspace.parent / "tool"
        tool.mkdir()
        (tool / "text").write_text("given")
        (workspace / "inner").mkdir()
        ran = await self.shell(
            workspace,
            "pwd; cat /given/text; (echo x > /given/text) 2>/dev/null || echo no",
            folder="inner",
            read_only={"/given": tool},
        )
        assert ran.stdout == b"/workspace/inner\ngivenno\n"
        assert (tool / "text").read_text() == "given"

    @pytest.mark.anyio
    async def test_without_a_workspace_nothing_can_be_kept(self, workspace: Path) -> None:
        """A program without a workspace starts in an empty folder that it cannot write."""
        async with self.opened(workspace.parent) as sandbox:
            script = "pwd; ls -A; (: > kept) 2>/dev/null || echo no"
            ran = await sandbox.run(("sh", "-c", script), workspace=None, env={})
            with pytest.raises(ToolError, match="needs a workspace"):
                await sandbox.run(("pwd",), workspace=None, env={}, folder="inner")
        assert ran.stdout == b"/workspace\nno\n"

    # Environment --------------------------------------------------------------------------------------------------

    @pytest.mark.anyio
    async def test_the_environment_holds_only_the_given_variables(
        self, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A program inherits no descriptor, and neither do the other processes of the sandbox."""
        monkeypatch.setenv("HOST_SECRET", SECRET)
        async with self.opened(workspace.parent) as sandbox:
            ran = await sandbox.run(
                ("sh", "-c", "env; cat /proc/*/environ"),
                workspace=workspace,
                env={"GIVEN": "a\nb", "PATH": "/bin"},
            )
        assert SECRET.encode() not in ran.stdout
        assert b"GIVEN=a\nb\n" in ran.stdout
        assert b"PATH=/bin\n" in ran.stdout

    @pytest.mark.anyio
    async def test_cc_t11_a_program_has_no_network(self, workspace: Path) -> None:
        """No host is reachable, and no socket of the host is visible."""
        ran = await self.shell(
            workspace,
            "cat /proc/net/route | tail -n +2; ls /run/docker.sock /var/run/docker.sock /run/user; :",
        )
        assert ran.stdout == b""

    @pytest.mark.anyio
    async def test_a_workspace_that_may_only_be_read(self, workspace: Path) -> None:
        """A program cannot change a read-only workspace, also not beside protected files, which stay hidden.
        ``/tmp`` can be written.
        """
        (workspace / "inner").mkdir()
        for name in ("kept", "inner/kept", "inner/id_rsa"):
            (workspace / name).write_text("kept")
        script = """
            for file in new inner/new kept inner/kept inner/id_rsa; do echo x > $file; rm -f $file; done
            mkdir d; mv inner moved; mount -o remount,rw /workspace; ln -s /etc l; touch .
            echo x > /tmp/file && cat kept inner/kept inner/id_rsa /tmp/file
        """
        ran = await self.shell(workspace, script, limits=SandboxLimits(writable=False))
        assert ran.stdout == b"keptkeptx\n"
        found = {str(path.relative_to(workspace)): path.read_text() for path in _files(workspace)}
        assert found == dict.fromkeys(("kept", "inner/kept", "inner/id_rsa"), "kept")

    @pytest.mark.anyio
    async def test_a_program_sees_no_other_process_and_gains_no_privileges(self, workspace: Path) -> None:
        """A program sees only its own processes, has no privileges, cannot gain any by setuid, and has a system call
        filter.
        """
        ran = await self.shell(
            workspace, "ls /proc | grep -c '^[0-9]'; cat /proc/self/status; ls /proc/self/fd | wc -l"
        )
        count, *status, handles = ran.stdout.decode().splitlines()
        facts = dict(line.split(":", 1) for line in status)
        assert int(count) < 10
        assert int(handles) <= 4
        assert {facts[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {"0" * 16}
        assert facts["NoNewPrivs"].strip() == "1"
        assert facts["Seccomp"].strip() == "2"

    @pytest.mark.anyio
    async def test_dangerous_system_calls_are_refused(self, workspace: Path) -> None:
        """These are refused: new namespaces, mounts, tracing, keys, filters, performance counters, io_uring, and
        sockets that bypass namespaces.
        """
        if self.python is None or os.uname().machine != "x86_64":
            pytest.skip("needs a Python in the sandbox, on x86_64")
        async with self.opened(workspace.parent) as sandbox:
            ran = await sandbox.run(
                (self.python, "-c", KERNEL_CALLS), workspace=workspace, env={}, read_only=self.python_files
            )
        assert ran.stdout == b"done\n", ran.stderr


def bare_repository(folder: Path) -> None:
    """Create a bare repository without git, because not every sandbox has git."""
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    (folder / "refs/heads/main").write_text("0123\n")


def _content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
