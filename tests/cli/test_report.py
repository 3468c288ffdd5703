"""The verb `report`: the page is written, and shown where that is asked for."""

import webbrowser

import pytest
from typer.testing import CliRunner

from tests.results.builder import cell, result
from tombola.cli import app


@pytest.mark.parametrize("found", [True, False])
def test_the_page_is_opened_in_the_browser_or_said_where_it_is(tmp_path, monkeypatch, found):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or found)
    result(cell("dense", 0.9), folder=tmp_path / "run").save()
    page = tmp_path / "page.html"
    words = ["report", str(tmp_path / "run"), "-o", str(page), "--store", str(tmp_path / "store"), "--open"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert page.is_file()
    assert opened == [page.as_uri()]
    assert ("no browser was found" in done.stderr) is not found
