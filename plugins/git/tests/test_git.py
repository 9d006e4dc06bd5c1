"""git as an agent has it: through a tools worker, in a real sandbox, on real repositories."""

import json
import struct
import zlib
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from git_workspaces import git, needs_both, place
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunkline.testing.tool_calls import call_tool
from trunkline_git.push import GUARDED_RECEIVE

pytestmark = [pytest.mark.anyio, needs_both]


async def test_status_commit_and_a_push(tmp_path: Path) -> None:
    """An agent checks the status, commits and pushes; history has its commit message and its name."""
    async with place(tmp_path) as here:
        (here.repo / "new").write_text("text")
        assert "?? new" in (await here.call("git_status")).output
        said = await here.call("git_commit", message="Add it", add_files=["new"])
        assert (said.status, "1 file changed" in said.output) == ("ok", True)
        assert git(here.repo, "log", "-1", "--format=%an %s") == "Trunkline agent Add it"
        assert (await here.run("push")).output.startswith("exit code 128") or here.heads()
        assert (await here.run("push -u origin main")).status == "ok"
        assert here.heads()["main"] == git(here.repo, "rev-parse", "main")
        assert "exit code 1" in (await here.call("git_commit", message="Nothing")).output
        assert (await here.call("git_commit", message="x", allow_empty=True)).status == "ok"
        assert (await here.run("push")).status == "ok"
        assert here.heads()["main"] == git(here.repo, "rev-parse", "main")
        assert "list of words" in (await here.run("log | cat")).output
        assert (await here.call("git_commit", message=" ")).status == "error"


FORCING = [
    "push -f origin main", "push origin +main", "push origin +feature:main", "push origin :main", "push -d origin main",
    "push --mirror origin", "push --forc origin main", "PUSH -f origin main", "push --force-with-lease origin main",
    "push --all --force origin", "push origin +refs/heads/main:refs/heads/main", "push -- origin +main",
]  # fmt: skip


async def test_MN_T6_no_push_option_forces_or_deletes_a_protected_branch(tmp_path: Path) -> None:
    """No approval is requested: the push is refused even where no other call is, and by the tool for commands too."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()
        for line in FORCING:
            said = await here.run(line, yes=True)
            assert (said.status, "git was not run" in said.output) == ("error", True), line
            for command in (["git", *line.split()], json.dumps(["git", *line.split()])):
                said = await here.call("execute_command", command=command)
                assert (said.status, "git was not run" in said.output) == ("error", True), line
        core = git(here.repo, "--exec-path")
        for around in ([f"{core}/git-push"], ["nice", "git", "push"], ["env", f"{core}/git-send-pack"]):
            said = await here.call("execute_command", command=[*around, "-f", "../remote", "main"])
            assert (said.status, "git was not run" in said.output) == ("error", True), around
        other = await here.call("execute_command", command="git push origin feature")
        assert (other.status, "by the tool git" in other.output) == ("error", True)
        assert here.heads() == before


CONFIGURED = [
    (["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"], "push"),
    (["config", "remote.origin.push", "+feature:main"], "push origin feature"),
    (["config", "remote.origin.mirror", "true"], "push origin"),
    (["config", "push.default", "upstream"], "push -f origin"),
    (["config", "alias.status", "!git push -f origin main"], "status"),
    (["config", "alias.p", "!git push -f origin main"], "p"),
    (["config", "push.default", "matching"], "push --force"),
    (["symbolic-ref", "HEAD", "refs/heads/main"], "push -f origin HEAD"),
    (["symbolic-ref", "HEAD", "refs/heads/main"], "push -f origin @"),
]


async def test_MN_T6_no_configuration_forces_or_deletes_a_protected_branch(tmp_path: Path) -> None:
    """git itself reports what a push would do, because a repository's settings may send one branch to another and
    force it."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()
        git(here.repo, "branch", "-q", "--set-upstream-to", "origin/main", "feature")
        for setting, line in CONFIGURED:
            git(here.repo, *setting)
            git(here.repo, "checkout", "-q", "feature")
            if setting[0] == "symbolic-ref":
                git(here.repo, "checkout", "-q", "main")
            await here.run(line, yes=True)
            assert here.heads()["main"] == before["main"], (setting, line)
            if setting[0] == "config":
                git(here.repo, "config", "--unset-all", setting[1])


