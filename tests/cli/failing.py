"""The command as a person types it, where it must fail."""

import sys

import pytest

from tombola.cli import main


def fails(monkeypatch, capsys, *arguments):
    """What the command writes to stderr when it refuses; never a traceback, always exit code 2."""
    monkeypatch.setattr(sys, "argv", ["tombola", *(str(one) for one in arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    assert stopped.value.code == 2
    assert "Traceback" not in said.err
    return said.err
