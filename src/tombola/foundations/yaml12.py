"""Safe YAML 1.2: `on`, `no` and `12:30` are words, `2e-5` is a number, `010` is ten, and duplicate keys are errors.

Untrusted files are limited in size, depth and aliases, and every problem is a `YAMLError`.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from tombola.errors import TombolaError

LARGEST = 2_000_000
"""Maximum number of characters."""
DEEPEST = 60
"""Maximum nesting depth; a recipe has about six levels."""
MOST_NODES = 200_000
"""Maximum number of values after resolving aliases: nested aliases of a few hundred bytes can expand to billions."""

_BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float"))
_DROPPED = (_BOOL, _INT, _FLOAT, "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_BOOLS = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_BREAKS = re.compile("[\x85\u2028\u2029]")
_INTS = re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$")
_FLOATS = re.compile(r"^[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)$")


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with booleans and numbers as in YAML 1.2, and dates as text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; keys must be plain and unique."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value[:80]!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        """Construct an integer, which is decimal unless it begins with 0o or 0x."""
        text = str(self.construct_scalar(node))
        return int(text, 0 if text[:2] in ("0o", "0x") else 10)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, _BOOLS, list("tTfF"))
_Loader.add_implicit_resolver(_INT, _INTS, list("-+0123456789"))
_Loader.add_implicit_resolver(_FLOAT, _FLOATS, list("-+.0123456789"))
_Loader.add_constructor(_INT, _Loader.construct_integer)


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, which quotes a text that any version of YAML would read as something else."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Write a text; in double quotes, as escapes, if it has line breaks that other quotes fold into spaces."""
        style = '"' if _BREAKS.search(text) else None
        node: yaml.ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", text, style)
        return node


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_implicit_resolver(_INT, _INTS, list("-+0123456789"))
_Dumper.add_implicit_resolver(_FLOAT, _FLOATS, list("-+.0123456789"))


def dump_yaml(value: Any, **options: Any) -> str:
    """Return a value as YAML that `parse_yaml` reads back unchanged, with keys in their order.

    Args:
        value: Mappings, lists and plain values.
        **options: Options of PyYAML's `dump`, such as `width`.
    """
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, **options)
    return text


def parse_yaml(text: str) -> Any:
    """Parse a YAML text.

    Raises:
        yaml.YAMLError: If the text is not YAML, or larger than any recipe or task file needs to be.
    """
    if len(text) > LARGEST:
        raise yaml.YAMLError(f"it has {len(text):,} characters; at most {LARGEST:,} are read")
    try:
        text.encode("utf-8")
        loader = _Loader(text)
    except UnicodeEncodeError:
        raise yaml.YAMLError("it contains invalid Unicode") from None
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _require_small(node)
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep") from None
    except (ValueError, TypeError, OverflowError) as error:
        raise yaml.YAMLError(f"a value cannot be read ({str(error)[:200]})") from None
    finally:
        loader.dispose()


def read_yaml(path: Path, what: str, error: type[TombolaError]) -> Any:
    """Read a YAML file.

    Args:
        path: The file.
        what: What the file describes, for the error message.
        error: The exception to raise if it cannot be read.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise error(f"{path}: cannot read the {what} ({problem.strerror}).") from None
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise error(f"{path}: not a YAML file ({' '.join(str(problem).split())}).") from None


def _require_small(root: yaml.Node) -> None:
    """Reject excessive nesting and aliases before anything is constructed."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {DEEPEST} levels deep", problem_mark=node.start_mark
            )
        if id(node) in sizes:
            return sizes[id(node)]
        total = 1
        if isinstance(node, yaml.SequenceNode):
            total += sum(size(child, depth + 1) for child in node.value)
        elif isinstance(node, yaml.MappingNode):
            total += sum(size(child, depth + 1) for pair in node.value for child in pair)
        if total > MOST_NODES:
            raise yaml.MarkedYAMLError(
                problem=f"expands to more than {MOST_NODES:,} values", problem_mark=node.start_mark
            )
        sizes[id(node)] = total
        return total

    size(root, 0)
