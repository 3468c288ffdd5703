"""An existing mask from a file, or the union or intersection of several. (BERT-Tickets, section 4)"""

from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.search import Found, SearchSettings, StageBuilder, plan


class Given(SearchSettings):
    """Settings of existing masks. The recipe's sparsity does not apply: the mask determines it."""

    method: Literal["given"] = "given"
    masks: tuple[str, ...] = Field(min_length=1, description="ticket folders or mask files")
    combine: Literal["union", "intersection"] = Field("union", description="how to combine several masks")
    base: Literal["same", "any"] = Field(
        "same",
        description="weights that a mask may come from: those of the recipe's model, or any of the same geometry",
    )

    @model_validator(mode="after")
    def _check_coverage(self) -> Self:
        if extra := sorted(self.model_fields_set & set(self.coverage)):
            raise ValueError(f"{extra[0]}: does not apply to a given mask, which has its own")
        return self


@plan(Given)
def given(settings: Given, builder: StageBuilder, sparsity: float) -> Found:
    """Take masks from files: a colleague's ticket, or what several tickets have in common."""
    return Found(builder.given(settings.masks, settings.combine, settings.base))
