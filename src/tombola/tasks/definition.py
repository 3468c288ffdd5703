"""The schema of task files: the source of the data, the layout of its files, and how to treat them."""

import codecs
import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

IGNORED = -100
"""The label of a token that is not predicted."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or PureWindowsPath(path).drive:
        raise ValueError(f"{path!r} leaves its folder; use a path below it, without '..'")
    return path


def _known_encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ValueError(
            f"{name!r} is not an encoding that Python knows, such as utf-8, utf-16, cp1252"
        ) from None


def _language_code(name: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", name):
        raise ValueError(f"{name!r} is not the code of a language, such as de, zh-Hant or und (unknown)")
    return name


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Language = Annotated[str, AfterValidator(_language_code)]
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
        description="file of each split, or several names to look for; relative to the task file",
    )
    header: list[str] | None = Field(None, description="column names, for files without a header row")
    map: dict[str, Names] = Field(
        {}, description="maps columns of the task to columns of the file, or to several joined by a space"
    )
    records: str | None = Field(None, description="key of the rows in a .json file with several data sets")
    numbered: bool = Field(False, description="identify examples by their position, not by the column `id`")
    values: dict[str, str] = Field({}, description="maps labels as written in the file to `labels`")
    quoted: bool | None = Field(
        None, description="whether quotes enclose fields; by default in .csv files only"
    )
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = Field(
        None, description="column separator; by default detected"
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = Field(
        None, description="character encoding, such as cp1252; by default UTF-8, or that of a byte-order mark"
    )
    separator: Annotated[str, Field(min_length=1)] = Field(
        ",", description="separator of several labels in one field"
    )
    decimal: Literal[".", ","] = Field(
        ".", description="decimal mark of the numbers of a regression task; with a comma, 3,5 is 3.5"
    )
    tag_scheme: Literal["iob2", "iob1", "bioes"] = Field("iob2", description="scheme of the entity tags")
    skip_labels: list[str] = Field(
        [], description="labels whose rows to skip, such as SNLI's `-` where annotators disagree"
    )
    skip_empty: bool = Field(False, description="skip rows with an empty text or label")
    drop_malformed: bool = Field(False, description="skip rows that cannot be read, count them, and warn")


class Source(Layout):
    """The source of a task's data: the package, a local folder or the hub."""

    bundled: RelativePath | None = Field(None, description="folder inside the package, for bundled tasks")
    folder: RelativePath | None = Field(
        None, description="folder of a published release, below data.folder or TOMBOLA_DATA"
    )
    hub: str | None = Field(None, description="id of the data set on the hub, used if no local folder has it")
    config: str | None = Field(None, description="configuration of the data set on the hub")
    hub_map: dict[str, Names] = Field(
        {}, description="maps columns of the task to the hub's, where they differ"
    )
    alternatives: list[Layout] = Field([], description="other published layouts of the same folder")

    @property
    def layouts(self) -> list[Layout]:
        """The possible layouts of the folder, the main one first."""
        return [self, *self.alternatives]


class Holdout(Definition):
    """A split held out from another one, for releases without it: a fixed share, chosen by a hash of the text.

    So equal texts are never on both sides. `stratified` takes exactly this share of every class, or of all examples if
    there are no classes; otherwise the share is met on average only.
    """

    of: str = Field(description="split to take it from")
    share: float = Field(gt=0, lt=1, description="share of that split to take")
    stratified: bool = Field(False, description="take this share of each class")


class Companions(Definition):
    """Tasks with the same labels, for testing the robustness of a model of this task."""

    ood: list[str] = Field([], description="tasks on other data; `ood` in recipes stands for all of them")
    adversarial: list[str] = Field(
        [],
        description="tasks whose texts were changed to mislead models; `adversarial` in recipes stands for all of them",
    )
