#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the picture of a study: RESULTS_DIR/<study name>.png and .svg.

Made from results.csv and, where they are there, timings.csv, draws/*.nc and contours/*. What to draw stands in the
study file's [plot] table:

    [plot]
    kind = "rmse"                            # one of kinds.list; or panels = ["rmse", "scatter", "beta"], one below
                                             # the other
    title = "..."                            # else the study's title
    quantities = ["mean[0]"]                 # else the study's; else all with a truth; "mean" is all its entries
    labels = ["a HMC", "a PE N=2"]           # for panels of draws; else all
    groups = { a = "Equal weights" }         # first word of the labels -> heading
    split = true                             # rmse: a bar per entry, however long the vector
    cost = "gradients"                       # cost: unit, else "seconds"
    against = "chains"                       # convergence, estimates, sandwich: or "gradients_per_chain", else
                                             # "gradients"
    count_modes = true                       # scatter, trace, density: how many of the grid's modes the draws visit
    columns = 5                              # scatter, trace, density, places: axes in a row
    dims = [0, 1]                            # scatter, trace, density: the two coordinates
    equal_aspect = false                     # scatter, trace, density: let the plane stretch
    trace_draws = 1000                       # trace: draws joined, over the chains shown (4 at most)
    places = [0.5, 0.3, 0.2, 0.9]            # places: x and y of the true ones, one after another

Exit status: 0 done, 1 nothing could be drawn, 2 bad input.
"""
import argparse
import difflib
import functools
import sys
from pathlib import Path

import style

style.apply()

import matplotlib.pyplot as plt  # noqa: E402  (after the style)
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402

import read  # noqa: E402
from lists import pictures_in  # noqa: E402
from output import write  # noqa: E402

KINDS = {kind: panel for kind, (panel, _) in pictures_in("kinds.list").items()}


class Context:
    """What a panel may ask for; draws and contours are read once, when first asked for."""

    def __init__(self, results_dir, study, labels=None):
        self.folder, self.study = Path(results_dir), study
        self.results = read.read_results(self.folder / "results.csv")
        self.timings = read.read_timings(self.folder / "timings.csv")
        order = [label for label in study.settings if label in self.results.labels]
        order += [label for label in self.results.labels if label not in order]
        self.look = style.Labels(order, study.plot.get("groups", {}))
        self.labels = order if labels is None else labels

    def note(self, text):
        print(f"plot_study: {text}", file=sys.stderr)

    @functools.cache
    def draws(self, label):
        wanted = self.study.plot.get("labels", [])
        if wanted and label not in wanted:
            return None
        try:
            return read.read_draws(self.folder / "draws" / f"{read.file_key(label)}.nc")
        except read.PlotError as error:
            self.note(str(error))
            return None

    @functools.cache
    def contours(self, label):
        setting = self.study.settings.get(label, read.Setting(label))
        try:
            return read.read_contours(self.folder / "contours", setting, self.study.settings.values())
        except read.PlotError as error:
            self.note(str(error))
            return None

    @functools.cache
    def exact_draws(self, label):
        setting = self.study.settings.get(label, read.Setting(label))
        try:
            return read.read_exact_draws(self.folder / "contours", setting, self.study.settings.values())
        except read.PlotError as error:
            self.note(str(error))
            return None


def kinds_of(study):
    kinds = study.plot.get("panels", study.plot.get("kind", "rmse"))
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in kinds:
        if kind not in KINDS:
            near = difflib.get_close_matches(str(kind), KINDS, n=1)
            hint = f"Did you mean \"{near[0]}\"?" if near else f"Use one of {', '.join(KINDS)}."
            raise read.PlotError(f"[plot] asks for \"{kind}\" (there is no such picture). {hint}")
    return kinds


def draw_study(results_dir, study_file):
    """Writes the pictures; returns the paths, none when no panel could be drawn."""
    study = read.read_study(study_file, results_dir)
    context = Context(results_dir, study)
    drawn = []
    for kind in kinds_of(study):
        panel = KINDS[kind](context)
        reason = panel.prepare()
        if reason:
            context.note(f"panel \"{kind}\" is left out: {reason}")
        else:
            drawn.append(panel)
    if not drawn:
        context.note("no panel is left, so there is no picture")
        return []
    heights = [panel.height() for panel in drawn]
    figure = plt.figure(figsize=(style.WIDTH_INCHES, sum(heights) + 0.45), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.07)
    figure.suptitle(study.title, fontsize=13, fontweight="bold", x=0.01, ha="left")
    parts = figure.subfigures(len(drawn), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel, part in zip(drawn, parts):
        panel.draw(part)
    freeze_layout(figure, parts)
    paths = [write(figure, Path(results_dir) / f"{study.name}.{form}", form, study.title)
             for form in ("png", "svg")]
    plt.close(figure)
    return paths


def freeze_layout(figure, parts):
    """Computes the layout once and rounds it.

    The solver behind it adds in an order that changes between runs, and the last bits of a position would
    change the picture's bytes.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in parts:
        box = part.bbox_relative
        box.p0, box.p1 = np.round(box.p0, 5), np.round(box.p1, 5)
    for ax in figure.findobj(Axes):
        ax.set_position(np.round(ax.get_position(original=True).bounds, 5))
    for text in [text for part in [figure, *parts] for text in part.texts]:
        text.set_position(np.round(text.get_position(), 5))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Draw the picture of a study.")
    parser.add_argument("results_dir", metavar="RESULTS_DIR",
                        help="the folder that `lockstep study` wrote")
    parser.add_argument("--study", metavar="FILE.toml",
                        help="the study file; its [plot] table says what to draw")
    options = parser.parse_args(arguments)
    try:
        paths = draw_study(options.results_dir, options.study)
    except read.PlotError as error:
        print(f"plot_study: {error}", file=sys.stderr)
        return 2
    for path in paths:
        print(path)
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
