"""Where the user's folders are, and how they are shown."""

from pathlib import Path

import pytest

from tombola.foundations.folders import cache_folder, store_address, with_tilde


def test_variables_come_before_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TOMBOLA_CACHE", raising=False)
    monkeypatch.delenv("TOMBOLA_STORE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "tombola"
    assert store_address() == "~/.cache/tombola/store"
    monkeypatch.setenv("TOMBOLA_CACHE", "~/elsewhere")
    monkeypatch.setenv("TOMBOLA_STORE", "s3://bucket/store")
    assert cache_folder() == tmp_path / "elsewhere"
    assert store_address() == "s3://bucket/store"
    assert store_address("given") == "given"


def test_only_the_home_folder_itself_becomes_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    text = f"{tmp_path}/link/a, {tmp_path}/real/b, {tmp_path}/link: {tmp_path}/linked {tmp_path}/link-2"
    assert with_tilde(text) == f"~/a, ~/b, ~: {tmp_path}/linked {tmp_path}/link-2"
    monkeypatch.setenv("HOME", "/")
    assert with_tilde("/usr/bin") == "/usr/bin"
