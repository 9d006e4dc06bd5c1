"""Judge a git command by its arguments: free, allowed after a person's confirmation, or refused. Pure.

It knows options by name and in short, since git takes ``--forc`` for ``--force``, and in capitals too. What it does not
know it refuses: an unknown command may be an alias, which runs anything.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

Ruling = Literal["free", "confirm", "refused"]


class Verdict(msgspec.Struct, frozen=True):
    """A ruling and its reason, worded for the model and for the person who is asked."""

    ruling: Ruling = "free"
    why: str = ""


FREE = Verdict()

KNOWN = frozenset(
    """
    add am annotate apply archive bisect blame branch bundle
    cat-file check-attr check-ignore checkout cherry cherry-pick clean clone commit config count-objects
    describe diff diff-files diff-index diff-tree
    fetch for-each-ref format-patch fsck
    gc grep hash-object init
    log ls-files ls-remote ls-tree
    merge merge-base merge-tree mv name-rev notes
    pull push range-diff rebase reflog remote reset restore rev-list rev-parse revert rm
    shortlog show show-branch show-ref sparse-checkout stash status submodule switch symbolic-ref
    tag update-index var verify-commit verify-tag version
    whatchanged worktree write-tree
    """.split()  # noqa: SIM905  as a table it can be read
)
"""Commands that are git's own: git lets no alias take their names. None of them is a way around ``push``."""

PROGRAMS = (
    "--upload-pack", "--receive-pack", "--exec", "--exec-path", "--extcmd", "--open-files-in-pager", "--template",
)  # fmt: skip
"""Options that name a program for git to run, or a folder of such."""

_NO_PROGRAM = "it names a program for git to run. Run programs with execute_command."
_WRITE_OUT = "git would have to guess what it means. Write commands and options in full and in lower case."


def judge_argv(words: Sequence[str], protected: Sequence[str]) -> Verdict:
    """Judge ``git`` with these arguments. ``protected`` are the names of protected branches."""
    if not words:
        return Verdict("refused", "it names no git command, such as status.")
    if [*words] in TELLING:
        return FREE
    if words[0].startswith("-"):
        return Verdict(
            "refused", f"{words[0]!r} comes before the command; options before it change what git runs."
        )
    if words[0].lower() not in KNOWN:
        return Verdict(
            "refused", f"{words[0]!r} is not a known git command; it may be an alias for any program."
        )
    command = words[0].lower()
    rest = _read_by_rule(command, words[1:])
    if any(_means(word, option) for word in rest for option in PROGRAMS):
        return Verdict("refused", _NO_PROGRAM)
    verdict = _RULES.get(command, _no_rule)(rest, frozenset(map(str.lower, protected)))
    if verdict.ruling == "free" and _has(rest, "", "--output"):
        verdict = OVER_A_FILE
    if verdict.ruling != "refused" and command != words[0]:
        return Verdict("refused", _WRITE_OUT)
    return verdict


TELLING = (["--version"], ["-v"], ["--help"], ["-h"])
"""Options that print information about git itself."""

SETTINGS = frozenset(
    """
    user.name user.email pull.ff core.autocrlf core.quotepath color.ui push.autosetupremote
    """.split()  # noqa: SIM905  as a table it can be read
)
"""Settings that neither name a program nor change what a command throws away."""

OVER_A_FILE = Verdict("confirm", "It overwrites the file that it names.")


def _read_by_rule(command: str, words: Sequence[str]) -> list[str]:
    """The words that a rule looks at: for most commands those before ``--``, since what follows are paths."""
    if command == "push":
        return [word for word in words if word != "--"]
    return list(words) if command == "checkout" else _before_paths(words)


