#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the evidence of many items, such as images under a decoder: FOLDER/items.png and items.svg.

    plot_items.py FOLDER [--title TITLE]

FOLDER/items.csv has a row per item: item (its place in images.npy, from 0), log_z, se, lower, lower_se, upper,
upper_se, gap, ess, reverse_ess, ... ; upper, upper_se, gap and reverse_ess are empty where there were no reverse runs.
FOLDER/images.npy holds numbers [item][row][column], 0 and 1 as a rule. From the top: images in the order of log Z, the bounds of every item in the same
order, and the bounds less log Z, where the gap is seen. Items with a gap above 1 nat or an effective sample size
below 2 are marked.

Exit status: 0 done, 2 bad input.
"""
import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import style

style.apply()

import matplotlib.pyplot as plt  # noqa: E402  (after the style)
import numpy as np  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402

import read  # noqa: E402
from output import write  # noqa: E402

NUMBERS = ("log_z", "se", "lower", "lower_se", "upper", "upper_se", "gap", "ess", "reverse_ess")
MAX_GAP, MIN_ESS = 1.0, 2.0
USUAL, MARKED, PAPER, FRAME = "#0072b2", "#d55e00", "#ffffff", "#cccccc"
LEFT, RIGHT = 0.85, 0.15  # inches beside the axes
MAX_SHOWN, MIN_CELL, SHEET_HEIGHT, TEXT_HEIGHT = 100, 0.47, 3.5, 0.19  # of the images; the last three in inches
MAX_IMAGE, MIN_IMAGE = 1.0, 0.14  # inches: height of an image; its smaller side where it is a vector
RASTER_ABOVE = 2000  # items, beyond which lines are pixels in the SVG too


@dataclass
class Items:
    """Columns of items.csv as arrays in the order of log_z; index: the items' places in images.npy."""

    index: np.ndarray
    log_z: np.ndarray
    se: np.ndarray
    lower: np.ndarray
    lower_se: np.ndarray
    upper: np.ndarray
    upper_se: np.ndarray
    gap: np.ndarray
    ess: np.ndarray
    reverse_ess: np.ndarray

    def __len__(self):
        return len(self.index)

    def bounded(self):
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    def marked(self):
        return (self.gap > MAX_GAP) | (np.fmin(self.ess, self.reverse_ess) < MIN_ESS)

    def interval(self):
        """Lower and upper bounds; two standard errors about log_z where there is no upper one."""
        return (np.where(self.bounded(), self.lower, self.log_z - 2 * self.se),
                np.where(self.bounded(), self.upper, self.log_z + 2 * self.se))


def read_items(path):
    if not path.exists():
        raise read.PlotError(f"{path} is missing (the picture is made from it). Give the folder that holds it.")
    rows = read.read_rows(path, ("item", *NUMBERS))
    table = {name: np.array([read.number(row[name], path, line, name, empty=math.nan) for line, row in rows])
             for name in NUMBERS}
    if not np.isfinite(table["log_z"]).any():
        raise read.PlotError(f"{path} has no finite log_z (there is nothing to draw). Run it again.")
    index = np.array([read.number(row["item"], path, line, "item") for line, row in rows])
    if (index != np.floor(index)).any() or len(set(index)) < len(index):
        raise read.PlotError(f"{path}: items are not different whole numbers (they are places in images.npy). "
                             "Run it again, or restore the file.")
    order = np.argsort(table["log_z"], kind="stable")
    order = order[np.isfinite(table["log_z"][order])]
    return Items(index[order].astype(int), **{name: values[order] for name, values in table.items()})


def read_images(path, items):
    try:
        images = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise read.PlotError(f"cannot read {path} ({reason}). Run it again, or restore the file.") from None
    last = items.index.max()
    usable = images.ndim == 3 and images.dtype in (np.uint8, np.float32) and images.size > 0
    if not usable or not 0 <= items.index.min() <= last < len(images):
        raise read.PlotError(f"{path} holds {images.dtype} {list(images.shape)} (items.csv asks for numbers [more than "
                             f"{last}][rows][columns]). Run it again, or restore the file.")
    return images


@dataclass
class Sheet:
    """How images lie: numbers of rows and columns, and the sizes of a cell and of the image in it, in inches."""

    columns: int
    rows: int
    cell: float
    width: float
    height: float

    def inches(self):
        return self.rows * (self.height + TEXT_HEIGHT)


