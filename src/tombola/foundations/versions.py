"""The versions that a result depends on."""

import platform
from importlib.metadata import version

PACKAGES = ("tombola", "torch", "transformers", "accelerate", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect results."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
