"""The dice, tested without a platform: a tool is a function, and its spec is plain data."""

from trunkline_dice import roll_dice


def test_each_die_shows_one_of_its_sides():
    """Rolling three dice shows three numbers from 1 to the number of sides."""
    shown = [int(number) for number in roll_dice.function(count=3, sides=4).split()]
    assert len(shown) == 3
    assert all(1 <= number <= 4 for number in shown)


def test_the_model_receives_schema_and_description():
    """Schema and description come from the signature and the docstring."""
    assert roll_dice.spec.description == "Roll dice and tell what they show."
    assert roll_dice.spec.parameters["properties"]["sides"] == {
        "type": "integer",
        "minimum": 2,
        "maximum": 1000,
        "default": 6,
    }
    assert roll_dice.spec.effect == "read"