async def test_MN_T6_a_push_forces_no_protected_branch_of_a_submodule(tmp_path: Path) -> None:
    """A repository's settings may have a push take its submodules along, each by settings of its own."""
    async with place(tmp_path) as here:
        inner, its = here.workspace / "inner", here.repo / "sub"
        git(here.workspace, "clone", "-q", "--bare", "remote", "inner")
        before = git(inner, "rev-parse", "main")
        git(here.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "sub")
        git(its, "commit", "-q", "--amend", "-m", "rewritten")
        git(its, "config", "remote.origin.push", "+refs/heads/main:refs/heads/main")
        git(its, "remote", "set-url", "origin", "../../inner")
        git(here.repo, "commit", "-qam", "with it")
        git(here.repo, "config", "push.recurseSubmodules", "on-demand")
        assert (await here.run("push ../remote main")).status == "ok"
        assert git(inner, "rev-parse", "main") == before


PLANTED = """#!/bin/sh
echo "$0" >> /workspace/ran
cd /workspace/repo
unset $(git rev-parse --local-env-vars)
git push --no-verify -f ../remote main feature
"""
"""What a program in the workspace may have left, for git to run when the tool does."""


async def test_MN_T6_planted_configuration_rewrites_nothing(tmp_path: Path) -> None:
    """Hooks and settings that have git run a program, whenever a tool runs git: a commit, a look, a push."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()
        evil = here.workspace / "evil"
        evil.write_text(PLANTED)
        evil.chmod(0o755)
        for hook in ("pre-commit", "post-commit", "pre-push", "reference-transaction", "post-checkout"):
            (here.repo / ".git/hooks" / hook).symlink_to(evil)
        git(here.repo, "-c", "core.hooksPath=/dev/null", "branch", "side", "origin/main")
        for setting in (
            ("core.hooksPath", ".git/hooks"), ("remote.origin.receivepack", "/workspace/evil; git-receive-pack"),
            ("remote.origin.uploadpack", "/workspace/evil; git-upload-pack"), ("core.gitProxy", "/workspace/evil"),
            ("core.fsmonitor", "/workspace/evil"), ("remote.origin.pushurl", "ext::/workspace/evil"),
            ("url./workspace/remote.insteadOf", "../remote"), ("core.sshCommand", "/workspace/evil"),
            ("remote.origin.vcs", "evil"), ("gpg.program", "/workspace/evil"), ("push.gpgSign", "true"),
        ):  # fmt: skip
            git(here.repo, "-c", "core.hooksPath=/dev/null", "config", *setting)
            for line in (
                "push origin side",
                "push origin main",
                "fetch origin",
                "status",
                "push ../remote side:new",
            ):
                await here.run(line, yes=True)
            await here.call("git_commit", message="x", allow_empty=True)
            assert {name: here.heads()[name] for name in before} == before, setting
            git(here.repo, "-c", "core.hooksPath=/dev/null", "config", "--unset-all", setting[0])
        assert (here.workspace / "ran").exists()


async def test_MN_T6_no_forged_history_makes_a_push_a_plain_one(tmp_path: Path) -> None:
    """The cases are replacements, grafts, shallow ends and objects with another content, which make the local git
    treat a commit as a descendant of the one that it would replace; the real one was pushed to another branch
    before."""
    async with place(tmp_path) as here:
        old, new = await here.rewrite_and_push_topic()
        before = here.heads()
        git(here.repo, "replace", "--graft", new, old)
        assert "would not" not in (await here.run("push origin main")).output
        assert (await here.run("push origin refs/replace/*:refs/replace/* main")).status in ("ok", "error")
        git(here.repo, "replace", "-d", new)
        (here.repo / ".git/info/grafts").write_text(f"{new} {old}\n")
        await here.run("push origin main")
        (here.repo / ".git/info/grafts").unlink()
        assert here.heads() == before
        body = git(here.repo, "cat-file", "commit", new)
        parent = next(line for line in body.splitlines() if line.startswith("parent"))
        forged = (body.replace(parent, f"parent {old}") + "\n").encode()
        loose = here.repo / ".git/objects" / new[:2] / new[2:]
        loose.chmod(0o644)
        loose.write_bytes(zlib.compress(b"commit %d\0" % len(forged) + forged))
        await here.run("push origin main")
        assert here.heads() == before


async def test_MN_T6_no_forged_commit_graph_makes_a_push_a_plain_one(tmp_path: Path) -> None:
    """git takes the order of commits from this file; here it claims that the new commit follows the old one."""
    async with place(tmp_path) as here:
        old, new = await here.rewrite_and_push_topic()
        before = here.heads()
        git(here.repo, "commit", "-q", "--allow-empty", "-m", "after it")
        git(here.repo, "-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable")
        graph = here.repo / ".git/objects/info/commit-graph"
        forged = bytearray(graph.read_bytes())
        commits = sorted(git(here.repo, "rev-list", "--all").split())
        rows = forged.find(bytes.fromhex(git(here.repo, "rev-parse", f"{commits[0]}^{{tree}}")))
        at = rows + 36 * commits.index(new) + 20
        struct.pack_into(">2I", forged, at, commits.index(old), 0x70000000)
        struct.pack_into(">I", forged, at + 8, 3 << 2)
        struct.pack_into(
            ">I", forged, rows + 36 * commits.index(git(here.repo, "rev-parse", "main")) + 28, 4 << 2
        )
        graph.chmod(0o644)
        graph.write_bytes(forged)
        git(here.repo, "merge-base", "--is-ancestor", old, "main")
        await here.run("push origin main")
        assert here.heads() == before


async def test_MN_T6_a_remote_checks_pushes_itself(tmp_path: Path) -> None:
    """The remote refuses despite the repository's settings and a forced push."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()
        for name in ("receive.denyNonFastForwards", "receive.denyDeletes"):
            git(here.remote, "config", name, "false")
        git(here.remote, "config", "receive.denyDeleteCurrent", "ignore")
        for refspec, why in (("+main", "non-fast-forward"), (":main", "deletion prohibited")):
            with pytest.raises(CalledProcessError) as refused:
                git(here.repo, "push", GUARDED_RECEIVE, "origin", refspec)
            assert why in refused.value.stderr
        assert here.heads() == before


