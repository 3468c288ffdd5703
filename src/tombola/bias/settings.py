"""What a recipe may say about the bias model: a weak model of what is spurious in the training data. (SRNets, §3)"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tombola.foundations.settings import Settings


class FittedBias(Settings):
    """What every bias model that is fitted here has: how its training data gets its predictions."""

    predictions: Literal["out_of_fold", "in_sample"] = Field(
        "out_of_fold",
        description="out_of_fold: by a model that has not seen the example; in_sample: as published",
    )
    folds: int = Field(5, ge=2, description="parts of the training data that are predicted in turn")
    strength: float = Field(1.0, gt=0, description="inverse of the L2 penalty on the linear model's weights")


class LexicalOverlap(FittedBias):
    """Logistic regression on how much of the second text stands in the first. (Clark et al. 2019)"""

    method: Literal["lexical_overlap"]
    label: str | None = Field(
        None, description="the label that overlap speaks for; else entailment, else the first"
    )
    features: Literal["ours", "published"] = Field(
        "ours",
        description="both: all words inside, contiguous, share of words, mean and least similarity; ours: log length "
        "ratio; published: second-least similarity, log length difference, and a strength of 100 unless it is set",
    )
    balanced: bool = Field(
        True,
        description="as if the label and the rest were equally frequent, as published; false keeps the frequencies "
        "of the training data, which a weak model needs: it would learn to deny the label as often",
    )
    vectors: str = Field(
        "minilm", description="the model whose input embeddings tell how alike two words are"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_strong_as_published(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and raw.get("features") == "published":
            return {"strength": 100.0, **raw}
        return raw

    @model_serializer(mode="wrap")
    def _with_its_strength(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The strength depends on the features, so it may not be taken for a default."""
        own = {"strength": self.strength} if self.features == "published" else {}
        return {**own, **fields(self)}


class OneSide(FittedBias):
    """A linear model over the words of one text of a pair alone: the claim, the hypothesis. (Schuster et al. 2019)"""

    method: Literal["one_side"]
    column: str | None = Field(None, description="the text that is read; else the last of the task's")
    ngrams: int = Field(2, ge=1, le=4, description="longest run of words that is a feature")


class Shallow(FittedBias):
    """A linear model over the words of all texts, fitted to few examples, for any task. (Utama et al. 2020)"""

    method: Literal["shallow"]
    examples: int | None = Field(2000, gt=0, description="random training examples that it sees; null: all")
    ngrams: int = Field(1, ge=1, le=4, description="longest run of words that is a feature")


class SyntheticPrefix(FittedBias):
    """The known bias of `data.synthetic_bias`: a linear model on which prefix an example has, if any."""

    method: Literal["synthetic"]


class BiasFile(Settings):
    """Log-probabilities from elsewhere: .npy in the order of the training data, .json or .pkl by example id."""

    unhashed: ClassVar[frozenset[str]] = frozenset({"path"})

    method: Literal["file"]
    path: str = Field(
        description="an .npy of shape (examples, labels), or a .json or plain .pkl of an id's list of numbers"
    )
    labels: tuple[str, ...] | None = Field(
        None,
        description="the labels of the file's columns, in their order; else the task's, in the task's order",
    )
    missing: Literal["error", "drop", "uniform"] = Field(
        "error",
        description="examples that the file does not have: stop; leave them out of all training; or take all labels "
        "to be equally likely",
    )


BiasModel = Annotated[
    LexicalOverlap | OneSide | Shallow | SyntheticPrefix | BiasFile, Field(discriminator="method")
]
