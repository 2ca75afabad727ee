#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the modes of a target: FOLDER/modes.png, from the modes.json of `lockstep modes`.

    plot_modes.py --modes FOLDER/modes.json --out FOLDER

Left: the modes in the plane of the two axes on which they are farthest apart (one axis: over the log density), each
with the ellipse of one standard deviation. Right: each one's share of the mass, by importance sampling and by Laplace's
approximation: where they differ, modes are not normal.

Exit status: 0 done, 2 bad input.
"""
import argparse
import json
import sys
from pathlib import Path

import style

style.apply()

import matplotlib.pyplot as plt  # noqa: E402  (after the style)
import numpy as np  # noqa: E402
from matplotlib.patches import Ellipse  # noqa: E402

from output import write  # noqa: E402
from plot_table import PlotError  # noqa: E402

MOST_BARS = 30


def read_library(path):
    try:
        library = json.loads(path.read_text(encoding="utf-8"))
        places = np.array([mode["place"] for mode in library["modes"]], dtype=float)
        covariances = np.array([mode["covariance"] for mode in library["modes"]], dtype=float)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise PlotError(f"{path} is not a library of modes ({error}). Give modes.json of lockstep modes.") from None
    if len(places) == 0:
        raise PlotError(f"{path} holds no mode (there is nothing to draw).")
    return library, places, covariances


def ellipse_of(place, covariance, **look):
    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse(place, 2 * np.sqrt(values[1]), 2 * np.sqrt(values[0]), angle=angle, **look)


def draw_plane(axes, library, places, covariances):
    names, shares = library["target"]["parameters"], [mode["share"] for mode in library["modes"]]
    colors = [style.blend("#c6dbef", "#08306b", share / max(shares)) for share in shares]
    if places.shape[1] == 1:
        heights = [mode["log_density"] for mode in library["modes"]]
        axes.errorbar(places[:, 0], heights, xerr=np.sqrt(covariances[:, 0, 0]), fmt="none", ecolor="#888888")
        axes.scatter(places[:, 0], heights, c=colors, zorder=3)
        axes.set(xlabel=names[0], ylabel="log density")
        return
    i, j = sorted(np.argsort(-places.var(axis=0), kind="stable")[:2])
    for place, covariance, color in zip(places[:, [i, j]], covariances[:, [i, j]][:, :, [i, j]], colors):
        axes.add_patch(ellipse_of(place, covariance, facecolor=color, alpha=0.45, edgecolor=color))
    axes.scatter(places[:, i], places[:, j], c=colors, s=9, zorder=3)
    axes.set(xlabel=names[i], ylabel=names[j])
    axes.margins(0.12)
    axes.set_title("places, with one standard deviation; darker: a larger share", loc="left")


def draw_shares(axes, library):
    in_order = sorted(library["modes"], key=lambda mode: -mode["share"])  # as lockstep modes numbers them
    modes = in_order[:MOST_BARS]
    number = np.arange(1, len(modes) + 1)
    laplace = np.array([mode["laplace_log_mass"] for mode in in_order])
    laplace = np.exp(laplace - laplace.max())
    axes.scatter(number, [mode["share"] for mode in modes], color="#08306b", label="importance sampling", zorder=3)
    axes.scatter(number, (laplace / laplace.sum())[:len(modes)], facecolors="none", edgecolors="#d55e00",
                 label="Laplace's approximation", zorder=2)
    axes.set(xlabel="mode, by its share", ylabel="share of the mass found", yscale="log")
    # Equal shares are to look equal, and what hardly holds anything is not to squeeze the rest; room for the legend.
    axes.set_ylim(max(min(min(mode["share"] for mode in modes), 1e-3), 1e-8) / 2, 5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y")
    axes.legend()
    more = len(library["modes"]) - len(modes)
    axes.set_title("shares" + (f" of the first {len(modes)}; {more} more" if more else ""), loc="left")


def draw(path, folder):
    library, places, covariances = read_library(path)
    figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH_INCHES, 4.2), layout="constrained")
    draw_plane(left, library, places, covariances)
    draw_shares(right, library)
    search, name = library["search"], library["target"]["name"]
    title = f"{name}: {len(places)} modes from {search['starts']:.0f} starts"
    figure.suptitle(title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    return write(figure, folder / "modes.png", "png", title)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Draw the modes of a target.")
    parser.add_argument("--modes", required=True, metavar="FILE", type=Path, help="modes.json of lockstep modes")
    parser.add_argument("--out", required=True, metavar="FOLDER", type=Path, help="folder of the picture")
    options = parser.parse_args(arguments)
    try:
        print(draw(options.modes, options.out))
    except PlotError as error:
        print(f"plot_modes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
