"""The engines that run stages: this process, several on this machine, or a Ray cluster.

Every engine takes the same stages and the same store, and produces the same results.
"""

from typing import Annotated

from pydantic import Field

from tombola.pipeline.engines.local import Local
from tombola.pipeline.engines.ray import Ray

Engine = Annotated[Local | Ray, Field(discriminator="kind")]

__all__ = ["Engine", "Local", "Ray"]
