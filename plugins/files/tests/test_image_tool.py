"""describe_image: the files that are sent to the model, and those that never are."""

from pathlib import Path

from file_calls import refusal, run

from trunkline import CompletionError
from trunkline.testing.contexts import tool_context
from trunkline.testing.scripted_completer import ScriptedCompleter
from trunkline_files import image_tool

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\1\2\xff" * 10


def test_the_model_is_given_the_picture_and_the_question(tmp_path: Path) -> None:
    """The bytes as they are, their type by content and not by name, the purpose ``vision``, and a bounded answer."""
    (tmp_path / "photo.jpg").write_bytes(PNG)
    model = ScriptedCompleter(["A red boat.", "A blue boat."])
    given = tool_context(tmp_path, model=model)
    found = run(image_tool.describe_image, tmp_path, "photo.jpg", "What colour is the boat?", given=given)
    assert found == "A red boat."
    run(image_tool.describe_image, tmp_path, "photo.jpg", given=given)
    first, second = model.questions
    (message,) = first.messages
    assert (message.images[0].media_type, message.images[0].data) == ("image/png", PNG)
    assert message.content.endswith("What colour is the boat?")
    assert (first.purpose, first.max_tokens) == ("vision", 4_000)
    assert "Describe this picture" in second.messages[0].content


def test_a_file_that_is_not_a_picture_is_not_sent(tmp_path: Path) -> None:
    """The cases are text with a picture's name, other binary data, a folder, an empty file, and one that is too
    large."""
    (tmp_path / "text.png").write_text("just text")
    (tmp_path / "svg.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "bmp.bmp").write_bytes(b"BM\0\0\0\0")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "large.png").write_bytes(PNG + b"\0" * image_tool.LARGEST)
    model = ScriptedCompleter()
    given = tool_context(tmp_path, model=model)
    for name, why in (
        ("text.png", "PNG, JPEG, GIF or WebP"), ("svg.svg", "not a picture"), ("bmp.bmp", "not a picture"),
        ("empty.png", "not a picture"), ("folder.png", "is a folder"), ("absent.png", "There is no 'absent.png'"),
        ("large.png", "larger than 5 MB"),
    ):  # fmt: skip
        assert why in refusal(image_tool.describe_image, tmp_path, name, given=given)
    assert model.questions == []


def test_the_reason_for_a_missing_description_is_reported(tmp_path: Path) -> None:
    """The error is the provider's reason, that the answer had no words, or that there is no model."""
    (tmp_path / "a.png").write_bytes(PNG)
    broken = CompletionError("no_vision_model", "Set vision_model.")

    class Blind(ScriptedCompleter):
        async def ask(self, question: object) -> object:  # type: ignore[override]
            raise broken

    text = refusal(image_tool.describe_image, tmp_path, "a.png", given=tool_context(tmp_path, model=Blind()))
    assert text == "'a.png' was not described. Set vision_model."
    silent = tool_context(tmp_path, model=ScriptedCompleter(["  "]))
    assert "returned no text" in refusal(image_tool.describe_image, tmp_path, "a.png", given=silent)
    assert "No model can be asked" in refusal(image_tool.describe_image, tmp_path, "a.png")
