"""Choices: a field takes any registered kind, and complaints are about the chosen kind alone."""

import pickle
from typing import ClassVar, Literal

import pytest
from pydantic import Field, ValidationError

from tombola.errors import RecipeError
from tombola.foundations.choices import Choice, Choices
from tombola.foundations.settings import Settings, checked, settings_type

shapes: Choices = Choices("shape")


class Shape(Choice):
    choices: ClassVar = shapes


@shapes.register
class Circle(Shape):
    """A circle."""

    kind: Literal["circle"] = "circle"
    radius: float = Field(1.0, gt=0, description="how large")


@shapes.register
class Square(Shape):
    """A square."""

    kind: Literal["square"] = "square"
    side: float = Field(description="how long")


class Drawing(Settings):
    main: Shape = Circle()
    frame: Shape | None = None
    rest: tuple[Shape, ...] = ()


colours: Choices = Choices("colour")


class Colour(Choice):
    choices: ClassVar = colours
    tag: ClassVar[str] = "name"
    usual: ClassVar[str | None] = "red"
    by_name: ClassVar[bool] = True


@colours.register
class Red(Colour):
    name: Literal["red"] = "red"
    shade: int = 1


RAW = {
    "main": {"kind": "square", "side": 2},
    "frame": {"kind": "circle"},
    "rest": [{"kind": "circle", "radius": 3}],
}


def test_raw_mappings_become_the_kinds_that_they_name() -> None:
    drawing = checked(Drawing, RAW)
    assert drawing == Drawing(main=Square(side=2), frame=Circle(), rest=(Circle(radius=3),))
    assert Drawing(main=Square(side=1)).main.side == 1


def test_the_base_builds_every_kind() -> None:
    assert Shape(kind="circle", radius=2) == Circle(radius=2)
    assert type(Shape(kind="square", side=1)) is Square
    assert Colour(shade=3) == Red(shade=3)
    with pytest.raises(ValidationError, match="unknown shape 'cube'"):
        Shape(kind="cube")


def test_they_are_written_with_their_tag_hashed_and_pickled() -> None:
    drawing = checked(Drawing, RAW)
    assert drawing.canonical() == {
        "main": {"kind": "square", "side": 2.0},
        "frame": {"kind": "circle"},
        "rest": [{"kind": "circle", "radius": 3.0}],
    }
    assert checked(Drawing, drawing.canonical()) == drawing
    assert Drawing().canonical() == {}
    assert len({drawing, checked(Drawing, RAW)}) == 1
    assert pickle.loads(pickle.dumps(drawing)) == drawing


def test_a_name_alone_stands_for_a_kind_where_that_is_allowed() -> None:
    class Paint(Settings):
        colour: Colour

    assert checked(Paint, {"colour": "red"}).colour == Red()
    assert checked(Paint, {"colour": {"shade": 2}}).colour == Red(shade=2)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"main": "circle"}, "main: takes a mapping with a kind, one of circle, square; not 'circle'"),
        ({"main": {"radius": 1}}, "main: needs a kind, one of circle, square"),
        ({"frame": {"kind": "sqare"}}, "frame: unknown shape 'sqare'. Did you mean 'square'?"),
        ({"frame": {"kind": ["square"]}}, "frame: unknown shape \"['square']\". Did you mean 'square'?"),
        ({"main": {"kind": "square"}}, "main.side: is required (how long)"),
        ({"main": {"kind": "circle", "radius": 0}}, "main.radius: must be greater than 0, not 0"),
        ({"main": {"kind": "circle", "side": 1}}, "main: unknown key 'side'. Valid: kind, radius."),
        (
            {"rest": [{"kind": "circle"}, {"kind": "circle", "raduis": 1}]},
            "rest.1: unknown key 'raduis'. Did you mean 'radius'?",
        ),
    ],
)
def test_a_mistake_is_one_sentence_about_the_chosen_kind(raw: dict, sentence: str) -> None:
    with pytest.raises(RecipeError) as caught:
        checked(Drawing, raw)
    assert str(caught.value) == sentence


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        checked(
            Drawing, {"main": {"kind": "cube"}, "frame": {"kind": "circle", "radius": -1, "r": 1}, "rset": []}
        )
    assert str(caught.value).split("\n  ") == [
        "4 mistakes:",
        "main: unknown shape 'cube'. Valid: circle, square.",
        "frame.radius: must be greater than 0, not -1",
        "frame: unknown key 'r'. Valid: kind, radius.",
        "recipe: unknown key 'rset'. Did you mean 'rest'?",
    ]


def test_long_lists_of_mistakes_end() -> None:
    error = RecipeError(*(f"mistake {number}" for number in range(30)), "mistake 0")
    lines = str(error).split("\n  ")
    assert (lines[0], lines[17], lines[-1], len(lines)) == ("30 mistakes:", "mistake 16", "and 13 more", 19)
    assert len(error.mistakes) == 30


def test_the_json_schema_lists_the_kinds() -> None:
    schema = Drawing.model_json_schema()
    kinds = [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Square"}]
    assert schema["properties"]["main"]["anyOf"] == kinds
    assert schema["properties"]["frame"]["anyOf"] == [*kinds, {"type": "null"}]
    assert schema["$defs"]["Square"]["required"] == ["side"]
    assert Colour.model_json_schema()["anyOf"][0] == {"const": "red", "type": "string"}


def test_raw_input_leads_to_the_settings_class_it_is_meant_for() -> None:
    annotation = Drawing.model_fields["frame"].annotation
    assert settings_type(annotation, {"kind": "square"}) is Square
    assert settings_type(annotation, {"kind": "circle"}) is Circle