def _no_rule(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return FREE


def _push(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    """Force, deletion, and everything at once. Which branches it is in the end, ``pushing.py`` finds out from git."""
    if unknown := [word for word in words if word.startswith("-") and not _is_push_option(word)]:
        return Verdict("refused", f"{unknown[0]!r} is not a known option of push. {_WRITE_OUT}")
    targets = {_target(word) for word in words if not word.startswith("-")}
    deleting = _has(words, "dD", "--delete", "--prune") or any(word.startswith((":", "+:")) for word in words)
    forced = _has(words, "fF", "--force") or any(word.startswith("+") for word in words)
    if _has(words, "", "--mirror"):
        return Verdict("refused", "--mirror forces and deletes every branch of the remote.")
    if forced or deleting or _has(words, "", "--force-with-lease"):
        what = "deletes" if deleting else "forces"
        if _has(words, "", "--all", "--branches") or any("*" in target for target in targets):
            return Verdict("refused", f"it {what} every branch, protected ones too.")
        if hit := sorted(targets & protected):
            return Verdict("refused", f"it {what} the protected branch {hit[0]}. Push to another branch.")
    if deleting:
        return Verdict("confirm", "It deletes a branch of the remote.")
    if forced:
        return Verdict(
            "confirm", "It forces a branch of the remote: commits that others pushed there may be lost."
        )
    return _confirm(words, "", ("--no-verify",), "It skips the checks before a push.")


PUSH_FLAGS = frozenset(
    """
    --all --atomic --branches --delete --dry-run --follow-tags --force --force-if-includes --force-with-lease
    --ipv4 --ipv6 --mirror --no-verify --porcelain --progress --prune --quiet --set-upstream --tags --verbose --verify
    """.split()  # noqa: SIM905  as a table it can be read
)
PUSH_LETTERS = "fuvqnd46"


def _is_push_option(word: str) -> bool:
    """Report whether it is one that is known, by its whole name; those with a value have it attached."""
    if word.startswith("--"):
        return word in PUSH_FLAGS or word.startswith(("--force-with-lease=", "--push-option="))
    return len(word) > 1 and all(letter in PUSH_LETTERS for letter in word[1:])


def _target(word: str) -> str:
    """The branch that a refspec leads to, in small letters."""
    name = word.lower().lstrip("+").rpartition(":")[2]
    return branch_of(name)


def branch_of(ref: str) -> str:
    """The name of a branch without what may stand before it."""
    return ref.removeprefix("refs/").removeprefix("heads/")


def _commit(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    if _has(words, "", "--amend"):
        return Verdict("confirm", "It replaces the last commit.")
    return _confirm(words, "n", ("--no-verify",), UNCHECKED)


def _reset(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "", ("--hard", "--merge", "--keep"), LOST)


def _clean(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    if _has(words, "n", "--dry-run") and not _has(words, "f", "--force"):
        return FREE
    return Verdict("confirm", "It deletes files that git does not track; they cannot be restored.")


def _branch(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(
        words, "DMCf", ("--force",), "It deletes or replaces a branch whose commits may exist nowhere else."
    )


UNCHECKED = "It skips the checks before a commit."

LOST = "It discards changes that are not committed."

TO_A_BRANCH = frozenset(("-b", "--orphan", "-d", "--detach", "-t", "--track"))
"""Options of checkout with which it takes no path; to replace a branch is another one (``-B``)."""

QUIET = frozenset(
    ("-q", "--quiet", "--progress", "--no-progress", "-l", "--guess", "--no-guess", "--no-track")
)


def without_pager(words: Sequence[str]) -> Sequence[str]:
    """The words without one that says to print all at once, which is done anyway."""
    return words[1:] if words[:1] and words[0] in ("--no-pager", "-P") else words


def as_branch_checkout(words: Sequence[str]) -> list[str]:
    """The same, with ``checkout NAME`` put so that it means a branch: git would take a file of that name as well.
    What no branch is called stays as it is."""
    names = [word for word in words[1:] if not word.startswith("-")]
    if words[:1] != ["checkout"] or len(names) != 1 or "--" in words or TO_A_BRANCH & set(words):
        return list(words)
    return list(words) if names[0].startswith((".", ":", "/")) else [*words, "--"]


def _checkout(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    """Free is what can only mean a branch or a commit; git refuses that where it would cost a change."""
    before = _before_paths(words)
    options = {word for word in before if word.startswith("-") and word != "-"}
    names = len(before) - len(options)
    if not options <= TO_A_BRANCH | QUIET or len(before) < len(words) - 1:
        return Verdict("confirm", LOST)
    if options & TO_A_BRANCH or names == 0 or (names == 1 and words[-1] == "--"):
        return FREE
    return Verdict("confirm", f"{LOST} To go to a branch, use switch.")


def _restore(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    """Free is what takes back an ``add`` and leaves the files."""
    options = {word for word in words if word.startswith("-") and not word.startswith("--source=")}
    staged = options & {"-S", "--staged"}
    return FREE if staged and options <= staged | {"-q", "--quiet"} else Verdict("confirm", LOST)


def _removal(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "fB", ("--force",), LOST)


def _switch(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    options = ("--force", "--discard-changes", "--force-create", "--merge", "--conflict")
    return _confirm(words, "fCm", options, LOST)


def _rebase(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    if _has(words, "x"):
        return Verdict("refused", _NO_PROGRAM)
    if words and words[0] in ("--continue", "--quit"):
        return FREE
    if _has(words, "", *GIVING_UP):
        return Verdict("confirm", LOST)
    return Verdict("confirm", REPLACED)


REPLACED = "It rewrites history; others who have the old commits get conflicts."

GIVING_UP = ("--abort", "--skip")
"""Options of what goes on over several commands: git resets the files to take back what it has done so far."""


def _picking(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "", GIVING_UP, LOST)


def _merge(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "", ("--no-verify",), UNCHECKED, _picking(words, protected))


def _am(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "n", ("--no-verify",), UNCHECKED, _picking(words, protected))


def _stash(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm_word(words, ("drop", "clear"), "It discards stashed changes.")


def _tag(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "fd", ("--force", "--delete"), "It moves or deletes a tag.")


MOVED = "It moves or deletes local branches or tags to match the remote."


def _fetch(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    """Free is what moves branches forward, and forgets those of the remote that are gone there."""
    named = any(":" in word for word in words if not word.startswith("-"))
    pruning = (named and _has(words, "p", "--prune")) or any(
        word.lower().startswith("--prune-") for word in words
    )
    if pruning or any(word.startswith("+") for word in words):
        return Verdict("confirm", MOVED)
    return _confirm(words, "fP", ("--force", "--refmap"), MOVED)


def _pull(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    """As ``fetch``; with a rebase option as ``rebase``."""
    rebasing = [word for word in words if word.lower() not in ("--rebase=false", "--no-rebase")]
    if _has(rebasing, "r", "--rebase"):
        return Verdict("confirm", REPLACED)
    return _confirm(words, "", ("--no-verify",), UNCHECKED, _fetch(words, protected))


def _symbolic_ref(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    names = [word for word in words if not word.startswith("-")]
    if len(names) < 2 and not _has(words, "d", "--delete"):
        return FREE
    return Verdict("confirm", "It replaces a branch by renaming another one.")


def _archive(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return OVER_A_FILE if _has(words, "o") else FREE


def _bundle(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return OVER_A_FILE if any(word.lower() == "create" for word in words) else FREE


def _config(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    looking = ("-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch")
    plain = not any(word.startswith("-") for word in words)
    if words[:1] and (words[0] in looking or (plain and (len(words) == 1 or words[0].lower() in SETTINGS))):
        return FREE
    return Verdict("confirm", "It changes git's configuration; some settings name programs that git runs.")


def _remote(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    changing = ("remove", "rm", "set-url", "rename", "prune", "set-head", "set-branches")
    if _has(words, "", "--mirror"):
        return Verdict("confirm", "Fetching or pushing will replace all branches, even if commits are lost.")
    return _confirm_word(words, changing, "It changes where this repository is pushed to.")


def _reflog(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm_word(
        words, ("expire", "delete", "drop"), "It deletes the reflog, the record of where branches were."
    )


def _gc(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _confirm(words, "", ("--prune",), "It deletes commits that no branch contains.")


def _bisect(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _running("run", words) or FREE


def _submodule(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return _running("foreach", words) or _removal(words, protected)


def _running(word: str, words: Sequence[str]) -> Verdict | None:
    return Verdict("refused", _NO_PROGRAM) if any(one.lower() == word for one in words) else None


def _grep(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return Verdict("refused", _NO_PROGRAM) if _has(words, "O") else FREE


def _clone(words: Sequence[str], protected: frozenset[str]) -> Verdict:
    return Verdict("refused", _NO_PROGRAM) if _has(words, "uc", "--config") else FREE


_RULES: dict[str, Callable[[Sequence[str], frozenset[str]], Verdict]] = {
    "am": _am, "archive": _archive, "bisect": _bisect, "branch": _branch, "bundle": _bundle, "checkout": _checkout,
    "cherry-pick": _picking, "clean": _clean, "clone": _clone, "commit": _commit, "config": _config, "fetch": _fetch,
    "gc": _gc, "grep": _grep, "merge": _merge, "mv": _removal, "pull": _pull, "push": _push, "rebase": _rebase,
    "reflog": _reflog, "remote": _remote, "reset": _reset, "restore": _restore, "revert": _picking, "rm": _removal,
    "sparse-checkout": _removal, "stash": _stash, "submodule": _submodule, "switch": _switch,
    "symbolic-ref": _symbolic_ref, "tag": _tag, "worktree": _removal,
}  # fmt: skip


def _confirm(
    words: Sequence[str], letters: str, options: Sequence[str], why: str, otherwise: Verdict = FREE
) -> Verdict:
    return Verdict("confirm", why) if _has(words, letters, *options) else otherwise


def _confirm_word(words: Sequence[str], expected: Sequence[str], why: str) -> Verdict:
    said = any(word.lower() in expected for word in words)
    return Verdict("confirm", why) if said else FREE


def _has(words: Sequence[str], letters: str, *options: str) -> bool:
    """Report whether one of these options is among the words: in full, shortened, in capitals, or as a letter in a
    cluster.
    """
    return any(any(_means(word, option) for option in options) or _holds(word, letters) for word in words)


def _means(word: str, option: str) -> bool:
    """Report whether git could take the word for the option."""
    name = word.lower().partition("=")[0]
    return len(name) > 2 and name.startswith("--") and option.startswith(name)


def _holds(word: str, letters: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and any(letter in word for letter in letters)


def _before_paths(words: Sequence[str]) -> list[str]:
    """The words before ``--``; what follows are paths, whatever they look like."""
    return [*words[: words.index("--")]] if "--" in words else [*words]
