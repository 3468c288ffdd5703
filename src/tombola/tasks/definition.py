"""The schema of task files: the source of the data, the layout of its files, and how to treat them."""

import codecs
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

IGNORED = -100
"""The label of a token that is not predicted."""


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
    """Base class of everything in a task file: unknown keys are rejected, and `1` equals `"1"`."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Layout(Definition):
    """The layout of a data set's rows in its files.

    `files` gives each split's file, or several possible names (`*` allowed; `.gz` is tried too). The reader depends
    on the suffix: .tsv and .txt (tabs, no quoting), .csv, .jsonl, .json, or a folder with one sub-folder per label.
    Passages of a masked-lm task may also be the lines of a text file of any other name and of .txt, or a folder of
    .txt files; the sentences of a token-classification task may be in CoNLL format.
    """

    files: dict[str, Annotated[list[RelativePath], BeforeValidator(_listed), Field(min_length=1)]] = Field(
        {},
        description="the file of each split, or several names that it is known by; relative to the task file",
    )
    header: list[str] | None = Field(
        None, description="the columns of files that do not name them in their first row"
    )
    map: dict[str, Names] = Field(
        {}, description="a column of the task: the file's column, or several to be joined by a space"
    )
    records: str | None = Field(
        None, description="the key that holds the rows, in a .json file with several data sets"
    )
    numbered: bool = Field(False, description="examples are called by their place, not by the column id")
    values: dict[str, str] = Field(
        {}, description="a label as the file writes it: the one of `labels` that it stands for"
    )
    quoted: bool | None = Field(None, description="quotes enclose fields; by default in .csv files only")
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="what separates columns; by default recognised"
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        None, description="such as cp1252; by default UTF-8, or what a byte-order mark says"
    )
    separator: Annotated[str, Field(min_length=1)] = Field(
        ",", description="what separates several labels of a text in one field"
    )
    tag_scheme: Literal["iob2", "iob1", "bioes"] = Field(
        "iob2", description="how the tags of entities are written"
    )
    skip_labels: list[str] = Field(
        [], description="labels whose rows are left out, such as SNLI's `-` where annotators disagree"
    )
    skip_empty: bool = Field(False, description="leave out rows with an empty text or label")
    drop_malformed: bool = Field(
        False, description="leave out rows that cannot be read, count them, and warn"
    )


class Source(Layout):
    """The source of a task's data: the package, a local folder or the hub."""

    bundled: RelativePath | None = Field(
        None, description="a folder of the package; for tasks that come with it"
    )
    folder: RelativePath | None = Field(
        None, description="the folder of a published release, below data.folder or TOMBOLA_DATA"
    )
    hub: str | None = Field(None, description="the data set's id on the hub, where no local folder has it")
    config: str | None = Field(None, description="the data set's configuration on the hub")
    hub_map: dict[str, Names] = Field(
        {}, description="a column of the task: the hub's column, where they differ"
    )
    alternatives: list[Layout] = Field([], description="other layouts in which the same folder is published")

    @property
    def layouts(self) -> list[Layout]:
        """The possible layouts of the folder, the main one first."""
        return [self, *self.alternatives]


class Holdout(Definition):
    """A split held out from another one, for releases without it: a fixed share, chosen by a hash of the text.

    So equal texts are never on both sides. `stratified` takes the share of every class, by hash order, rather than of
    all examples together.
    """

    of: str = Field(description="the split that it is cut out of")
    share: float = Field(gt=0, lt=1, description="how much of that split")
    stratified: bool = Field(False, description="take this share of every class")


class Companions(Definition):
    """Tasks with the same labels, for testing the robustness of a model of this task."""

    ood: list[str] = Field([], description="tasks on other data; recipes name all of them as `ood`")
    adversarial: list[str] = Field(
        [], description="tasks whose texts were changed to mislead models; `adversarial` in recipes"
    )
