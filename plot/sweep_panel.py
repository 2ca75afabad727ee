# SPDX-License-Identifier: Apache-2.0
"""The panel of errors against a parameter. Same interface as panels.py."""
import itertools
import re

import numpy as np
from matplotlib.lines import Line2D

import accuracy
from panels import legend_and_facets, log_axis, num_facet_rows, published_mark, starts_row, write_note
import style

PARAMETER = re.compile(r"\s*\b(?!N\s*=)([A-Za-z]\w*)=([0-9.]+)")

MARKS = "os^DvP*X<"


class SweepPanel:
    """RMSE against a parameter that labels name (`a beta=0.1 N=2`): a facet per group and vector, a line per rest
    of the label; labels without the parameter are levels across. Of several parameters (`K=5 D=20 HMC`) each has a facet,
    with the labels whose other parameters are those of its lines: one label may stand in several."""

    def __init__(self, context):
        self.context = context

    def prepare(self):
        context, look = self.context, self.context.look
        self.values = {label: {name: float(value) for name, value in PARAMETER.findall(look.name_of[label])}
                       for label in context.labels}
        self.parameters = list(dict.fromkeys(name for values in self.values.values() for name in values))
        if not self.parameters:
            return "no label names a parameter, such as beta=0.1"
        self.name_of = {label: PARAMETER.sub("", look.name_of[label]).strip() or label for label in context.labels}
        quantities = accuracy.quantities_with_truth(context.results, context.study.quantities, context.labels)
        vectors = {}
        for quantity in quantities:
            vectors.setdefault(accuracy.vector_of(quantity), []).append(quantity)
        self.facets = {(group, parameter, vector): self.points(group, parameter, entries)
                       for group in look.groups for parameter in self.parameters for vector, entries in vectors.items()}
        self.facets = {key: points for key, points in self.facets.items()
                       if any(point[0] is not None for values in points.values() for point in values)}
        return None if self.facets else "no quantity in results.csv has a truth and an error"

    def others(self, label, parameter):
        return tuple((name, value) for name, value in self.values[label].items() if name != parameter)

    def members(self, group, parameter):
        """Labels of a facet: those that have the parameter, where others go with several of its values; and levels."""
        look, found = self.context.look, {}
        members = look.members(group, self.context.labels)
        for label in members:
            if parameter in self.values[label]:
                line = found.setdefault((self.others(label, parameter), self.name_of[label]), set())
                line.add(self.values[label][parameter])
        swept = {others for (others, _), values in found.items() if len(values) > 1 or len(self.parameters) == 1}
        return [label for label in members if not self.values[label]
                or (parameter in self.values[label] and self.others(label, parameter) in swept)]

    def points(self, group, parameter, entries):
        """name -> sorted [(value, RMSE, low, high, published)]; the value is None for a level."""
        context, points = self.context, {}
        for label in self.members(group, parameter):
            squares = accuracy.squared_errors(context.results, label, entries)
            if len(squares) and squares.mean() > 0:
                published = accuracy.published_rmse(context.results, context.study.settings.get(label), label, entries)
                points.setdefault(self.name_of[label], []).append(
                    (self.values[label].get(parameter), *accuracy.rmse(squares), published))
        return {name: sorted(values, key=lambda point: (point[0] is None, point)) for name, values in points.items()}

    def height(self):
        return 3.4 * num_facet_rows(len(self.facets))

    def draw(self, figure):
        look = self.context.look
        names = list(dict.fromkeys(name for points in self.facets.values() for name in points))
        # A level has the colour of the line that is as long in N, a shade that has none one of its own.
        lines = [name for name in names if any(p[0] is not None for f in self.facets.values() for p in f.get(name, []))]
        ordered = all(style.pseudo_samples_in(name) for name in lines)
        shades = [style.blend(*style.FAMILY_HUES[0], rank / max(1, len(lines) - 1)) for rank in range(len(lines))]
        color = dict(zip(lines, shades if ordered else style.hues(len(lines))))
        mark = {name: "o" if ordered else MARKS[rank % len(MARKS)] for rank, name in enumerate(lines)}
        sizes = {style.pseudo_samples_in(name): shade for name, shade in color.items() if style.pseudo_samples_in(name)}
        unused = itertools.cycle(style.SINGLE_HUES) if ordered else iter(style.hues(len(names))[len(lines):])
        for name in names:
            if name not in color:
                color[name] = sizes.get(style.pseudo_samples_in(name)) or next(unused)
        handles = [Line2D([], [], color=color[name], linewidth=2, marker=mark.get(name, ""),
                          linestyle="-" if name in lines else (0, (4, 2))) for name in names]
        texts = list(names)
        if any(point[4] for points in self.facets.values() for values in points.values() for point in values):
            handles.append(published_mark([], []))
            texts.append("published")
        axes = legend_and_facets(figure, handles, texts, len(self.facets), self.height())
        for ax, ((group, parameter, vector), points) in zip(axes, self.facets.items()):
            for name, values in points.items():
                self.draw_line(ax, values, color[name], mark.get(name, ""))
            ax.set_yscale("log")
            log_axis(ax.yaxis)
            ticks = sorted({point[0] for values in points.values() for point in values} - {None})
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.grid(True, axis="y")
            fixed = {f"{name}={value:g}" for label in self.members(group, parameter)
                     for name, value in self.others(label, parameter)}
            ax.set_title(" ".join((*filter(None, (look.heading(group), vector.replace("_", " "))), *sorted(fixed))),
                         loc="left", fontweight="bold")
            ax.set_xlabel(parameter)
            if starts_row(ax):
                ax.set_ylabel("RMSE (lower is better)")
        write_note(figure, self.context.results)

    def draw_line(self, ax, values, color, marker):
        swept = [point for point in values if point[0] is not None]
        for _, value, _, _, published in (point for point in values if point[0] is None):
            ax.axhline(value, color=color, linewidth=1.6, linestyle=(0, (4, 2)))
            if published:
                mark = published_mark([1.0], [published])
                mark.set(transform=ax.get_yaxis_transform(), color=color, clip_on=False, markeredgecolor=color)
                ax.add_line(mark)
        if not swept:
            return
        x, value, low, high = (np.array(column, dtype=float) for column in list(zip(*swept))[:4])
        ax.errorbar(x, value, yerr=[value - low, high - value], color=color, linewidth=2, marker=marker, markersize=5,
                    elinewidth=1.1, capsize=2.5)
        printed = [(point[0], point[4]) for point in swept if point[4]]
        if printed:
            mark = published_mark(*zip(*printed))
            mark.set(markeredgecolor=color, markersize=5.5)
            ax.add_line(mark)
