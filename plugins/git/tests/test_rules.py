"""The rulings of the guard on git commands, from their arguments alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.text import split_plain_command
from trunkline_git.rules import judge_argv
from trunkline_git.settings import GitSettings

PROTECTED = GitSettings().protected_branches

REFUSED = [
    "push -f origin main", "push origin main --force", "push --force origin master", "push origin +main",
    "push origin +HEAD:main", "push origin +feature:refs/heads/main", "push origin :main", "push origin +:main",
    "push origin --delete main", "push -d origin main", "push --mirror", "push --mirror origin",
    "push --all --force", "push --branches -f", "push --forc origin main", "push --fo origin main",
    "push origin main -uf", "push --force-with-lease origin main", "push --force-with-lease=main origin main",
    "push -- origin +main", "push origin +refs/heads/*:refs/heads/*", "push origin heads/main -f",
    "push -f origin develop", "push -f o release", "push -f origin production", "push -f origin x:main",
    "push --del origin main", "push -d o refs/heads/main", "push --receive-pack=./x origin main",
    "push --exec=./x origin a", "push --exe=./x origin", "push --repo=x -f main", "push -f origin MAIN",
    "push -F origin main", "PUSH -f origin main", "push ORIGIN main --FORCE", "Push origin +main", "RESET --hard",
    "-c alias.x=!sh x", "-c core.sshCommand=x fetch", "--exec-path=. status", "--exec-path status",
    "--git-dir=x status", "--work-tree=/ checkout -f", "--config-env=core.pager=X log", "-C .. status",
    "--bare status", "fetch --upload-pack=x origin", "fetch --upload-pa=x", "ls-remote --upload-pack x .",
    "clone -u ./x y", "clone -c core.fsmonitor=x y", "clone --template=x y", "init --template=x",
    "rebase -x ./x main", "rebase --exec ./x", "bisect run ./x", "submodule foreach ./x", "grep -O./x y",
    "grep --open-files-in-pager=x y", "x", "difftool", "send-pack --force . main", "remote-ext x y",
    "filter-branch", "fast-import", "hook run x", "credential fill", "for-each-repo", "daemon", "upload-pack .",
    "archive --exec=x", "",
]  # fmt: skip

CONFIRMED = [
    "reset --hard", "reset --hard HEAD~1", "reset --har", "branch -D x", "branch -d -f x", "branch --delete --force x",
    "branch -f main x", "branch -M x", "clean -fd", "clean --force", "clean -d", "commit --no-verify -m x",
    "commit -n -m x", "commit --amend", "commit --am", "commit -m x --AMEND", "push --force origin feature", "push -f",
    "push -f origin HEAD", "push origin +feature", "push origin :feature", "push --delete origin feature",
    "push --no-verify", "push --prune origin", "checkout -f", "checkout --force x", "checkout -B x", "switch -f x",
    "switch --discard-changes x", "switch -C x", "rebase main", "rebase -i main", "stash drop", "stash clear",
    "stash -q drop", "tag -d v1", "tag -f v1", "config core.sshCommand x", "config --unset core.x", "config -e",
    "config --add remote.origin.push +a:main", "config alias.x !sh", "remote set-url origin x", "remote -v remove o",
    "reflog expire --all", "gc --prune=now", "fetch origin +a:b", "fetch -f origin a:b",
    "restore x", "restore .", "restore -SW x", "restore --staged --worktree x", "restore -s HEAD x", "restore -sS x",
    "restore --pathspec-from-file -S", "restore -p", "restore --stage x", "restore -s -S x", "checkout x", "checkout .",
    "checkout -- .", "checkout -- x", "checkout HEAD x", "checkout HEAD -- x", "checkout x y --", "checkout --ours x",
    "checkout -p", "checkout -m x --", "checkout --pathspec-from-file=x", "checkout --no-overlay x --", "checkout -qf",
    "rm -f x", "rm -rf .", "rm --cached -f x", "mv -f x y", "worktree remove --force x", "worktree remove -f x",
    "worktree add -f x", "worktree add -B x y", "worktree move --force x y", "switch -m x", "submodule update --force",
    "submodule deinit -f --all", "rebase --abort", "rebase --skip", "merge --abort", "am --skip", "am --abort",
    "cherry-pick --skip", "cherry-pick --abort", "revert --abort", "merge --no-verify x", "am -n x", "pull --no-verify",
    "switch --conflict=diff3 x", "diff --output=x", "log -p --outp x", "show --output x", "archive -o x HEAD",
    "archive -ox HEAD", "archive --output=x HEAD", "bundle create x HEAD", "symbolic-ref HEAD refs/heads/x",
    "symbolic-ref refs/heads/main refs/heads/x", "symbolic-ref -d HEAD",
    "fetch --refmap=+refs/heads/*:refs/heads/* o a", "fetch --prune o refs/heads/*:refs/heads/*", "fetch -p o a:b",
    "fetch -P o", "fetch --prune-tags o",
    "pull --refmap=+a:b o a", "pull --rebase", "pull -r", "pull --rebase=merges o a", "pull --reb",
    "config pull.rebase true",
    "remote add --mirror=fetch o x", "remote add --mirror o x", "reflog drop --all",
    "sparse-checkout clean --force",
]  # fmt: skip

FREE = [
    "branch -d x", "push --force-with-lease", "push --force-with-lease origin feature", "status", "commit -m x",
    "commit -am x", "push", "push origin main", "push -u origin feature", "push origin HEAD:feature", "push --tags",
    "push origin HEAD:main", "log --oneline -5", "diff", "add .", "add -- -f", "checkout x --", "checkout - --",
    "checkout -q x --", "checkout -b x", "checkout -b x o/y", "checkout",
    "checkout -t o/x", "checkout --detach x", "checkout --orphan x", "restore --staged x", "restore -S -- x",
    "restore -S --source=HEAD x", "rm x", "rm -r x", "mv x y", "worktree add x", "worktree remove x", "worktree prune",
    "switch -c x", "reset HEAD x", "reset --soft HEAD~1", "merge x", "rebase --continue", "clean -n", "clean -nd",
    "stash", "tag v1", "fetch origin", "pull", "pull --no-rebase", "pull --rebase=false", "pull --ff-only",
    "--version", "--help",
    "config user.name x", "config --get user.name", "config user.name",
    "remote -v",
    "fetch --prune o", "fetch -p", "pull --prune", "fetch o a:b", "symbolic-ref HEAD", "symbolic-ref -q HEAD",
    "merge --continue", "cherry-pick x", "cherry-pick --quit", "archive HEAD", "bundle verify x", "log --oneline",
    "remote add o x", "commit -m '--amend is a word'", "worktree list",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_MN_T6_refused_commands(line: str) -> None:
    """These force or delete a protected branch, in any spelling; make git run a program; or may be an alias."""
    verdict = judge_argv(line.split(" ") if line else [], PROTECTED)
    assert (verdict.ruling, bool(verdict.why)) == ("refused", True)


@pytest.mark.parametrize("line", CONFIRMED)
def test_MN_T6_commands_that_need_approval(line: str) -> None:
    """These discard work."""
    verdict = judge_argv(line.split(" "), PROTECTED)
    assert (verdict.ruling, bool(verdict.why)) == ("confirm", True)


@pytest.mark.parametrize("line", FREE)
def test_MN_T6_commands_without_approval(line: str) -> None:
    """These can be undone, or are everyday work."""
    assert judge_argv(split_plain_command(line) or [], PROTECTED).ruling == "free"


def test_the_owner_names_the_branches() -> None:
    """Other names, in place of the usual ones."""
    assert judge_argv(["push", "-f", "o", "Live"], ("live",)).ruling == "refused"
    assert judge_argv(["push", "-f", "o", "main"], ("live",)).ruling == "confirm"


@given(
    st.lists(st.sampled_from(["x", ".", "-q", "--", "-f", "-b", "--ours", "--detach", "-p", "y"]), max_size=5)
)
def test_checkout_without_approval_names_no_file(words: list[str]) -> None:
    """Behind the end of the options stands nothing, and before it one name at most that is not a branch to be made."""
    if judge_argv(["checkout", *words], PROTECTED).ruling != "free":
        return
    assert "--" not in words[:-1] and not {"-f", "--ours", "-p"} & set(words)
    names = [word for word in words if not word.startswith("-")]
    assert not names or words[-1] == "--" or {"-b", "--detach"} & set(words)


ANY = st.lists(
    st.text(max_size=6) | st.sampled_from(["push", "-f", "main", "+main", ":main", "--", "--force", "commit"])
)


@given(ANY)
def test_every_argument_list_is_classified(words: list[str]) -> None:
    """No list is skipped, and a push that names a protected branch and forces it always needs a ruling."""
    verdict = judge_argv(words, PROTECTED)
    assert verdict.ruling in ("free", "confirm", "refused")
    if words[:1] == ["push"] and "+main" in words:
        assert verdict.ruling == "refused"
