"""YAML as people mean it: `on`, `no` and `yes` are words, `2e-5` is a number, and a key stands once."""

import re
from typing import Any

import yaml

_BOOL, _FLOAT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:float"
_BOOLS = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_FLOATS = re.compile(r"^[-+]?(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)$")


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with booleans and numbers as in YAML 1.2."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping in which no key is given twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_BOOL, _FLOAT)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, _BOOLS, list("tTfF"))
_Loader.add_implicit_resolver(_FLOAT, _FLOATS, list("-+.0123456789"))


def parse_yaml(text: str) -> Any:
    """What the text says; raises `yaml.YAMLError` where it is not YAML."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
