"""bf16 is used only where a trial ended well, with the right numbers, and faster."""

import logging
import subprocess
import sys

import pytest

from tests.foundations.hardware.stand_ins import UNUSED, killed, printing, program, timed
from tombola.errors import TombolaError
from tombola.foundations.hardware import Verdict, precision, probe_precision, resolve_precision
from tombola.foundations.hardware.machine import Processor, processor


def probe(command: list[str], monkeypatch: pytest.MonkeyPatch) -> Verdict:
    monkeypatch.setattr(precision, "TRIAL", command)
    return probe_precision(threads=1, device="cpu")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (timed([1.8, 1.9], [1.0, 1.1]), Verdict("bf16", "bf16 was 1.8 x faster than fp32", None, 1.8, 1.0)),
        (timed([1.1, 1.1], [1.0, 1.0]), Verdict("bf16", "bf16 was 1.1 x faster than fp32", None, 1.1, 1.0)),
        (
            timed([1.09, 1.2], [1.0, 1.0]),
            Verdict("fp32", "bf16 was less than 1.1 x faster than fp32", None, 1.09, 1.0),
        ),
        (timed([1.0, 1.2], [1.4, 1.5]), Verdict("fp32", "bf16 was 1.4 x slower than fp32", None, 1.0, 1.4)),
        (
            timed([1.0, 1.0], [1.02, 1.5]),
            Verdict("fp32", "bf16 was 1.02 x slower than fp32", None, 1.0, 1.02),
        ),
    ],
    ids=["faster", "just enough", "not enough", "slower", "a little slower"],
)
def test_bf16_must_be_a_tenth_faster(
    command: list[str], expected: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe(command, monkeypatch) == expected


def test_one_lucky_round_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = probe(timed([1.0, 1.0, 1.0], [0.5, 1.0, 1.0]), monkeypatch)
    assert (verdict.precision, verdict.reason) == ("fp32", "bf16 was less than 1.1 x faster than fp32")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"finite": False}, "bf16 gave non-finite numbers"),
        ({"loss_difference": None}, "bf16 gave non-finite numbers"),
        ({"loss_difference": 0.021}, "the loss in bf16 differed by 2% from that in fp32"),
        ({"gradient_difference": 0.43}, "the gradient in bf16 differed by 43% from that in fp32"),
        ({"gradient_difference": float("nan")}, "bf16 gave non-finite numbers"),
    ],
)
def test_fast_but_wrong_numbers_mean_fp32(
    other: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe(timed([2.0], [1.0], **other), monkeypatch) == Verdict("fp32", reason, None, 2.0, 1.0)


@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV", "SIGKILL"])
def test_a_trial_killed_by_a_signal_means_fp32(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(killed(name), monkeypatch) == Verdict(
        "fp32", f"the bf16 trial was killed by {name}", name, fp32_seconds=0.5
    )


def test_a_trial_killed_in_fp32_is_not_blamed_on_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = probe(killed("SIGILL", after_fp32=False), monkeypatch)
    assert verdict == Verdict("fp32", "the fp32 trial was killed by SIGILL before bf16 was tried", "SIGILL")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (printing("warming up", "{not JSON"), "the bf16 trial gave no result (exit code 0)"),
        (printing({"fp32_seconds": "fast"}), "the bf16 trial gave no result (exit code 0)"),
        (printing({"fp32_seconds": [1.0]}), "the bf16 trial gave no result (exit code 0)"),
        (
            printing({"fp32_seconds": [1.0], "bf16_seconds": [0]}),
            "the bf16 trial gave no result (exit code 0)",
        ),
        (program("raise ValueError"), "the bf16 trial gave no result (exit code 1)"),
        (printing({"error": "no bf16"}, then="sys.exit(1)"), "the bf16 trial failed (no bf16)"),
        (["/no/such/python"], "the bf16 trial could not start (No such file or directory)"),
    ],
)
def test_a_trial_without_a_result_means_fp32(
    command: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = probe(command, monkeypatch)
    assert (verdict.precision, verdict.reason, verdict.crashed) == ("fp32", reason, None)


def test_lines_that_are_not_json_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    command = timed([2.0], [1.0])
    assert probe(program(f"print('a warning'); {command[-1]}"), monkeypatch).precision == "bf16"


def test_a_trial_that_hangs_means_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "PATIENCE", 1.0)
    verdict = probe(printing({"fp32_seconds": [1.0]}, then="time.sleep(60)"), monkeypatch)
    assert verdict == Verdict("fp32", "the bf16 trial did not finish within 1 s, on a busy machine")


