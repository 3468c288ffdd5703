"""The colours of lines: told apart by everybody, and read as text on both backgrounds."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tombola.report

STYLE = (Path(tombola.report.__file__).parent / "page.css").read_text()
DEFICIENCIES = {
    "none": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What is seen of linear RGB (Machado, Oliveira and Fernandes, 2009)."""

XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def theme(number):
    block = re.findall(r":root[^{]*\{([^}]*)\}", STYLE)[number]
    found = dict(re.findall(r"--(\w+): (#\w{6})", block))
    return [found[f"c{index}"] for index in range(8)], found["panel"]


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_every_two_colours_differ_for_all_eyes_and_names_in_them_are_readable(number):
    colours, panel = theme(number)
    for name, seen in DEFICIENCIES.items():
        for one, other in itertools.combinations(colours, 2):
            apart = np.linalg.norm(lab(np.array(seen) @ linear(one)) - lab(np.array(seen) @ linear(other)))
            assert apart > 11, (name, one, other)
    for colour in colours:
        light = sorted(float(XYZ[1] @ linear(one)) + 0.05 for one in (colour, panel))
        assert light[1] / light[0] >= 4.5, colour
