"""What all figures share: an empty Figure, colours, labels of the user's own words, and the way to a file."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart with every kind of colour vision, and on a grey print by their order of lightness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
INK, QUIET, ABSENT = "#1f2328", "#6b7280", "#eceef1"
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
NAMED_CLASSES = 60  # more names than this cannot be read under one axis


def blank(width: float, height: float) -> Figure:
    """An empty figure, in inches, outside of pyplot's global list."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def quiet(axes: Axes) -> None:
    """Take away what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#c4c8cf")
    axes.tick_params(colors=QUIET, labelsize=8, length=3)
    axes.grid(axis="y", color="#eceef1", linewidth=0.8)
    axes.set_axisbelow(True)


def label_classes(axes: Axes, names: Sequence[str]) -> None:
    """Name the classes under the axis where there is room, else say how they are ordered."""
    if len(names) > NAMED_CLASSES:
        axes.set_xlabel(f"{len(names)} classes, from most to fewest training images", color=QUIET, fontsize=9)
        return
    axes.set_xticks(range(len(names)), [shortened(name) for name in names], parse_math=False)
    axes.tick_params(axis="x", labelrotation=90 if len(names) > 12 else 30, labelsize=8, length=0)
    for text in axes.get_xticklabels():
        text.set_horizontalalignment("center" if len(names) > 12 else "right")


def label_domains(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a matrix."""
    axes.set_yticks(range(len(names)), [shortened(name) for name in names], parse_math=False)
    axes.tick_params(axis="y", labelsize=8, length=0)


def key(on: Axes | Figure, handles: Sequence[Any], names: Sequence[str], place: Any = "best", columns: int = 4) -> None:
    """A legend that takes every name as it is: no mathematics, and no leading underscore that hides it."""
    shown = ["\u200b" + shortened(name) for name in names]
    columns = min(columns, len(shown))
    for text in on.legend(handles, shown, frameon=False, fontsize=8, ncols=columns, loc=place).get_texts():
        text.set_parse_math(False)


def style(place: int) -> tuple[str, str, str]:
    """Colour, dash and marker of the method, or domain, at this place: the first 28 differ."""
    turn = place // len(COLOURS) % len(DASHES)
    return COLOURS[place % len(COLOURS)], DASHES[turn], MARKERS[turn]


def shortened(name: str, limit: int = 24) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def svg(figure: Figure) -> bytes:
    """The figure as SVG, the same bytes each time. Text stays text, so that the browser shapes any script."""
    drawn = _saved(figure, "svg", dict.fromkeys(("Creator", "Date", "Format", "Type")))
    return drawn.replace(b"'DejaVu Sans'", b"system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif")


def png(figure: Figure, dpi: int = 110) -> bytes:
    """The figure as pixels: for thousands of points and for photographs smaller than as SVG."""
    return _saved(figure, "png", {"Software": None}, dpi)


def pdf(figure: Figure) -> bytes:
    """The figure as PDF, the same bytes each time."""
    return _saved(figure, "pdf", dict.fromkeys(("Creator", "Producer", "CreationDate")))


def _saved(figure: Figure, kind: str, nothing: dict[str, None], dpi: int = 150) -> bytes:
    """The figure as `kind`, without the entries of `nothing`, which would change with time and version."""
    import matplotlib

    out = io.BytesIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "ltds", "font.family": ["DejaVu Sans"]}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A glyph that our font lacks is only measured with it; the browser draws it with one that has it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure.savefig(out, format=kind, metadata=nothing, dpi=dpi)
    return out.getvalue()
