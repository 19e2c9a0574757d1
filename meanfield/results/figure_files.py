"""Files of figures and animations, written as atomically as results."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.errors import InputError
from meanfield.process.atomic_files import check_writable, write_atomically
from meanfield.process.progress import progress_bar

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

ANIMATION_WRITERS = {"gif": "pillow", "mp4": "ffmpeg"}
"""Writer of each format of animations, by its name in matplotlib."""

RESOLUTION = 150
"""Dots per inch of a figure that is a bitmap."""


def check_figure_path(path: str | Path) -> None:
    """Refuse a figure's path before anything is computed.

    Raises
    ------
    InputError
        If the path cannot be written to, or its ending names no format.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(path)
    check_writable(path)
    known, kind = sorted(FigureCanvasBase.get_supported_filetypes()), path.suffix.removeprefix(".")
    if kind not in known:
        raise InputError(f"{path}: '{kind}' is no figure format; use one of {', '.join(known)}")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's ending, as atomically as a Dataset.

    Raises
    ------
    InputError
        If the path cannot be written to, or its ending names no format.
    """
    path = Path(path)
    check_figure_path(path)
    kind = path.suffix.removeprefix(".")
    with laid_out(figure, kind, RESOLUTION):
        write_atomically(path, lambda part: figure.savefig(part, dpi=RESOLUTION, format=kind))


@contextmanager
def laid_out(figure: Figure, kind: str, dpi: float) -> Iterator[None]:
    """Lay a figure out for files of a format, and have none of them do it again.

    Matplotlib draws a figure with a layout engine twice for each file: the first time nothing is kept but the layout.

    Parameters
    ----------
    kind : str
        The format, which decides how large texts are.
    dpi : float
        The resolution of bitmaps.
    """
    from matplotlib.backend_bases import get_registered_canvas_class

    engine, canvas, usual = figure.get_layout_engine(), figure.canvas, figure.dpi
    if engine is None:
        yield
        return
    try:
        get_registered_canvas_class(kind)(figure)
        figure.dpi = dpi
        engine.execute(figure)
        figure.set_layout_engine(None)
        yield
    finally:
        figure.set_layout_engine(engine)
        figure.dpi = usual
        figure.set_canvas(canvas)


def check_animation_path(path: str | Path) -> None:
    """Refuse an animation's path before anything is computed.

    Raises
    ------
    InputError
        If the path cannot be written to, its ending is not gif or mp4, or what writes mp4 is not installed.
    """
    from matplotlib.animation import writers

    path = Path(path)
    check_writable(path)
    kind = path.suffix.removeprefix(".")
    if kind not in ANIMATION_WRITERS:
        raise InputError(f"{path}: '{kind}' is no animation format; use one of {', '.join(ANIMATION_WRITERS)}")
    if not writers.is_available(ANIMATION_WRITERS[kind]):
        raise InputError(
            f"{path}: {kind} is written by {ANIMATION_WRITERS[kind]}, which is not installed; "
            "install it, or choose a name that ends in .gif"
        )


def save_animation(animation: FuncAnimation, path: str | Path, frames_per_second: int = 10) -> None:
    """Write an animation as GIF or, where ffmpeg is installed, as MP4, as atomically as a Dataset.

    Raises
    ------
    InputError
        If the path cannot be written to, its ending is not gif or mp4, or what writes mp4 is not installed.
    """
    path = Path(path)
    check_animation_path(path)
    writer = ANIMATION_WRITERS[path.suffix.removeprefix(".")]

    def write(part: str) -> None:
        with progress_bar(0, "drawing", "frame") as bar:

            def advance(frame: int, frames: int) -> None:
                bar.total = frames
                bar.update()

            try:
                animation.save(part, writer=writer, fps=frames_per_second, progress_callback=advance)
            except subprocess.CalledProcessError as error:  # ffmpeg's, which Ctrl-C reaches as well
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise error.__context__ from None
                raise OSError(f"{writer} ended with code {error.returncode}") from error

    write_atomically(path, write)
