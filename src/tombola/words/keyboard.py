"""The QWERTY keyboard: the neighbouring keys that a finger may hit by mistake."""

ROWS = (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75))
"""The rows of letters, each with its shift to the right in key widths."""


def _neighbours() -> dict[str, str]:
    places = {
        key: (column + shift, row)
        for row, (keys, shift) in enumerate(ROWS)
        for column, key in enumerate(keys)
    }
    return {
        key: "".join(
            other
            for other, (x2, y2) in places.items()
            if other != key and abs(y - y2) <= 1 and abs(x - x2) <= (1 if y == y2 else 0.75)
        )
        for key, (x, y) in places.items()
    }


NEIGHBOURS: dict[str, str] = _neighbours()
"""The keys that touch each key."""
