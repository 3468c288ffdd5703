"""A family: BERT under another name."""

from tombola.families import families, register_family

BERT = next(family for family in families() if family.name == "bert")

register_family({**BERT.model_dump(exclude_none=True), "name": "mybert", "model_types": ["mybert"]})
