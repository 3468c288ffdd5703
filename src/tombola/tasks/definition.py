"""What a task's YAML file may say: where the data is, how its files are laid out, what to do with them."""

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

Kind = Literal["classification", "regression", "question-answering", "masked-lm"]
IGNORED = -100
"""The label of a token that is not to be predicted."""

COLUMNS: dict[Kind, list[int]] = {
    "classification": [1, 2],
    "regression": [1, 2],
    "question-answering": [2],  # the question and its context
    "masked-lm": [1],
}
"""How many columns of text a task of each kind may have."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in path:
        raise ValueError(f"{path!r} leaves its folder; give a path below it, without '..'")
    return path


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


RelativePath = Annotated[str, Field(min_length=1), AfterValidator(_inside)]
Names = Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]


class Definition(BaseModel):
    """Base of everything in a task file: unknown keys are refused, `1` is as good as `"1"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Layout(Definition):
    """How the rows of a data set stand in its files.

    `files` gives each split's file, or several names it is known by (`*` allowed; `.gz` is tried too). The reader
    goes by the ending: .tsv and .txt (tabs, no quoting), .csv, .jsonl, .json, or a folder of one sub-folder per label.
    Passages of a masked-lm task may also be the lines of a text file of any other name, and of .txt.
    """

    files: dict[str, Annotated[list[RelativePath], BeforeValidator(_listed), Field(min_length=1)]] = {}
    header: list[str] | None = None  # the columns of files that do not name them in their first row
    map: dict[str, Names] = {}  # our column -> the file's column, or several to be joined by a space
    records: str | None = None  # the key that holds the rows, in a .json with several data sets
    numbered: bool = False  # examples are called by their place: the release's own ids repeat
    values: dict[str, str] = {}  # the file's label -> ours, where it is neither a label's name nor its number
    quoted: bool | None = None  # quotes enclose fields; by default in .csv only
    drop_malformed: bool = False  # leave rows out that do not parse, count them, and warn


class Source(Layout):
    """Where a task's data may be: inside the package, in a local folder, on the hub."""

    bundled: RelativePath | None = None
    folder: RelativePath | None = None  # below the data folder (argument or TOMBOLA_DATA)
    hub: str | None = None
    config: str | None = None
    alternatives: list[Layout] = []  # other published layouts of the same folder

    @property
    def layouts(self) -> list[Layout]:
        """Every layout the folder may have, the main one first."""
        return [self, *self.alternatives]


class Holdout(Definition):
    """A split cut out of another one, for releases without it: a fixed share, chosen by a hash of the text."""

    of: str
    share: float = Field(gt=0, lt=1)


class Companions(Definition):
    """Tasks with the same labels on which a model of this one is tried for robustness."""

    ood: list[str] = []
    adversarial: list[str] = []