def arrange(num_items, shape):
    """The fewest columns that keep the sheet low; with vectors too long for that, fewer are shown."""
    room, ratio = style.WIDTH_INCHES - 0.3 - RIGHT, shape[1] / shape[0]
    most = max(1, min(int(room / MIN_CELL), int(room * style.DPI / shape[1])))  # a dot for every pixel of the image
    for columns in range(1, most + 1):
        cell = room / columns
        width = max(min(0.9 * cell, MAX_IMAGE * ratio), MIN_IMAGE)
        height = min(max(width / ratio, MIN_IMAGE), MAX_IMAGE)
        sheet = Sheet(columns, math.ceil(num_items / columns), min(cell, max(1.1 * width, MIN_CELL)), width, height)
        if sheet.inches() <= SHEET_HEIGHT:
            sheet.columns = min(most, int(room / sheet.cell))  # small ones fill the row
            sheet.rows = math.ceil(num_items / sheet.columns)
            return sheet
    sheet.rows = max(1, int(SHEET_HEIGHT / (sheet.height + TEXT_HEIGHT)))
    return sheet


def minus(text):
    return text.replace("-", "\N{MINUS SIGN}")


def draw_sheet(ax, items, images, shown, sheet):
    """In inches, from the top left."""
    digits = 1 if np.ptp(items.log_z) > 2 else 2
    marked, paper = items.marked(), LinearSegmentedColormap.from_list("ink", [PAPER, style.INK])
    low, high = min(0, images.min()), max(1, images.max())
    for place, rank in enumerate(shown):
        left = place % sheet.columns * sheet.cell
        top = place // sheet.columns * (sheet.height + TEXT_HEIGHT)
        box = (left, left + sheet.width, top + sheet.height, top)
        ax.imshow(images[items.index[rank]], cmap=paper, vmin=low, vmax=high, extent=box, aspect="auto")
        color = MARKED if marked[rank] else FRAME
        ax.add_patch(plt.Rectangle((left, top), sheet.width, sheet.height, fill=False, edgecolor=color,
                                   linewidth=1.4 if marked[rank] else 0.6))
        ax.text(left + sheet.width / 2, top + sheet.height + 0.03, minus(f"{items.log_z[rank]:.{digits}f}"),
                fontsize=7, ha="center", va="top", color=MARKED if marked[rank] else style.INK)
    width, height = ax.figure.get_size_inches() * ax.get_position().size
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    ax.axis("off")


def draw_intervals(ax, items, less_log_z):
    """Bounds of all items, themselves or less log_z; marked ones last, so that they are seen."""
    low, high = (bound - less_log_z * items.log_z for bound in items.interval())
    rank, marked, raster = np.arange(1, len(items) + 1), items.marked(), len(items) > RASTER_ABOVE
    width = float(np.clip(0.45 * 72 * (style.WIDTH_INCHES - LEFT - RIGHT) / len(items), 0.6, 5))
    for color, chosen, least in ((USUAL, ~marked, 0.6), (MARKED, marked, 1.2)):
        ax.vlines(rank[chosen], low[chosen], high[chosen], color=color, linewidth=max(width, least), alpha=0.75,
                  rasterized=raster)
        if not less_log_z:
            ax.plot(rank[chosen], items.log_z[chosen], linestyle="none", marker="o", color=color, rasterized=raster,
                    markersize=max(1.4 * width, 2 * least), markeredgecolor="white",
                    markeredgewidth=0.15 * width if width > 1.5 else 0)
    if less_log_z:
        ax.axhline(0, color=style.INK, linewidth=0.8)
    margin = 0.01 * len(items) + 0.5
    ax.set_xlim(1 - margin, len(items) + margin)
    if len(items) > 10:
        ax.xaxis.set_major_locator(MaxNLocator(10, integer=True, steps=[1, 2, 5, 10]))
    else:
        ax.set_xticks(rank)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(True, axis="y")


def frame(ax, items):
    """All usual items; of those far off, as much as shows that they are."""
    low, high = (bound - items.log_z for bound in items.interval())
    reach = max(np.percentile(np.abs([low, high]), 99.5), np.abs([low, high])[:, ~items.marked()].max(initial=0))
    low, high = max(low.min(), -1.3 * reach), min(high.max(), 1.3 * reach)
    if high > low:
        ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def name_of(images, num_items):
    return ("image" if min(images.shape[1:]) > 1 else "item") + "s" * (num_items > 1)


