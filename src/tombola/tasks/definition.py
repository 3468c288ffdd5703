"""What a task's YAML file may say: where the data is, how its files are laid out, what to do with them."""

import codecs
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

IGNORED = -100
"""The label of a token that is not to be predicted."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in path:
        raise ValueError(f"{path!r} leaves its folder; give a path below it, without '..'")
    return path


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(f"{name!r} is no encoding that Python knows; e.g. utf-8, utf-16, cp1252") from None


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
    Passages of a masked-lm task may also be the lines of a text file of any other name and of .txt, or a folder of
    .txt files; the sentences of a token-classification task may be in CoNLL's form.
    """

    files: dict[str, Annotated[list[RelativePath], BeforeValidator(_listed), Field(min_length=1)]] = {}
    header: list[str] | None = None  # the columns of files that do not name them in their first row
    map: dict[str, Names] = {}  # our column -> the file's column, or several to be joined by a space
    records: str | None = None  # the key that holds the rows, in a .json with several data sets
    numbered: bool = False  # examples are called by their place: the release's own ids repeat
    values: dict[str, str] = {}  # the file's label -> ours, where it is neither a label's name nor its number
    quoted: bool | None = None  # quotes enclose fields; by default in .csv only
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = (
        None  # else by ending and first lines
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = (
        None  # else UTF-8, or as its first bytes say
    )
    separator: Annotated[str, Field(min_length=1)] = ","  # between several labels of a text in one field
    tag_scheme: Literal["iob2", "iob1", "bioes"] = "iob2"  # how the tags of entities are written
    skip_labels: list[
        str
    ] = []  # rows with these labels are no examples: SNLI's `-` where annotators disagree
    skip_empty: bool = False  # rows with an empty text or label are no examples
    drop_malformed: bool = False  # leave rows out that do not parse, count them, and warn


class Source(Layout):
    """Where a task's data may be: inside the package, in a local folder, on the hub."""

    bundled: RelativePath | None = None
    folder: RelativePath | None = None  # below the data folder (argument or TOMBOLA_DATA)
    hub: str | None = None
    config: str | None = None
    hub_map: dict[str, Names] = {}  # our column -> the hub's, where they differ
    alternatives: list[Layout] = []  # other published layouts of the same folder

    @property
    def layouts(self) -> list[Layout]:
        """Every layout the folder may have, the main one first."""
        return [self, *self.alternatives]


class Holdout(Definition):
    """A split cut out of another one, for releases without it: a fixed share, chosen by a hash of the text.

    So equal texts are never on both sides. `stratified` takes the share of every class, the first in the order of
    the hashes, and not of all examples together.
    """

    of: str
    share: float = Field(gt=0, lt=1)
    stratified: bool = False


class Companions(Definition):
    """Tasks with the same labels on which a model of this one is tried for robustness."""

    ood: list[str] = []
    adversarial: list[str] = []