def test_the_trial_gets_the_threads_and_the_device_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    then = "import json; print(json.dumps({'error': ' '.join(sys.argv[1:])}))"
    monkeypatch.setattr(precision, "TRIAL", printing(then=then))
    assert (
        probe_precision(threads=3, device="cpu").reason == "the bf16 trial failed (--threads 3 --device cpu)"
    )


def test_auto_follows_the_verdict_and_logs_it_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, precision.logger.name)
    monkeypatch.setattr(precision, "TRIAL", timed([2.0], [1.0]))
    assert [resolve_precision("auto", 1, "cpu") for _ in range(3)] == ["bf16"] * 3
    monkeypatch.setattr(precision, "TRIAL", killed("SIGILL"))
    assert resolve_precision("auto", 2, "cpu") == "fp32"
    assert [text for text in caplog.messages if text.startswith("precision")] == [
        "precision: bf16 (bf16 was 2.0 x faster than fp32)",
        "precision: fp32 (the bf16 trial was killed by SIGILL)",
    ]
    assert all(record.levelno == logging.INFO for record in caplog.records)


def test_fp32_is_never_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "probe_precision", lambda *_: pytest.fail("probed"))
    assert resolve_precision("fp32") == "fp32"


def test_bf16_that_is_slower_is_used_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(precision, "TRIAL", timed([1.0], [1.4]))
    assert [resolve_precision("bf16", 1, "cpu") for _ in range(3)] == ["bf16"] * 3
    assert caplog.messages == ["bf16 was 1.4 x slower than fp32; precision: auto would use fp32"]


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        (
            ("avx512_bf16", "amx_bf16"),
            ", or ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment if bf16 must run without AMX",
        ),
        (("avx512_bf16",), ""),
        ((), ""),
    ],
)
def test_bf16_that_crashes_is_refused(
    flags: tuple[str, ...], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "processor", lambda: Processor("Xeon", flags))
    monkeypatch.setattr(precision, "TRIAL", killed("SIGILL"))
    with pytest.raises(TombolaError) as error:
        resolve_precision("bf16", 1, "cpu")
    assert str(error.value) == (
        "precision: bf16 cannot be used, the bf16 trial was killed by SIGILL: "
        f"set precision: fp32 (or auto){advice}."
    )


def test_where_fp32_crashes_too_the_environment_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "TRIAL", killed("SIGILL", after_fp32=False))
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")
    with pytest.raises(TombolaError, match=r"before bf16 was tried: unset ATEN_CPU_CAPABILITY\.$"):
        resolve_precision("bf16", 1, "cpu")


def test_fp16_needs_a_gpu() -> None:
    with pytest.raises(
        TombolaError, match="fp16 needs a CUDA GPU, not cpu: set precision: auto, bf16 or fp32"
    ):
        resolve_precision("fp16", device="cpu")
    assert resolve_precision("fp16", device="cuda") == "fp16"


@pytest.mark.thorough
def test_the_real_trial_finishes_in_fp32_and_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = probe_precision(threads=1, device="cpu")
    if verdict.fp32_seconds is None and "busy machine" in verdict.reason:
        pytest.skip(verdict.reason)
    assert verdict.fp32_seconds is not None
    assert 0 < verdict.fp32_seconds < 10
    assert (verdict.bf16_seconds is None) == (verdict.crashed is not None)
    precision._known.clear()
    assert probe(UNUSED, monkeypatch) == verdict


@pytest.mark.skipif(
    not {"avx2"} <= set(processor().flags) or "avx512f" in processor().flags,
    reason="this processor has AVX-512, or is none of x86: no instruction is known to be missing",
)
def test_a_real_illegal_instruction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")  # torch believes it, the processor cannot
    assert probe_precision(threads=1, device="cpu").crashed == "SIGILL"


def test_importing_does_not_import_torch() -> None:
    code = "import sys, tombola.foundations.hardware.doctor; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