def headline(items, name):
    """(bold line, line below it): the mean over the items and how sure it is."""
    n = len(items)

    def error(se):
        return 2 * math.sqrt(np.square(se).sum()) / n  # given the images: of their scatter summary.json speaks

    def figures(value, margin):
        digits = 2 if not 0 < margin < 0.01 else min(4, -math.floor(math.log10(margin)))
        return minus(f"{value:.{digits}f}"), f"{margin:.{digits}f}"
    if not items.bounded().all():
        mean, margin = figures(items.log_z.mean(), error(items.se))
        return (f"Mean log Z of {n} {name}: {mean} ± {margin}",
                f"± {margin}: two standard errors; there are no upper bounds without reverse runs")
    margins = error(items.lower_se), error(items.upper_se)
    (lower, below), (upper, above) = (figures(bound.mean(), max(margins)) for bound in (items.lower, items.upper))
    below, above = (figures(0, margin)[1] for margin in margins)
    return (f"Mean log Z of {n} {name}: between {lower} and {upper}",
            f"± {below} and ± {above}: two standard errors of these means for the images shown")


def legend(items):
    """(handles, texts) of the line between the sheet and the intervals."""
    both = items.bounded()
    text = "lower to upper bound" if both.all() else "two standard errors" if not both.any() else \
        "lower to upper bound, or two standard errors"
    handles, texts = [Line2D([], [], color=USUAL, linewidth=2.5)], [text]
    handles.append(Line2D([], [], color=USUAL, marker="o", linestyle="none", markersize=5))
    texts.append("log Z")
    handles.append(Line2D([], [], color=MARKED, linewidth=2.5, marker="o", markersize=5))
    gap = f"gap above {MAX_GAP:g} nat or " if both.any() else ""
    texts.append(f"{gap}effective sample size below {MIN_ESS:g}: {items.marked().sum()} of {len(items)}")
    return handles, texts


def draw(folder, title):
    """Writes the pictures; returns the paths."""
    items = read_items(folder / "items.csv")
    images = read_images(folder / "images.npy", items)
    sheet = arrange(min(len(items), MAX_SHOWN), images.shape[1:])
    num_shown = min(len(items), MAX_SHOWN, sheet.rows * sheet.columns)
    shown = np.round(np.linspace(0, len(items) - 1, num_shown)).astype(int)
    name = name_of(images, len(items))
    bold, small = headline(items, name)
    # Inches from the top: title, sheet, legend, two axes.
    sheet_top, axes_height = 0.95 + 0.25 * bool(title), 2.1
    legend_top = sheet_top + sheet.inches() + 0.2
    tops = [legend_top + 0.4, legend_top + 0.4 + axes_height + 0.25]
    height = tops[1] + axes_height + 0.55
    figure = plt.figure(figsize=(style.WIDTH_INCHES, height))

    def axes(left, top, tall):
        width = style.WIDTH_INCHES - left - RIGHT
        return figure.add_axes([left / style.WIDTH_INCHES, 1 - (top + tall) / height, width / style.WIDTH_INCHES,
                                tall / height])

    def text(top, what, **more):
        figure.text(0.2 / style.WIDTH_INCHES, 1 - top / height, what, va="top", **more)
    if title:
        text(0.12, title, fontsize=13, fontweight="bold")
    text(sheet_top - 0.83, bold, fontsize=10.5 if title else 13, fontweight="bold")
    few = f"{num_shown} of the {name}, evenly spaced over the order of log Z" if num_shown < len(items) else \
        f"The {name} in the order of log Z"
    text(sheet_top - 0.55, small, fontsize=9, color="#555555")
    text(sheet_top - 0.27, few + ", which stands below each:", fontsize=9.5)
    draw_sheet(axes(0.2, sheet_top, sheet.inches()), items, images, shown, sheet)

    handles, texts = legend(items)
    line = axes(0.2, legend_top, 0.3)
    line.axis("off")
    line.legend(handles, texts, loc="center left", ncol=len(handles), borderaxespad=0, borderpad=0, handlelength=1.4,
                handletextpad=0.5, columnspacing=1.5)
    upper, lower = (axes(LEFT, top, axes_height) for top in tops)
    draw_intervals(upper, items, less_log_z=False)
    upper.set_ylabel("log Z")
    upper.tick_params(axis="x", labelbottom=False)
    draw_intervals(lower, items, less_log_z=True)
    frame(lower, items)
    lower.set_ylabel("the same, less log Z")
    lower.set_xlabel(f"{name} in the order of log Z")
    for ax in (upper, lower):
        ax.yaxis.set_label_coords(-0.64 / (style.WIDTH_INCHES - LEFT - RIGHT), 0.5)
    paths = [write(figure, folder / f"items.{form}", form, title or bold) for form in ("png", "svg")]
    plt.close(figure)
    return paths


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Draw the evidence of many items.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of items.csv and images.npy")
    parser.add_argument("--title", default="", help="a line above the picture")
    options = parser.parse_args(arguments)
    try:
        paths = draw(options.folder, options.title)
    except read.PlotError as error:
        print(f"plot_items: {error}", file=sys.stderr)
        return 2
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
