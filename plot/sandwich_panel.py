# SPDX-License-Identifier: Apache-2.0
"""The panel of lower and upper bounds of log Z against what they cost. Same interface as panels.py.

A label is `SYSTEM METHOD K=TEMPERATURES`: its group, if it has one, the name of a line, and a number that tells the
line's points apart.
"""
import math
import re
from collections import Counter

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from convergence_panel import COLORS, MARKERS, EstimatesPanel
from panels import starts_row, write_note

POINT = re.compile(r"\s*(?<!\S)(?:K=|chains=)?\d+(?:\.\d+)?(?:e\d+)?(?!\S)")
CUT = 12
DASHES = (0, (4, 1.8))


class SandwichPanel(EstimatesPanel):
    """Means over the replicates of log_z_lower (log_z where a method has no bounds) and, dashed, of log_z_upper, with
    two standard errors shaded: a facet per group, a line per method. Graham & Storkey's figure 4."""

    kind = "sandwich"

    def __init__(self, context):
        self.context = context
        self.against = str(context.study.plot.get("against", "gradients"))
        self.group_of, self.line_of = {}, {}
        for label in context.labels:
            name, group = context.look.name_of[label], context.look.group_of[label]
            line = POINT.sub("", name).strip()
            if not line:  # `METHOD K=50`: what looks like a group is the method
                line, group = group or name, ""
            self.group_of[label], self.line_of[label] = group, line
        self.lines = list(dict.fromkeys(self.line_of.values()))
        self.marks = {line: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)],
                             "markersize": 8 if MARKERS[i % len(MARKERS)] == "*" else 5.5, "linewidth": 1.7}
                      for i, line in enumerate(self.lines)}

    def prepare(self):
        self.facets, self.upper = {}, {}
        for group in dict.fromkeys(self.group_of.values()):
            for line in self.lines:
                lower = self.points(group, line, "log_z_lower") or self.points(group, line, "log_z")
                if lower:
                    self.facets.setdefault(group, {})[line] = lower
                    self.upper[group, line] = self.points(group, line, "log_z_upper")
        return None if self.facets else "results.csv has neither log_z_lower nor log_z"

    def points(self, group, line, quantity):
        """Sorted [(gradients, mean, mean - 2 standard errors, mean + 2 standard errors)]."""
        points = []
        for label in self.context.labels:
            values = self.context.results.estimate[label].get(quantity, np.array([]))
            values, x = values[np.isfinite(values)], self.place([label])
            if (self.group_of[label], self.line_of[label]) == (group, line) and len(values) and x > 0:
                margin = 2 * values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
                points.append((x, values.mean(), values.mean() - margin, values.mean() + margin))
        return sorted(points)

    def exact(self, group):
        return self.truth(group, "log_z")

    def more_handles(self):
        handles = [Line2D([], [], color="#555555", linewidth=1.7, linestyle=DASHES)] if any(self.upper.values()) else []
        if any(map(math.isfinite, map(self.exact, self.facets))):
            handles.append(Line2D([], [], color="#555555", linewidth=1.2))
        return handles

    def more_names(self):
        names = ["upper bound"] if any(self.upper.values()) else []
        return names + ["exact"] * (len(self.more_handles()) - len(names))

    def draw(self, figure):
        self.cut = False
        for ax, group, lines in self.axes(figure):
            exact = self.exact(group)
            if math.isfinite(exact):
                ax.axhline(exact, color="#555555", linewidth=1.2, zorder=1)
            for line, points in lines.items():
                self.draw_band(ax, line, points, "-")
                self.draw_band(ax, line, self.upper[group, line], DASHES)
            self.frame(ax, self.center(group), group)
            ax.ticklabel_format(axis="y", useOffset=False)
            ax.set_title(self.context.look.heading(group), loc="left", fontweight="bold")
            if starts_row(ax):
                ax.set_ylabel("log Z: bounds and estimates")
        note = "two standard errors of the mean"
        if self.cut:
            note += ". ▲▼: points cut off, with their distance from the exact value or, without it, the lines' ends"
        write_note(figure, self.context.results, note, sign="shaded")

    def center(self, group):
        """What distances are measured from: the truth, else the middle of what the most gradients gave."""
        ends = [points[-1][1] for line in self.facets[group]
                for points in (self.facets[group][line], self.upper[group, line]) if points]
        return self.exact(group) if math.isfinite(self.exact(group)) else float(np.median(ends))

    def frame(self, ax, center, group):
        """The first, cheapest points are often so far off that nothing could be told of the rest: beyond CUT times the
        median distance they are cut off, with their distance at the edge."""
        bounds = [(line, rank, point) for line, lower in self.facets[group].items()
                  for points in (lower, self.upper[group, line]) for rank, point in enumerate(points)]
        furthest = CUT * np.median([abs(value - center) for _, _, (_, value, _, _) in bounds])
        inside = [edge for _, _, (_, value, *edges) in bounds for edge in edges if abs(value - center) <= furthest]
        if not furthest > 0:
            return
        low, high = max(min(inside), center - furthest), min(max(inside), center + furthest)
        margin = 0.08 * (high - low)
        ax.set_ylim(low - margin, high + margin)
        ax.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        stacked = Counter()
        for line, rank, (x, value, _, _) in bounds:
            if low - margin <= value <= high + margin:
                continue
            self.cut = True
            above = value > center
            place = (11 if above else -11) * stacked[rank, above]
            stacked[rank, above] += 1
            ax.annotate(f"{'▲' if above else '▼'} {value - center:+.2g}", (x, 0.99 if above else 0.01),
                        xytext=(0, -place), xycoords=("data", "axes fraction"), textcoords="offset points",
                        color=self.marks[line]["color"], fontsize=8, ha="center", va="top" if above else "bottom",
                        path_effects=[withStroke(linewidth=2.4, foreground="white")], zorder=6)

    def draw_band(self, ax, line, points, dashes):
        if points:
            x, value, low, high = (np.array(column, dtype=float) for column in zip(*points))
            filling = "white" if dashes == DASHES else self.marks[line]["color"]
            ax.plot(x, value, linestyle=dashes, markerfacecolor=filling, **self.marks[line])
            ax.fill_between(x, low, high, color=self.marks[line]["color"], alpha=0.18, linewidth=0)