async def test_MN_T6_another_name_of_a_protected_branch_is_protected(tmp_path: Path) -> None:
    """One branch of a remote may be an alias of another: forcing it forces the other."""
    async with place(tmp_path) as here:
        here.rewrite()
        git(here.remote, "symbolic-ref", "refs/heads/latest", "refs/heads/main")
        before = here.heads()
        for line in (
            "push -f origin main:latest",
            "push origin feature main:latest -f",
            "push -f origin :latest",
        ):
            said = await here.run(line, yes=True)
            assert (said.status, "the protected branch main" in said.output) == ("error", True), line
        assert here.heads() == before


async def test_MN_T6_a_local_folder_named_like_a_remote_is_not_used(tmp_path: Path) -> None:
    """git finds ``x`` before ``x.git``; its hooks, which programs may write, run where ``x.git`` stays read-only."""
    async with place(tmp_path) as here:
        git(here.workspace, "clone", "-q", "--bare", "remote", "x.git")
        git(here.workspace, "clone", "-q", "remote", "x")
        before = git(here.workspace / "x.git", "for-each-ref")
        hook = here.workspace / "x/.git/hooks/pre-receive"
        hook.write_text(
            "#!/bin/sh\necho ran >> /workspace/ran\necho x > /workspace/x.git/refs/heads/main\nexit 0\n"
        )
        hook.chmod(0o755)
        for line in (
            "push ../x main:new",
            "push /workspace/x main:newer",
            "push file:///workspace/x/ main:newest",
        ):
            assert "exit code 0" in (await here.run(line)).output, line
        assert (here.workspace / "ran").read_text() == "ran\n" * 3
        assert git(here.workspace / "x.git", "for-each-ref") == before


async def test_MN_T6_no_file_tool_changes_a_remote(tmp_path: Path) -> None:
    """Writing needs no approval here: only the git tool changes a remote."""
    async with place(tmp_path) as here:
        before = here.heads()
        for name, given in (
            ("write_file", {"path": "remote/refs/heads/main", "content": git(here.repo, "rev-parse", "HEAD~1")}),
            ("delete_file", {"path": "remote/refs/heads/main"}),
            ("move_file", {"source": "remote", "target": "gone"}),
        ):  # fmt: skip
            said = await call_tool(here.running.bus, name, given)
            assert (said.status, "bare git repository" in said.output) == ("error", True), said.output
            here.refused[said.call] = said.status
        assert here.heads() == before


async def test_a_lease_is_checked_by_the_push_itself(tmp_path: Path) -> None:
    """``--force-with-lease`` replaces the commit that git was asked about, and removes the local reference of a
    branch that it deletes on the remote."""
    async with place(tmp_path) as here:
        here.rewrite()
        stale = await here.run("push --force-with-lease=feature:0123456 origin feature")
        assert "exit code 1" in stale.output and here.heads()["feature"] != git(
            here.repo, "rev-parse", "main"
        )
        assert (await here.run("push --force-with-lease origin feature")).status == "ok"
        assert here.heads()["feature"] == git(here.repo, "rev-parse", "feature")
        assert (await here.run("push origin :feature", yes=True)).status == "ok"
        assert "feature" not in here.heads()
        assert "origin/feature" not in git(here.repo, "branch", "--remotes")
        tagged = await here.run("tag v1")
        assert (tagged.status, (await here.run("push --tags origin")).status) == ("ok", "ok")
        assert git(here.remote, "rev-parse", "v1") == git(here.repo, "rev-parse", "v1")


