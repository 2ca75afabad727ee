# SPDX-License-Identifier: Apache-2.0
"""Panels made from results.csv and timings.csv: errors as bars, and error against cost.

Every panel is a class with `prepare` (None, or the reason why it cannot be drawn), `height` (inches, once
prepared) and `draw(figure)`.
"""
import math
from collections import Counter

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

import accuracy
import style


def plain_number(value, _=None):
    """0.01, 0.1, 1, 10, 1000; powers of ten beyond."""
    if value == 0 or 0.99e-4 <= abs(value) < 1e5:
        return f"{value:g}"
    digits, power = f"{value:.0e}".split("e")
    return f"${'' if digits == '1' else digits + ' '}10^{{{int(power)}}}$".replace(" ", r" \times ")


def log_axis(axis):
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 60 * low else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(plain_number))
    axis.set_minor_formatter(NullFormatter())


MAX_FACETS_IN_ROW = 3


def num_facet_rows(num_facets):
    return math.ceil(num_facets / MAX_FACETS_IN_ROW)


def num_facet_columns(num_facets):
    return math.ceil(num_facets / num_facet_rows(num_facets))


def legend_and_facets(figure, handles, labels, num_facets, height):
    """A thin row with the legend above rows of axes, MAX_FACETS_IN_ROW at most in each; returns the axes."""
    lines, room = 1, style.WIDTH_INCHES - 1
    while lines < len(handles) and legend_inches(labels, math.ceil(len(handles) / lines)) > room:
        lines += 1
    legend_height, num_rows = 0.08 + 0.23 * lines, num_facet_rows(num_facets)
    num_columns = num_facet_columns(num_facets)
    ratios = [legend_height] + [max((height - legend_height) / num_rows, 1)] * num_rows
    grid = figure.add_gridspec(1 + num_rows, num_columns, height_ratios=ratios)
    legend_axes = figure.add_subplot(grid[0, :])
    legend_axes.axis("off")
    legend_axes.legend(handles, labels, loc="center left", ncol=math.ceil(len(handles) / lines),
                       borderaxespad=0, handlelength=1.4, handletextpad=0.5, columnspacing=1.5)
    return [figure.add_subplot(grid[1 + facet // num_columns, facet % num_columns])
            for facet in range(num_facets)]


def write_note(figure, results, whiskers="one bootstrap standard error", sign="whiskers"):
    """Below a panel: over how many replicates, what whiskers (or another sign) are, and what is missing."""
    replicates = max(len(v) for table in results.estimate.values() for v in table.values())
    note = ""
    if replicates > 1:
        note = f"Over {replicates} replicates; {sign}: {whiskers}."
    if results.failed:
        note += f" {results.failed} rows without a finite estimate are left out."
    if note:
        figure.supxlabel(note.strip(), fontsize=9, color="#555555", x=0.01, ha="left")


def starts_row(ax):
    return ax.get_subplotspec().is_first_col()


def legend_inches(labels, num_columns):
    """Width of a legend of so many columns, from the number of letters; a little more than it will be."""
    return num_columns * (0.45 + 0.085 * max(len(label) for label in labels))


class RmsePanel:
    """Bars of RMSE: a facet per group, a cluster per quantity, a colour per label; published values too."""

    def __init__(self, context):
        self.context = context

    def prepare(self):
        context = self.context
        quantities = accuracy.quantities_with_truth(context.results, context.study.quantities, context.labels)
        self.columns = accuracy.columns_of(quantities, split=bool(context.study.plot.get("split", False)))
        self.bars = {}
        for label in context.labels:
            for column in self.columns:
                squares = accuracy.squared_errors(context.results, label, column.quantities)
                if len(squares) and squares.mean() > 0:
                    self.bars[label, column.name] = accuracy.rmse(squares)
        if not self.bars:
            return "no quantity in results.csv has a truth and an error"
        return None

    def height(self):
        num_rows = num_facet_rows(len({self.context.look.group_of[label] for label in self.context.labels}))
        return 4.3 if num_rows == 1 else 3.4 * num_rows

    def published(self, label, column):
        setting = self.context.study.settings.get(label)
        return accuracy.published_rmse(self.context.results, setting, label, column.quantities)

    def draw(self, figure):
        context, look = self.context, self.context.look
        groups = [g for g in look.groups if look.members(g, context.labels)]
        names = [n for n in look.names if any(look.name_of[label] == n for label in context.labels)]
        marks = {(label, column.name): self.published(label, column)
                 for label in context.labels for column in self.columns}
        marks = {key: value for key, value in marks.items() if value}
        handles = [Patch(color=look.color[name]) for name in names]
        texts = list(names)
        if marks:
            handles.append(published_mark([], []))
            texts.append("published")
        axes = legend_and_facets(figure, handles, texts, len(groups), self.height())
        values = [v for bar in self.bars.values() for v in bar[1:]] + list(marks.values())
        values = [v for v in values if v > 0]
        low, high = min(values) / 1.6, max(values) * 1.6
        for ax, group in zip(axes, groups):
            self.draw_facet(ax, group, marks)
            ax.set_yscale("log")
            ax.set_ylim(low, high)
            log_axis(ax.yaxis)
            ax.grid(True, axis="y")
            ax.set_title(look.heading(group), loc="left", fontweight="bold")
            ax.tick_params(axis="x", length=0)
            if starts_row(ax):
                ax.set_ylabel("RMSE (lower is better)")
            else:
                ax.tick_params(axis="y", labelleft=False)
        write_note(figure, context.results)

    def draw_facet(self, ax, group, marks):
        look = self.context.look
        members = look.members(group, self.context.labels)
        width = 0.84 / len(members)
        for position, column in enumerate(self.columns):
            for rank, label in enumerate(members):
                if (label, column.name) not in self.bars:
                    continue
                center = position + (rank - (len(members) - 1) / 2) * width
                value, low, high = self.bars[label, column.name]
                # Bars of a log axis need some foot; it lies below the axis' lower limit.
                ax.bar(center, value, width=0.9 * width, color=look.color_of(label), bottom=0, log=True)
                if high > low:
                    halo = [withStroke(linewidth=2.6, foreground="white")]  # seen on dark bars too
                    ax.errorbar(center, value, yerr=[[value - low], [high - value]], color=style.INK,
                                elinewidth=1.1, capsize=min(3, 12 * width), capthick=1.1, path_effects=halo)
                if (label, column.name) in marks:
                    ax.add_line(published_mark([center], [marks[label, column.name]]))
        names = [column.name for column in self.columns]
        room = 110 / num_facet_columns(len({look.group_of[label] for label in self.context.labels}))
        if num_letters(names) > room:
            names = [on_two_lines(name) for name in names]
        turned = num_letters(names) > room
        ax.set_xticks(range(len(names)), names, rotation=90 if turned else 0)
        ax.set_xlim(-0.55, len(self.columns) - 0.45)


def num_letters(names):
    """Letters that the names need side by side."""
    return len(names) * (2 + max(len(line) for name in names for line in name.split("\n")))


def on_two_lines(quantity):
    """second_moment[0] and covariance[0][1] are broken; short names stay."""
    if len(quantity.split("\n")[0]) > 9:
        quantity = quantity.replace("_", "\n", 1) if "_" in quantity else quantity.replace("[", "\n[", 1)
    return quantity


def published_mark(x, y):
    return Line2D(x, y, linestyle="none", marker="D", markersize=6, markerfacecolor="white",
                  markeredgecolor="black", markeredgewidth=1.3, zorder=5)


class CostPanel:
    """MSE x seconds (or gradients) against the number of pseudo-samples: facet per vector, line per group."""

    COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00")
    MARKERS = ("o", "s", "^", "D", "v", "P")

    def __init__(self, context):
        self.context = context

    def prepare(self):
        context = self.context
        self.unit = str(context.study.plot.get("cost", "seconds"))
        if self.unit == "seconds":
            if context.timings is None:
                return "timings.csv is missing (seconds come from it; `cost = \"gradients\"` does without)"
            costs = {label: context.timings[label] / self.num_replicates(label)
                     for label in context.labels if label in context.timings}
        else:
            costs = dict(context.results.gradients)
        quantities = accuracy.quantities_with_truth(context.results, context.study.quantities, context.labels)
        vectors = {}
        for quantity in quantities:
            vectors.setdefault(accuracy.vector_of(quantity), []).append(quantity)
        self.lines = {}  # vector -> (group, family) -> sorted [(N, value, low, high)]
        for vector, entries in vectors.items():
            table = {}
            for label in context.labels:
                squares = accuracy.squared_errors(context.results, label, entries)
                cost = costs.get(label, math.nan)
                if len(squares) == 0 or not squares.mean() > 0 or not cost > 0:
                    continue
                value, low, high = (number**2 * cost for number in accuracy.rmse(squares))
                points = table.setdefault(self.line_of(label), [])
                if all(self.num_pseudo(label) != point[0] for point in points):
                    points.append((self.num_pseudo(label), value, low, high))
            table = {key: sorted(points) for key, points in table.items() if any(p[0] > 1 for p in points)}
            if table:
                self.lines[vector] = table
        if not self.lines:
            return "no label has N pseudo-samples, a truth and a cost"
        return None

    def num_replicates(self, label):
        return max(len(values) for values in self.context.results.estimate[label].values())

    def num_pseudo(self, label):
        setting = self.context.study.settings.get(label)
        return (setting.pseudo_samples if setting else style.pseudo_samples_in(label)) or 1

    def is_plain(self, label):
        setting = self.context.study.settings.get(label)
        sampler = setting.sampler if setting and setting.sampler else self.context.look.name_of[label]
        return self.num_pseudo(label) == 1 and sampler.lower() in ("hmc", "nuts")

    def line_of(self, label):
        """(group, family). Plain HMC or NUTS is the point N = 1 of its group's line, or of the longest by far."""
        look = self.context.look
        group = look.group_of[label]
        families = Counter(style.family(look.name_of[other]) for other in look.members(group, self.context.labels)
                           if self.num_pseudo(other) > 1).most_common(2)
        name = style.family(look.name_of[label])
        if self.is_plain(label) and families and (len(families) == 1 or families[0][1] > 2 * families[1][1]):
            name = families[0][0]
        return group, name

    def height(self):
        return 4.0 * num_facet_rows(len(self.lines))

    def draw(self, figure):
        look = self.context.look
        keys = list(dict.fromkeys(key for table in self.lines.values() for key in table))
        several = len({family for _, family in keys}) > 1
        texts = [" ".join(filter(None, (look.heading(group), name if several or not group else "")))
                 for group, name in keys]
        marks = [{"color": self.COLORS[i % 6], "marker": self.MARKERS[i % 6]} for i in range(len(keys))]
        handles = [Line2D([], [], linewidth=2, markersize=7, **mark) for mark in marks]
        handles.append(Line2D([], [], linestyle="none", marker="o", markersize=13, markerfacecolor="none",
                              markeredgecolor=style.INK, markeredgewidth=1.4))
        axes = legend_and_facets(figure, handles, texts + ["lowest"], len(self.lines), self.height())
        for ax, (vector, table) in zip(axes, self.lines.items()):
            for key, mark in zip(keys, marks):
                if key in table:
                    self.draw_line(ax, table[key], mark)
            ax.set_xscale("log")
            ax.set_yscale("log")
            log_axis(ax.yaxis)
            ticks = sorted({point[0] for points in table.values() for point in points})
            ax.set_xticks(ticks, ["1\n(HMC)" if tick == 1 else str(tick) for tick in ticks])
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xlim(ticks[0] / 1.25, ticks[-1] * 1.25)
            ax.grid(True, axis="y")
            ax.set_title(vector.replace("_", " "), loc="left", fontweight="bold")
            ax.set_xlabel("number of pseudo-samples N")
            if starts_row(ax):
                ax.set_ylabel(f"MSE × {self.unit} per replicate\n(lower is better)")
        write_note(figure, self.context.results)

    def draw_line(self, ax, points, mark):
        n, value, low, high = (np.array(column, dtype=float) for column in zip(*points))
        ax.errorbar(n, value, yerr=[value - low, high - value], linewidth=2, markersize=7, elinewidth=1.2,
                    capsize=3, **mark)
        if len(n) == 1:
            return  # the lowest of one says nothing
        best = int(np.argmin(value))
        ax.plot(n[best], value[best], marker="o", markersize=15, markerfacecolor="none",
                markeredgecolor=style.INK, markeredgewidth=1.4, linestyle="none")
