"""A matrix of numbers as a table whose cells are shaded: overlaps, transfer, sparsity by layer and matrix."""

from collections.abc import Sequence

from markupsafe import Markup, escape


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    corner: str = "",
    signed: bool = False,
    digits: int = 0,
) -> Markup:
    """The matrix, in percent. Signed values are shaded in two colours around zero, others in one from zero up."""
    known = [abs(value) for row in values for value in row if value is not None]
    strongest = max(known, default=0.0) or 1.0
    head = Markup("").join(Markup("<th>{}</th>").format(name) for name in (corner, *columns))
    body = Markup("").join(
        Markup("<tr><th>{}</th>{}</tr>").format(
            name, Markup("").join(_cell(value, strongest, signed, digits) for value in row)
        )
        for name, row in zip(rows, values, strict=True)
    )
    return Markup('<table class="heat"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>').format(
        head, body
    )


def _cell(value: float | None, strongest: float, signed: bool, digits: int) -> Markup:
    if value is None:
        return Markup("<td></td>")
    colour = "warm" if signed and value < 0 else "cool"
    strength = round(100 * abs(value) / strongest * 0.8)
    text = escape(f"{100 * value:{'+' if signed else ''}.{digits}f}")
    style = f"background: color-mix(in srgb, var(--{colour}) {strength}%, transparent)"
    return Markup('<td style="{}">{}</td>').format(style, text)