async def test_a_push_from_a_shallow_clone_and_into_new_folders(tmp_path: Path) -> None:
    """A push also works from a folder within the repository, and to a name without its ending."""
    async with place(tmp_path) as here:
        git(here.workspace, "clone", "-q", "--depth=1", f"file://{here.remote}", "shallow")
        (here.workspace / "shallow/inner").mkdir()
        git(here.workspace, "init", "-q", "--bare", "-b", "main", "new.git")
        git(here.workspace / "shallow", "remote", "set-url", "origin", "../remote")
        git(here.workspace / "shallow", "commit", "-q", "--allow-empty", "-m", "more")
        for folder, line in (("shallow/inner", "push origin main"), ("repo", "push ../new main:other")):
            said = await call_tool(here.running.bus, "git", {"folder": folder, "command": line})
            assert (said.status, "exit code 0" in said.output) == ("ok", True), said.output
        assert here.heads()["main"] == git(here.workspace / "shallow", "rev-parse", "main")
        assert git(here.workspace / "new.git", "rev-parse", "other") == git(here.repo, "rev-parse", "main")


async def test_a_dry_run_of_a_push_changes_nothing(tmp_path: Path) -> None:
    """This holds for every spelling of a dry run; and a quiet push that sets its upstream branch is done."""
    async with place(tmp_path) as here:
        git(here.repo, "commit", "-q", "--allow-empty", "-m", "new")
        before = here.heads()
        for words in ("-n", "-nv", "-vn", "-qnu", "--dry-run"):
            assert "exit code 0" in (await here.run(f"push {words} origin main")).output
            assert here.heads() == before, words
        assert "exit code 0" in (await here.run("push -qu origin main")).output
        assert here.heads()["main"] == git(here.repo, "rev-parse", "main")
        assert git(here.repo, "config", "branch.main.remote") == "origin"


async def test_MN_T6_commands_that_discard_work_need_approval(tmp_path: Path) -> None:
    """They need approval even where no other call does, and run once approved. Commands without risk run at once."""
    async with place(tmp_path) as here:
        here.rewrite()
        (here.repo / "file").write_text("changed")
        for line in (
            "reset --hard", "branch -D feature", "clean -fd", "commit --no-verify -m x", "commit --amend",
            "push --force origin feature", "push origin :feature", "checkout -f main",
            "restore file", "restore -SW file", "checkout -- file", "checkout .", "checkout HEAD file", "rm -f file",
            "mv -f other file", "stash drop", "worktree remove --force ../tree", "diff --output=file HEAD~1",
            "rebase --abort", "merge --abort", "symbolic-ref refs/heads/main refs/heads/feature",
            "fetch --refmap=+refs/heads/*:refs/heads/* ../remote main",
        ):  # fmt: skip
            assert (await here.run(line.split())).status == "approval", line
        asked = await here.call("git_commit", message="x", amend=True)
        assert (asked.status, "replaces the last commit" in asked.question) == ("approval", True)
        for command in (["reset", "--hard"], ["checkout", "file"], ["checkout", "."], ["restore", "file"]):
            for git_itself in (
                ["git"],
                ["env", "X=1", "git"],
                ["timeout", "-s", "KILL", "9", "/usr/bin/git"],
            ):
                said = await here.call("execute_command", command=[*git_itself, *command])
                assert said.status == "approval", (git_itself, command)
        core = git(here.repo, "--exec-path")
        for written in ([f"{core}/git-reset", "--hard"], "git reset --hard\n", " git reset --hard\r\n"):
            assert (await here.call("execute_command", command=written)).status == "approval", written
        assert "invalid reference: file" in (await here.run("checkout file")).output  # it means a branch
        assert (here.repo / "file").read_text() == "changed"
        before = here.heads()
        for line in (
            "branch x", "branch -d x", "checkout feature", "checkout -b y", "checkout main", "status",
            "push --force-with-lease origin main:fresh",
        ):  # fmt: skip
            assert (await here.run(line)).status == "ok", line
        git(here.repo, "checkout", "-q", "-b", "side")
        assert (await here.run(["commit", "-am", "--amend is a word here"])).status == "ok"
        assert git(here.repo, "log", "-1", "--format=%s") == "--amend is a word here"
        git(here.repo, "checkout", "-q", "main")
        (here.repo / "file").write_text("changed")
        assert here.heads() == {**before, "fresh": git(here.repo, "rev-parse", "main")}
        assert (await here.run("push --force origin feature", yes=True)).status == "ok"
        assert here.heads()["feature"] == git(here.repo, "rev-parse", "feature")
        assert (await here.run("reset --hard", yes=True)).status == "ok"
        assert (here.repo / "file").read_text() == "two"


