"""The history that an export takes along, in a repository of its own that borrows the memory's objects.

It is the memory's own history wherever that can be carried. Where it cannot (``fit``), what no memory takes in is left
out by name and the commits from there on are written anew, here: the memory itself is not touched.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from trunkline.api.importer import ImportGap
from trunkline_git_store.purge.history_rewrite import HistoryRewrite
from trunkline_git_store.repository import Repository
from trunkline_git_store.transfer.tree_rows import (
    FOLDER,
    MAX_BLOB_BYTES,
    MAX_TREE_BYTES,
    SUBMODULE,
    TreeRow,
    is_sorted,
    parse_raw_rows,
    parse_rows,
    row_problem,
)

EXPORTED_REFERENCES = ("refs/heads/", "refs/tags/")
LOST = "which is lost: run trunkline memory doctor"
TWICE = "which is duplicated or out of order"


class ExportHistory:
    """The part of a memory's history that can be exported. ``branch`` is the exported one, ``left_out`` the
    rest."""

    def __init__(self, source: Repository, folder: Path) -> None:
        pygit2.init_repository(str(folder), bare=True).free()
        borrowed = folder / "objects" / "info" / "alternates"
        borrowed.write_text(f"{(source.folder / 'objects').resolve()}\n")
        self.left_out: list[ImportGap] = []
        self.root = folder
        self.repository = Repository(folder)
        self.branch, head = _checked_out(source)
        self.references = {self.branch: head, **self._others(source.git)}
        self._create_references()
        self.objects = self._clean()
        self.head = self.references[self.branch]

    def close(self) -> None:
        """Let go of file handles."""
        self.repository.close()

    def _others(self, git: pygit2.Repository) -> dict[str, pygit2.Oid]:
        """Branches and tags besides the one that is exported; those that lead to no commit are left out."""
        found: dict[str, pygit2.Oid] = {}
        for name in git.references:
            if not name.startswith(EXPORTED_REFERENCES) or name == self.branch:
                continue
            try:
                reference = git.references[name].resolve()
                git[reference.target].peel(pygit2.Commit)
                found[name] = pygit2.Oid(hex=str(git.references[name].target))
            except (KeyError, ValueError, pygit2.GitError):
                if isinstance(git.references[name].target, pygit2.Oid):
                    self.left_out.append(ImportGap(what=name, why="it does not point to a commit"))
        return found

    def _create_references(self) -> None:
        """Let the repository here have the branches and tags, so that packing knows which object is whose."""
        for name, target in self.references.items():
            self.repository.git.references.create(name, target, force=True)
        self.repository.git.set_head(self.branch)

    def _clean(self) -> list[pygit2.Oid]:
        """Rewrite what cannot be exported as it is; return all exported objects."""
        survey = _Survey(self.repository.git)
        objects = list(survey.reach(self.references.values()))
        if not survey.odd:
            return objects
        cleaning = _ExportRewrite(self.repository.git, survey)
        self.references |= {name: new for name, (_, new) in cleaning.run().items()}
        self._create_references()
        self.left_out += [
            ImportGap(what=path, why=f"it is left out of the archive's history, {why}")
            for path, why in sorted(survey.named.items())
        ]
        return list(_Survey(self.repository.git).reach(self.references.values()))


def _checked_out(source: Repository) -> tuple[str, pygit2.Oid]:
    """The branch and its newest commit; a memory that is on no branch is exported as one."""
    git = source.git
    name = f"refs/heads/at-{str(git.head.target)[:10]}" if git.head_is_detached else source.branch()
    target = git.head.target
    assert isinstance(target, pygit2.Oid)
    return name, target


class _Survey:
    """Looks at every object that some commits lead to. ``odd`` are the places in a folder of the rows that cannot be
    carried, by folder; ``named`` says of each path of theirs why.

    Each commit has its own folders, which are alike but for a row or two: a row that was looked at costs little.
    """

    def __init__(self, git: pygit2.Repository) -> None:
        self._git = git
        self._odb = git.odb
        self._visited: set[bytes] = set()
        self._row_problems: dict[tuple[bytes, bytes], str] = {}
        self.odd: dict[pygit2.Oid, set[int]] = {}
        self.named: dict[str, str] = {}

    def reach(self, tips: Iterable[pygit2.Oid]) -> Iterator[pygit2.Oid]:
        """The objects that can be carried."""
        waiting = list(tips)
        while waiting:
            oid = waiting.pop()
            if oid.raw in self._visited:
                continue
            self._visited.add(oid.raw)
            yield oid
            found = self._git[oid]
            if isinstance(found, pygit2.Commit):
                waiting += found.parent_ids
                yield from self._folders(found.tree_id)
            elif isinstance(found, pygit2.Tag):
                waiting.append(found.target)

    def _folders(self, top: pygit2.Oid) -> Iterator[pygit2.Oid]:
        waiting = [(top, "")]
        while waiting:
            tree, place = waiting.pop()
            if tree.raw in self._visited:
                continue
            self._visited.add(tree.raw)
            yield tree
            before, names = b"", set[bytes]()
            found = parse_raw_rows(self._odb.read(tree)[1])
            ordered = is_sorted(found)
            for number, (mode, name, raw) in enumerate(found):
                if ordered and raw in self._visited and self._row_problems.get((mode, name)) == "":
                    continue
                row = TreeRow(mode, name, pygit2.Oid(raw=raw))
                twice = not ordered and (row.sort_key <= before or row.name in names)
                fault = TWICE if twice else self._fault(row)
                if fault:
                    self.odd.setdefault(tree, set()).add(number)
                    self.named.setdefault(f"{place}{row.display_name}", fault)
                    continue
                before = row.sort_key
                names.add(row.name)
                if row.mode == FOLDER:
                    waiting.append((row.oid, f"{place}{row.display_name}/"))
                elif row.mode != SUBMODULE and raw not in self._visited:
                    self._visited.add(raw)
                    yield row.oid

    def _fault(self, row: TreeRow) -> str:
        """Return why a row cannot be exported; "" when it can."""
        known = row.mode, row.name
        fault = self._row_problems.get(known)
        if fault is None:
            fault = self._row_problems[known] = row_problem(row)
        if fault or row.mode == SUBMODULE or row.oid.raw in self._visited:
            return fault
        try:
            kind, size = self._odb.read_header(row.oid)
        except (KeyError, pygit2.GitError):
            return LOST
        if kind != (ObjectType.TREE if row.mode == FOLDER else ObjectType.BLOB):
            return LOST
        too_large = size > (MAX_TREE_BYTES if row.mode == FOLDER else MAX_BLOB_BYTES)
        return f"which is too large ({size // 1024 // 1024} MB)" if too_large else ""


class _ExportRewrite(HistoryRewrite):
    """Takes out what a survey found odd."""

    def __init__(self, git: pygit2.Repository, survey: _Survey) -> None:
        super().__init__(git)
        self._odd = survey.odd
        self._clean: dict[pygit2.Oid, pygit2.Oid | None] = {}

    def _filter_tree(self, tree: pygit2.Oid) -> tuple[pygit2.Oid | None, frozenset[str]]:
        """Deepest first, without recursion: folders may be nested as deep as a path may be long."""
        waiting = [tree]
        while waiting:
            folder = waiting[-1]
            below = [row for row in self._kept(folder) if row.mode == FOLDER and row.oid not in self._clean]
            if below and folder not in self._clean:
                waiting += [row.oid for row in below]
                continue
            waiting.pop()
            if folder not in self._clean:
                self._clean[folder] = self._written(folder)
        return self._clean[tree], frozenset()

    def _kept(self, folder: pygit2.Oid) -> list[TreeRow]:
        found = enumerate(parse_rows(self._git.odb.read(folder)[1]))
        odd = self._odd.get(folder, set())
        return [row for number, row in found if number not in odd]

    def _written(self, folder: pygit2.Oid) -> pygit2.Oid | None:
        data: bytes = self._git.odb.read(folder)[1]
        new: list[TreeRow] = []
        for row in self._kept(folder):
            oid = self._clean[row.oid] if row.mode == FOLDER else row.oid
            if oid is not None:
                new.append(row._replace(oid=oid))
        text = b"".join(b"%b %b\0%b" % (row.mode, row.name, row.oid.raw) for row in new)
        if text == data:
            return folder
        return self._git.write(ObjectType.TREE, text) if new else None
