# SPDX-License-Identifier: Apache-2.0
"""Panels of what a budget buys: errors and estimates against gradients. Same interface as panels.py.

A label is `SYSTEM METHOD BUDGET`: its group, if it has one, then the name of a line, and among its words the numbers
that tell the line's points apart, such as 1e6 or chains=256.
"""
import math
import re
from collections import Counter

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullLocator

import accuracy
from panels import legend_and_facets, log_axis, num_facet_rows, plain_number, starts_row, write_note
import style

NUMBER = re.compile(r"\s*(?<!\S)(?:chains=)?\d+(?:\.\d+)?(?:e\d+)?(?!\S)")
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#7b3294", "#777777")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
BASE_LINE = {"color": "#555555", "linewidth": 1.6, "linestyle": (0, (1, 1.2))}
CUT = 20  # times the usual error: what is farther off is cut
AXIS_NAMES = {"gradients": "target gradients, all chains together", "chains": "chains",
              "gradients_per_chain": "target gradients per chain"}


class BudgetPanel:
    """Common to both: which label is which point of which line."""

    whiskers = "one bootstrap standard error"

    def __init__(self, context):
        self.context = context
        self.against = str(context.study.plot.get("against", "gradients"))
        self.lines = {}  # name of the line -> what tells its points apart -> labels, one for each group
        self.group_of = {}
        for label in context.labels:
            name, group = context.look.name_of[label], context.look.group_of[label]
            line, point = NUMBER.sub("", name).strip(), tuple(NUMBER.findall(name))
            if not line:  # `METHOD BUDGET`: what looks like a group is the method
                line, group = group or name, ""
            self.group_of[label] = group
            self.lines.setdefault(line, {}).setdefault(point, []).append(label)
        self.groups = list(dict.fromkeys(self.group_of.values()))
        self.marks = {line: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)],
                             "markersize": 8 if MARKERS[i % len(MARKERS)] == "*" else 5.5, "linewidth": 1.7}
                      for i, line in enumerate(self.lines)}

    def place(self, labels):
        """Where a point stands on the axis: gradients as they were spent."""
        places = []
        for label in labels:
            setting = self.context.study.settings.get(label)
            chains = setting.chains if setting else 0
            gradients = self.context.results.gradients[label]
            places.append({"gradients": gradients, "chains": chains or math.nan,
                           "gradients_per_chain": gradients / chains if chains else math.nan}[self.against])
        return float(np.mean(places))

    def vectors(self):
        quantities = accuracy.quantities_with_truth(self.context.results, self.context.study.quantities,
                                                    self.context.labels)
        vectors = {}
        for quantity in quantities:
            vectors.setdefault(accuracy.vector_of(quantity), []).append(quantity)
        asked = [accuracy.vector_of(quantity) for quantity in self.context.study.quantities]
        return dict(sorted(vectors.items(), key=lambda item: asked.index(item[0]) if asked else 0))

    def height(self):
        return 4.4 if len(self.facets) <= 3 else 3.6 * num_facet_rows(len(self.facets))

    def axes(self, figure):
        """(axes, facet, points of the facet), with the legend of the lines that have points."""
        shown = [line for line in self.lines if any(line in points for points in self.facets.values())]
        handles = [Line2D([], [], **self.marks[line]) for line in shown]
        axes = legend_and_facets(figure, handles + self.more_handles(), shown + self.more_names(), len(self.facets),
                                 self.height())
        places = [point[0] for points in self.facets.values() for line in points.values() for point in line]
        for ax, (facet, points) in zip(axes, self.facets.items()):
            ax.set_xscale("log")
            ax.set_xlim(min(places) / 1.4, max(places) * 1.4)
            powers = 10.0 ** np.arange(math.ceil(math.log10(min(places) / 1.4)), math.log10(max(places) * 1.4))
            if len(powers) > 1:
                largest = powers[-1] >= 1e5  # then all as powers: 1000 beside 10^5 reads badly
                ax.set_xticks(powers, [power_of_ten(power) if largest else plain_number(power) for power in powers])
            else:
                log_axis(ax.xaxis)
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xlabel(AXIS_NAMES[self.against])
            ax.grid(True)
            yield ax, facet, points
        write_note(figure, self.context.results, self.whiskers)

    def more_handles(self):
        return []

    def more_names(self):
        return []

    def draw_line(self, ax, line, points):
        x, value, low, high = (np.array(column, dtype=float) for column in zip(*points))
        ax.errorbar(x, value, yerr=[value - low, high - value], elinewidth=1.1, capsize=2.5, **self.marks[line])