async def test_reading_needs_no_approval_and_programs_need_the_permission(tmp_path: Path) -> None:
    """With approvals, looks run and the rest is asked about, shown as it is; without the permission nothing runs."""
    async with place(tmp_path, approvals="some") as here:
        for line in (["git", "log", "--oneline"], "git diff", "git show --stat", "git status"):
            assert (await here.run(line)).status == "ok", line
        assert (await here.call("git_status")).status == "ok"
        asked = await here.run(["git", "reset", "--hard"])
        assert "git reset --hard" in asked.detail.text
        assert "discards changes" in asked.question
        afar = await here.call("git", command=["git", "pull"], network=True)
        assert "(in repo, with the network)" in afar.detail.text
        committing = await here.call("git_commit", message="A message", add_all=True)
        assert "A message" in committing.detail.text
    async with place(tmp_path / "other", allow_shell=False) as here:
        for name, given in (
            ("git_status", {}),
            ("git", {"command": "git log"}),
            ("git_commit", {"message": "x"}),
        ):
            said = await here.call(name, **given)
            assert (said.status, "refused" in said.output) == ("error", True)


async def test_read_only_git_runs_no_program_that_the_repository_configures(tmp_path: Path) -> None:
    """The repository configures programs for everything, and a program that it names for status changes nothing."""
    mark = "sh -c 'echo MARK; echo MARK >> /workspace/mark; echo MARK >&2; cat'"
    async with place(tmp_path, approvals="some") as here:
        (here.repo / ".gitattributes").write_text("* diff=evil\n")
        (here.repo / "file").write_text("three")
        for name in (
            "core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program",
            "core.sshCommand", "core.editor", "core.askPass", "credential.helper",
        ):  # fmt: skip
            git(here.repo, "config", name, mark)
        for hook in ("post-index-change", "pre-commit", "pre-auto-gc"):
            file = here.repo / ".git/hooks" / hook
            file.write_text(f"#!/bin/sh\n{mark}\n")
            file.chmod(0o755)
        for line in ("git status", "git diff", "git log -p", "git show", "git diff --stat"):
            said = await here.run(line)
            assert (said.status, "MARK" in said.output) == ("ok", False), line
        assert "MARK" not in (await here.call("git_status")).output
        assert not (here.workspace / "mark").exists()


async def test_secrets_are_not_committed(tmp_path: Path) -> None:
    """Files with protected names are empty in the sandbox: neither new ones nor known ones come into a commit."""
    async with place(tmp_path) as here:
        (here.repo / "auth.json").write_text("known")
        git(here.repo, "add", "-f", ".")
        git(here.repo, "commit", "-qm", "by hand")
        for name in (".env", "id_rsa", "file"):
            (here.repo / name).write_text("new")
        said = await here.call("git_commit", message="All", add_all=True)
        assert "Left out, because secrets are kept under such names: auth.json" in said.output
        assert git(here.repo, "show", "--name-only", "--format=") == "file"
        assert git(here.repo, "show", "HEAD:auth.json") == "known"
        refused = await here.call("git_commit", message="x", add_files=[".env"])
        assert (refused.status, "protected name" in refused.output) == ("error", True)


WORDS = st.lists(
    st.sampled_from(
        [
            "origin", "main", "+main", ":main", "feature", "+feature:main", "HEAD", "+HEAD:main", "-f", "--force",
            "--forc", "-d", "--delete", "--mirror", "--all", "--prune", "--", "--force-with-lease", "-u",
            "refs/heads/main", "MAIN", "+refs/heads/*:refs/heads/*", "--tags", "@", "-fu", ".", "../remote",
        ]
    ),
    max_size=5,
)  # fmt: skip


async def test_MN_T6_no_push_arguments_rewrite_main(tmp_path: Path) -> None:
    """For any arguments, each approved by a person, the remote's main branch still exists and keeps all its commits."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()["main"]
        for words in _examples(10):
            await here.run(["git", "push", *words], yes=True)
            assert before in git(here.remote, "log", "--format=%H", "main").split(), words


def _examples(count: int) -> list[list[str]]:
    found: list[list[str]] = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(WORDS)
    def collect(words: list[str]) -> None:
        found.append(words)

    collect()
    return found
