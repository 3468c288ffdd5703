"""Who runs the stages of a study: this process, several, or the machines of a Ray cluster.

Every engine takes the same stages and the same store, and gives the same results.
"""

from typing import Annotated

from pydantic import Field

from tombola.engines.local import Local
from tombola.engines.outcome import Failure, Outcome, Watcher
from tombola.engines.ray import Ray

Engine = Annotated[Local | Ray, Field(discriminator="kind")]

__all__ = ["Engine", "Failure", "Local", "Outcome", "Ray", "Watcher"]
