"""The versions that a result depends on."""

import platform
from importlib.metadata import version

PACKAGES = ("tombola", "torch", "transformers", "accelerate", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Python's version, and those of the packages that decide results."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
