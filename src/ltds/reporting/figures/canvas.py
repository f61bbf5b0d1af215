"""What all figures share: an empty figure, colours, labels, legends, and conversion to bytes."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltds.reporting.figures.inline import tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito: distinguishable with every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
INK, GREY, PALE, ABSENT = "#1f2328", "#6b7280", "#c4c8cf", "#eceef1"
GRID = ABSENT  # lines behind the data are as faint as cells without any
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")
PNG_DPI = 110
WRITER = "ltds report"  # in the metadata of all figures
NAMED_CLASSES = 60  # more names than this cannot be read under one axis


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches, not registered in the global list of pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def clean_axes(axes: Axes) -> None:
    """Remove lines that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(PALE)
    axes.tick_params(colors=GREY, labelsize=8, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def label_classes(axes: Axes, names: Sequence[str]) -> None:
    """Label the x axis with the class names; too many are replaced by a note on their order."""
    if len(names) > NAMED_CLASSES:
        axes.set_xlabel(f"{len(names)} classes, from most to fewest training images", color=GREY, fontsize=9)
        return
    axes.set_xticks(range(len(names)), [shortened(name) for name in names], parse_math=False)
    size = min(8, 420 / len(names)) if names else 8  # else the lines of 60 names touch
    axes.tick_params(axis="x", labelrotation=90 if len(names) > 12 else 30, labelsize=size, length=0)
    for text in axes.get_xticklabels():
        text.set_horizontalalignment("center" if len(names) > 12 else "right")


def label_domains(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of a matrix."""
    axes.set_yticks(range(len(names)), [shortened(name) for name in names], parse_math=False)
    axes.tick_params(axis="y", labelsize=8, length=0)


def add_legend(
    figure: Figure,
    handles: Sequence[Any],
    names: Sequence[str],
    location: Any = "outside upper left",
    columns: int = 4,
    methods: bool = False,
) -> None:
    """A legend beside the axes, where it covers nothing. It prints every name literally: no math mode, and a leading
    underscore does not hide it. `methods`: the names are methods, by which the page filters.
    """
    shown = ["\u200b" + shortened(name) for name in names]
    columns = max(1, min(columns, len(shown)))
    made = figure.legend(handles, shown, frameon=False, fontsize=8, ncols=columns, loc=location)
    for text, handle, name in zip(made.get_texts(), made.legend_handles, names, strict=True):
        text.set_parse_math(False)
        if methods and handle is not None:
            text.set_gid(tag(method=name))
            handle.set_gid(tag(method=name))


def legend_rows(names: Sequence[str], columns: int = 4) -> float:
    """The height in inches that a legend needs."""
    return 0.2 * -(-len(names) // columns)


def few_ticks(axes: Axes) -> None:
    """At most about five numbers below the x axis, with units such as 20 k, so that they do not touch."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
    if max(map(abs, axes.get_xlim())) >= 10_000:
        axes.xaxis.set_major_formatter(EngFormatter(sep="\u2009"))


def style(index: int) -> tuple[str, str, str]:
    """Colour, dash and marker for the method or domain with this index; the first 28 are different."""
    turn = index // len(COLOURS) % len(DASHES)
    return COLOURS[index % len(COLOURS)], DASHES[turn], MARKERS[turn]


def shortened(name: str, limit: int = 24) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def svg(figure: Figure) -> bytes:
    """The figure as SVG, the same bytes each time. Text stays text, so the browser can render any script."""
    drawn = _saved(figure, "svg", {"Creator": WRITER, **dict.fromkeys(("Date", "Format", "Type"))})
    return drawn.replace(b"'DejaVu Sans'", b"system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif")


def png(figure: Figure) -> bytes:
    """The figure as PNG: smaller than SVG for thousands of points and for photographs."""
    return _saved(figure, "png", {"Software": WRITER}, PNG_DPI)


def pdf(figure: Figure) -> bytes:
    """The figure as PDF, the same bytes each time."""
    return _saved(figure, "pdf", {"Creator": WRITER, **dict.fromkeys(("Producer", "CreationDate"))})


def _place(figure: Figure, kind: str, dpi: int) -> None:
    """Place what the figure consists of. To save a figure with a layout, matplotlib would draw it twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.set_dpi(dpi if kind == "png" else 72)  # as it is saved
        engine.execute(figure)
        figure.set_layout_engine("none")


def is_drawn(file: Path) -> bool:
    """Whether a file is a figure that one of the functions above drew."""
    try:
        content = file.read_bytes()
    except OSError:
        return False
    return any(mark.encode() in content for mark in _MARKS)


_MARKS = (f"Software\0{WRITER}", f"<dc:title>{WRITER}</dc:title>", f"/Creator ({WRITER})")  # in png, svg, pdf


def _saved(figure: Figure, kind: str, metadata: dict[str, str | None], dpi: int = 150) -> bytes:
    """The figure as `kind`; its `metadata` are None where the usual ones would change with time and version."""
    import matplotlib

    out = io.BytesIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "ltds", "font.family": ["DejaVu Sans"]}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A glyph that is missing in our font only affects measuring; the browser has a font that draws it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        _place(figure, kind, dpi)
        figure.savefig(out, format=kind, metadata=metadata, dpi=dpi)
    return out.getvalue()
