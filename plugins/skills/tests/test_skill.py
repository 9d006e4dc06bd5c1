"""Any SKILL.md is read as a skill or an issue, and never as anything else."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_skills.skill import Skill, SkillIssue, parse_skill


def made(text: str) -> Skill | SkillIssue:
    return parse_skill("pruning", "/skills/pruning", text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Cut.", "does not begin with frontmatter"),
        ("---\nname: x\n---\nCut.", "no description"),
        ("---\ndescription: ''\n---\n", "no description"),
        ("---\ndescription: [a, b]\n---\n", "no description"),
        ("---\n- description\n---\n", "no table"),
        ("---\ndescription: " + "x" * 1025 + "\n---\n", "more than 1024"),
        ("---\ndescription: a: b\n---\n", "not YAML: mapping values are not allowed here in line 2"),
        ("---\ndescription: !!python/object/apply:os.system ['touch /tmp/x']\n---\n", "no description"),
        ("---\nmore: &more {description: x}\n<<: *more\n---\n", "no description"),
        ("---\na: &a [x,x]\nb: &b [*a,*a]\ndescription: *c\n---\n", "not YAML"),
        ("---\ndescription: x\nmore: " + "[" * 5_000 + "\n---\n", "not YAML"),
        ("---\n# " + "x" * 9_000 + "\ndescription: x\n---\n", "more than 8192"),
        ("---\ndescription: x\n---\n" + "x" * 70_000, "is the limit"),
        ("---\ndescription: x\n", "does not begin with frontmatter"),
    ],
)
def test_MN_T14_an_unusable_skill_reports_the_reason(text: str, why: str) -> None:
    """Missing or malformed frontmatter, too much of anything, and YAML that would run something."""
    issue = made(text)
    assert isinstance(issue, SkillIssue) and why in issue.line and "/skills/pruning/SKILL.md" in issue.line


def test_no_merge_of_merges_grows_and_no_tag_breaks_it() -> None:
    """The lines would make YAML create nine times as many entries each; the tags have values of the wrong type."""
    merges = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 8))
    tracemalloc.start()
    try:
        assert isinstance(made(f"---\ndescription: x\na0: &a0 {{k: v}}\n{merges}---\n"), Skill)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
    for tagged in ("!!bool perhaps", "!!timestamp soon", "!!int ''", "!!float ''"):
        assert isinstance(made(f"---\ndescription: x\nmore: {tagged}\n---\n"), Skill)


def test_a_skill_has_its_folders_name_and_a_short_description() -> None:
    """The name in the file is ignored; a long description is cut in the list."""
    front = "name: root\r\ndescription: |\r\n  When trees\r\n  are bare. " + "x" * 300
    skill = made(f"---\r\n{front}\r\n---\r\nCut.\r\n")
    assert isinstance(skill, Skill) and (skill.name, skill.body) == ("pruning", "Cut.")
    assert skill.line.startswith("- pruning: When trees are bare. x") and len(skill.line) <= 211 + len("- : ")


@given(st.text(), st.text())
def test_no_text_breaks_it(front: str, body: str) -> None:
    """Any text at all is one or the other."""
    for text in (front, f"---\n{front}\n---\n{body}"):
        assert made(text)
