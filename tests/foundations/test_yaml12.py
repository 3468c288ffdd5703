"""YAML means what it looks like, and no text makes the reader fail in another way than with a YAMLError."""

import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tombola.foundations.yaml12 import dump_yaml, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("2e-5", 2e-5),
        ("1", 1),
        ("-010", -10),
        ("0x1F", 31),
        ("0o17", 15),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("[=, '<']", ["=", "<"]),
        ("2020-01-01", "2020-01-01"),
        ("2020-99-99", "2020-99-99"),
        ("", None),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
    ],
)
def test_values(text, value):
    assert parse_yaml(text) == value


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "given twice"),
        ("{[1, 2]: 3}", "plain word"),
        ("? {a: b}\n: c", "plain word"),
        ("x: " + "9" * 5000, "cannot be read"),
        ("!!int x", "cannot be read"),
        ("[" * 2000, None),
        ("{a: " * 100 + "1" + "}" * 100, "nested more than"),
        (BOMB, "expands to more than"),
        ("x: &a [*a]", "nested more than"),
        ("a: \0", None),
        ("a: \ud800", "invalid Unicode"),
        ("!!python/object:os.system x", None),
        ("x" * 3_000_000, "characters"),
    ],
)
def test_what_is_wrong_is_a_short_yaml_error_at_once(text, message):
    begun = time.process_time()
    with pytest.raises(yaml.YAMLError, match=message) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 2000
    assert time.process_time() - begun < 5


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(yaml.YAMLError):
        parse_yaml(text)


@given(st.text(alphabet="0123456789eE.+-_:xobaftnly~<=", max_size=8) | st.text(max_size=12))
@example("\x85")
@example("a\u2028b\u2029")
def test_a_text_that_is_written_is_read_back_as_that_text(text):
    written = dump_yaml({"labels": [text], "values": {text: text}}, default_flow_style=None)
    assert parse_yaml(written) == {"labels": [text], "values": {text: text}}


def test_numbers_are_written_as_numbers():
    content = {"rate": 2e-5, "many": 1e30, "share": 0.5, "steps": 10, "shrink": True, "start": None}
    assert parse_yaml(dump_yaml(content)) == content
    assert dump_yaml({"about": "fine", "label": "1e3"}) == "about: fine\nlabel: '1e3'\n"