class ConvergencePanel(BudgetPanel):
    """RMSE against the budget, both logarithmic: a facet per vector, a line per method, the systems pooled (root mean
    square over the labels of one method and budget)."""

    kind = "convergence"

    def prepare(self):
        self.facets = {vector: self.points(entries) for vector, entries in self.vectors().items()}
        self.facets = {vector: points for vector, points in self.facets.items() if points}
        return None if self.facets else "no quantity in results.csv has a truth and an error"

    def points(self, entries):
        lines = {}
        for line, table in self.lines.items():
            for labels in table.values():
                squares = [accuracy.squared_errors(self.context.results, label, entries) for label in labels]
                squares = [values for values in squares if len(values)]
                x = self.place(labels)
                if squares and np.concatenate(squares).mean() > 0 and x > 0:
                    lines.setdefault(line, []).append((x, *accuracy.pooled_rmse(squares)))
        return {line: sorted(points) for line, points in lines.items()}

    def base_error(self, vector):
        """RMSE that the bases alone have, or None: what a method must beat to be worth its gradients."""
        base = accuracy.base_of(vector)
        squares = [accuracy.squared_errors(self.context.results, label, [base])
                   for label in self.context.labels if base in self.context.results.estimate[label]]
        squares = np.concatenate([np.array([]), *squares])
        return math.sqrt(squares.mean()) if len(squares) and squares.mean() > 0 else None

    def more_handles(self):
        return [Line2D([], [], **BASE_LINE)] if any(map(self.base_error, self.facets)) else []

    def more_names(self):
        return ["the base alone"] if self.more_handles() else []

    def draw(self, figure):
        for ax, vector, points in self.axes(figure):
            for line, values in points.items():
                self.draw_line(ax, line, values)
            ax.set_yscale("log")
            log_axis(ax.yaxis)
            base = self.base_error(vector)
            if base:
                ax.axhline(base, zorder=1, **BASE_LINE)
                relative = ax.secondary_yaxis("right", functions=(lambda y, b=base: y / b, lambda r, b=base: r * b))
                log_axis(relative.yaxis)
                relative.set_ylabel("over the base's")
            ax.set_title(title_of(vector), loc="left", fontweight="bold")
            if starts_row(ax):
                ax.set_ylabel("RMSE (lower is better)")


class EstimatesPanel(BudgetPanel):
    """Mean of the estimates over the replicates and their standard deviation against the budget: a facet per group and
    quantity, a line per method, the truth dashed."""

    kind = "estimates"
    whiskers = "one standard deviation of the estimates"

    def prepare(self):
        quantities = [q for entries in self.vectors().values() for q in entries]
        self.facets = {(group, quantity): self.points(group, quantity)
                       for group in self.groups for quantity in quantities}
        self.facets = {facet: points for facet, points in self.facets.items() if points}
        return None if self.facets else "no quantity in results.csv has a truth and an estimate"

    def points(self, group, quantity):
        lines, results = {}, self.context.results
        for line, table in self.lines.items():
            for label in (label for labels in table.values() for label in labels):
                values = results.estimate[label].get(quantity, np.array([]))
                values = values[np.isfinite(values)]
                x = self.place([label])
                if self.group_of[label] == group and len(values) and x > 0:
                    spread = values.std(ddof=1) if len(values) > 1 else 0.0
                    mean = values.mean()
                    lines.setdefault(line, []).append((x, mean, mean - spread, mean + spread))
        return {line: sorted(points) for line, points in lines.items()}

    def more_handles(self):
        return [Line2D([], [], color=style.INK, linewidth=1.4, linestyle=(0, (2.5, 1.5)))]

    def more_names(self):
        return ["exact"]

    def truth(self, group, quantity):
        for label in (label for label in self.context.labels if self.group_of[label] == group):
            if math.isfinite(self.context.results.truth[label].get(quantity, math.nan)):
                return self.context.results.truth[label][quantity]
        return math.nan

    def draw(self, figure):
        for ax, (group, quantity), points in self.axes(figure):
            truth = self.truth(group, quantity)
            ax.axhline(truth, color=style.INK, linewidth=1.4, linestyle=(0, (5, 3)), zorder=1)
            for rank, (line, values) in enumerate(points.items()):
                # Beside each other: at one budget the whiskers of all methods would lie on one line.
                shift = 1.03 ** (rank - (len(points) - 1) / 2)
                self.draw_line(ax, line, [(x * shift, *rest) for x, *rest in values])
            self.frame(ax, truth, points)
            ax.ticklabel_format(axis="y", useOffset=False)
            heading = self.context.look.heading(group)
            ax.set_title(" ".join(filter(None, (heading, title_of(quantity)))), loc="left", fontweight="bold")
            if starts_row(ax):
                ax.set_ylabel("estimate")

    def frame(self, ax, truth, points):
        """A few points that are far off must not hide the differences between the rest: they are cut off, with their
        error at the edge."""
        errors = [(low - truth, high - truth) for line in points.values() for _, _, low, high in line]
        usual = np.percentile(np.abs(errors), 75)
        if not usual > 0:
            return
        low = max(min(error for error, _ in errors), -CUT * usual)
        high = min(max(error for _, error in errors), CUT * usual)
        low, high = min(low, -0.25 * high), max(high, -0.25 * low)
        margin = 0.08 * (high - low)
        ax.set_ylim(truth + low - margin, truth + high + margin)
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        stacked = Counter()
        for line, values in points.items():
            for place, (x, value, _, _) in enumerate(values):
                error = value - truth
                if low - margin <= error <= high + margin:
                    continue
                # Errors of several methods at one budget stand above each other.
                rank = stacked[place, error > 0]
                stacked[place, error > 0] += 1
                ax.annotate(f"{'▲' if error > 0 else '▼'} {error:+.2g}", (x, 0.99 if error > 0 else 0.01),
                            xytext=(0, (-11 if error > 0 else 11) * rank), xycoords=("data", "axes fraction"),
                            textcoords="offset points", color=self.marks[line]["color"], fontsize=8, ha="center",
                            va="top" if error > 0 else "bottom",
                            path_effects=[withStroke(linewidth=2.4, foreground="white")], zorder=6)


def power_of_ten(value):
    return f"$10^{{{round(math.log10(value))}}}$"


def title_of(vector):
    return vector.replace("log_z", "log Z").replace("_", " ")
