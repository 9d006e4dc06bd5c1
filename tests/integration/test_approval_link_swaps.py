"""A yes is for the file that it was given for: a name that comes to mean another file is asked about again."""

from pathlib import Path

import pytest

from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.testing.platform import TurnAnswer, platform

from .approval_helpers import asked_by, asking, decide, question_of, results, write

pytestmark = pytest.mark.anyio


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link to one of two folders outside the workspace."""
    for name in ("drafts", "accounts"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "drafts")
    return tmp_path / "link"


def swap(link: Path) -> None:
    link.unlink()
    link.symlink_to(link.parent / "accounts")


def failed(answer: TurnAnswer) -> bool:
    return any(isinstance(event, ToolEnded) and event.error for event in answer.events)


async def test_a_lasting_approval_ends_when_its_link_is_swapped(
    provider: str, tmp_path: Path, link: Path
) -> None:
    """The intended file is written without approval, by any name that leads there; a later target of the same name
    needs approval, and so does a folder that became a link."""
    config = asking(provider, **{"permissions.scope": "system"})
    async with platform(tmp_path / "home", config=config) as running:
        accepted, asked = await asked_by(running, write(f"{link}/deep/a.md", "one"))
        assert str(tmp_path / "drafts") in asked.detail.covers
        await decide(running.gateway, asked, True, "always")
        await running.answer(accepted)
        for folder in ("link", "drafts", "accounts/../drafts"):
            path = f"{link.parent}/{folder}/deep/a.md"
            assert not failed(await running.say(write(path, "two")))
        swap(link)
        for path in (f"{link}/deep/a.md", f"{link.parent}/drafts/../link/deep/a.md"):
            accepted, asked = await asked_by(running, write(path, "three"))
            await decide(running.gateway, asked, False)
            await running.answer(accepted)
        (tmp_path / "drafts").rename(tmp_path / "old")
        (tmp_path / "drafts").symlink_to(tmp_path / "accounts")
        accepted, asked = await asked_by(running, write(f"{link.parent}/drafts/deep/a.md", "four"))
        await decide(running.gateway, asked, False)
        await running.answer(accepted)
        assert not (tmp_path / "accounts" / "deep" / "a.md").exists()


async def test_an_approval_does_not_cover_a_later_target_of_its_link(
    provider: str, tmp_path: Path, link: Path
) -> None:
    """The decision may come late; it allows the file that the name meant when the person was asked."""
    config = asking(provider, **{"permissions.scope": "system"})
    async with platform(tmp_path / "home", config=config) as running:
        accepted = await running.send(write(f"{link}/deep/a.md"))
        asked = await question_of(running, accepted)
        swap(link)
        await decide(running.gateway, asked, True)
        answer = await running.answer(accepted)
        assert "approval is for another call" in results(answer.events)[0]
        assert not (tmp_path / "accounts" / "deep" / "a.md").exists()


async def test_a_name_of_the_workspace_leads_through_no_link(provider: str, tmp_path: Path) -> None:
    """There a yes needs no more: a link that takes the place of a file or folder is not followed, and ``..`` is
    refused."""
    async with platform(tmp_path / "home", config=asking(provider)) as running:
        accepted, asked = await asked_by(running, write("a/b.txt"))
        await decide(running.gateway, asked, True, "always")
        await running.answer(accepted)
        place = running.home.workspace("main")
        (place / "secret").mkdir()
        (place / "a").rename(place / "before")
        (place / "a").symlink_to(place / "secret")
        assert "symbolic link" in results((await running.say(write("a/b.txt"))).events)[0]
        (place / "a").unlink()
        (place / "a").mkdir()
        (place / "a" / "b.txt").symlink_to(place / "secret" / "b.txt")
        assert "symbolic link" in results((await running.say(write("a/b.txt"))).events)[0]
        assert "'..'" in results((await running.say(write("a/../a/b.txt"))).events)[0]
        (place / "a" / "b.txt").unlink()
        (place / "secret" / "b.txt").write_text("kept")
        (place / "a" / "b.txt").hardlink_to(place / "secret" / "b.txt")
        assert not failed(await running.say(write("a/b.txt", "new")))
        assert (place / "secret" / "b.txt").read_text() == "kept"
