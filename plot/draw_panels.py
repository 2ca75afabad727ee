# SPDX-License-Identifier: Apache-2.0
"""Panels made from stored draws: scatter, trace and density. Same interface as panels.py."""
import math
import textwrap

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import style
from modes import Modes

MAX_POINTS = 10000  # per scatter, as many as a reader can tell apart at this size
MAX_PATHS = 4  # of chains, in one axes of a trace
LETTERS_PER_INCH = 7.5  # of a title, with room for what is beside its axes
HPD_MASSES = (0.5, 0.9, 0.99)


class DrawPanel:
    """Common to panels of one small axes per label: which labels have draws, of which grid, in which rows."""

    num_dims = 2

    def __init__(self, context):
        self.context = context

    def prepare(self):
        context = self.context
        self.draws, self.contours, self.exact = {}, {}, {}
        for label in context.labels:
            draws = context.draws(label)
            if draws is None:
                continue
            if draws.x.shape[2] < self.num_dims:
                context.note(f"\"{label}\" is left out of {self.kind}: its draws have {draws.x.shape[2]} "
                             f"dimension(s), {self.num_dims} needed")
                continue
            self.draws[label] = draws
            contours = context.contours(label)
            if contours is not None and (contours.y is None) == (self.num_dims == 1):
                self.contours[label] = contours
            exact = context.exact_draws(label) if contours is None and self.num_dims > 1 else None
            if exact is not None and exact.shape[1] == draws.x.shape[2]:
                self.exact[label] = exact
        if not self.draws:
            return "there are no draws under draws/ (run the study's settings with draws stored)"
        without = [label for label in self.draws if label not in self.contours and label not in self.exact]
        if without:
            context.note(f"{self.kind}: no {self.num_dims}-dimensional contours for {', '.join(without)}; "
                         "drawn without the density")
        return None

    def rows(self):
        """Labels row by row: one row per group, at most `columns` in a row."""
        look, columns = self.context.look, int(self.context.study.plot.get("columns", 5))
        rows = []
        for group in look.groups:
            members = look.members(group, list(self.draws))
            per_row = math.ceil(len(members) / math.ceil(len(members) / columns)) if members else 1
            rows += [members[i:i + per_row] for i in range(0, len(members), per_row)]
        return rows

    def height(self):
        rows = self.rows()
        return len(rows) * (self.cell_height(max(len(row) for row in rows)) + 0.35) + 0.25

    def cell_height(self, num_columns):
        return min(style.WIDTH_INCHES / num_columns, 4.2)

    def first_replicate(self, label):
        """(chain, draw, dim) of one replicate only: replicates pooled would hide what a single run misses."""
        x = self.draws[label].x
        setting = self.context.study.settings.get(label)
        chains = setting.chains if setting and 0 < setting.chains < len(x) else len(x)
        return x[:chains]

    def draw(self, figure):
        rows = self.rows()
        num_columns = max(len(row) for row in rows)
        axes = figure.subplots(len(rows), num_columns, squeeze=False)
        self.boxes = limits = self.limits()
        for row, row_axes in zip(rows, axes):
            for column, ax in enumerate(row_axes):
                if column >= len(row):
                    ax.axis("off")
                    continue
                group = self.context.look.group_of[row[column]]
                self.draw_label(ax, row[column])
                self.frame(ax, limits[group])
                if column:
                    ax.tick_params(axis="y", labelleft=False)
                elif group:
                    ax.set_ylabel(self.context.look.heading(group), fontweight="bold")
        return axes

    def title(self, ax, label, extra=""):
        name = self.context.look.name_of[label]
        columns = max(map(len, self.rows()))
        name = "\n".join(textwrap.wrap(name, int(LETTERS_PER_INCH * style.WIDTH_INCHES / columns)))
        ax.set_title(f"{name}\n{extra}" if extra else name, loc="left", fontweight="bold")


class PlanePanel(DrawPanel):
    """Draws in the plane over filled highest-density regions of the target."""

    def __init__(self, context):
        super().__init__(context)
        self.dims = [int(dim) for dim in context.study.plot.get("dims", [0, 1])]

    def prepare(self):
        self.num_dims = max(2, max(self.dims) + 1)
        return super().prepare()

    def limits(self):
        """Per group: the grid where there is one, else the draws."""
        limits = {}
        for group in self.context.look.groups:
            boxes = []
            for label in self.context.look.members(group, list(self.draws)):
                grid = self.contours.get(label)
                x = self.draws[label].x[:, :, self.dims].reshape(-1, 2)
                if label in self.exact:
                    x = np.concatenate([x, self.exact[label][:, self.dims]])
                low, high = np.percentile(x, [0.1, 99.9], axis=0)
                low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
                boxes.append((grid.x[0], grid.x[-1], grid.y[0], grid.y[-1]) if grid else
                             (low[0], high[0], low[1], high[1]))
            if boxes:
                left, right, bottom, top = zip(*boxes)
                limits[group] = min(left), max(right), min(bottom), max(top)
        return limits

    def frame(self, ax, limits):
        ax.set_rasterization_zorder(0)  # ten thousand points and fine contours are no good as vectors
        ax.set_xlim(limits[0], limits[1])
        ax.set_ylim(limits[2], limits[3])
        ax.set_aspect("equal" if self.context.study.plot.get("equal_aspect", True) else "auto")
        ax.spines[["top", "right"]].set_visible(True)
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))

    def draw_regions(self, ax, label):
        grid = self.contours.get(label)
        if label in self.exact:  # a projection of a density of many axes: its exact draws stand for it
            ax.scatter(*self.exact[label][:, self.dims].T, s=9, color=style.CONTOUR_FILL[2], linewidths=0, zorder=-5)
        if grid is None:
            return
        levels = highest_density_levels(grid.log_density)
        z = np.maximum(grid.log_density, levels[0] - 50)  # -inf would break the interpolation
        top = max(z.max(), levels[-1]) + 1
        ax.contourf(grid.x, grid.y, z, levels=[*levels, top], colors=style.CONTOUR_FILL, zorder=-5)
        ax.contour(grid.x, grid.y, z, levels=levels, colors=style.CONTOUR_LINE, linewidths=0.7,
                   zorder=-4)

    def caption(self, figure, text):
        if self.contours:
            text = f"Grey: regions that hold 50, 90 and 99 % of the target's probability; {text}."
        elif self.exact:
            text = f"Grey: exact draws; {text}, projected on the axes {self.dims[0]} and {self.dims[1]}."
        figure.supxlabel(text, fontsize=9, color="#555555", x=0.01, ha="left")

    def mode_note(self, label, x):
        """`3 of 20 modes`, when the study asks for it with count_modes = true."""
        if not self.context.study.plot.get("count_modes", False) or label not in self.contours:
            return ""
        grid = self.contours[label]
        modes = Modes(grid.log_density)
        visited = modes.visited(np.searchsorted(midpoints(grid.y), x[:, 1]),
                                np.searchsorted(midpoints(grid.x), x[:, 0]))
        return f"{visited} of {modes.count} modes"


    def chains_shown(self):
        """`4 of the 64 chains of ` where a replicate has more than its draws file holds, else nothing."""
        pairs = {(len(draws.x), draws.num_chains) for draws in self.draws.values() if draws.num_chains > len(draws.x)}
        if not pairs:
            return ""
        if len({draws.num_chains for draws in self.draws.values()}) > 1:
            return f"{max(few for few, _ in pairs)} chains, where there are more, of "
        few, all_of = pairs.pop()
        return f"{few} of the {all_of} chains of "


class ScatterPanel(PlanePanel):
    kind = "scatter"

    def draw_label(self, ax, label):
        x = self.first_replicate(label)[:, :, self.dims].reshape(-1, 2)
        shown = x[np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).astype(int)]
        self.draw_regions(ax, label)
        ax.scatter(shown[:, 0], shown[:, 1], s=5, color=self.context.look.color_of(label), alpha=0.45,
                   linewidths=0, zorder=-3)
        self.title(ax, label, self.mode_note(label, x))

    def draw(self, figure):
        super().draw(figure)
        known = all(label in self.context.study.settings for label in self.draws)
        replicate = f"points: draws of {self.chains_shown()}one replicate"
        self.caption(figure, replicate if known or self.chains_shown() else "points: draws")


class TracePanel(PlanePanel):
    kind = "trace"

    def draw_label(self, ax, label):
        """Paths of a few chains, a shade each: how far one iteration reaches, and whether chains meet."""
        chains = self.first_replicate(label)[:MAX_PATHS]
        num_draws = max(2, int(self.context.study.plot.get("trace_draws", 1000)) // len(chains))
        self.draw_regions(ax, label)
        for rank, chain in enumerate(chains):
            x = chain[:num_draws, self.dims]
            shade = (rank + 0.5) / len(chains) - 0.5  # one chain has the label's own colour
            color = style.blend(self.context.look.color_of(label), "#ffffff" if shade < 0 else "#000000", abs(shade))
            ax.plot(x[:, 0], x[:, 1], color=color, linewidth=0.5, alpha=0.55, zorder=-3)
            ax.scatter(x[:, 0], x[:, 1], s=4, color=color, linewidths=0, zorder=-2)
        self.title(ax, label, self.mode_note(label, chains[:, :num_draws, self.dims].reshape(-1, 2)))
        self.num_drawn, self.num_paths = len(x), len(chains)

    def draw(self, figure):
        super().draw(figure)
        who = "one chain" if self.num_paths == 1 else f"each of {self.num_paths} chains"
        if few := self.chains_shown():
            who = f"each of {few}one replicate"
        self.caption(figure, f"lines join {self.num_drawn} consecutive draws of {who}")


class PlaneDensityPanel(PlanePanel):
    """How many draws fall where in the plane, in hexagons, under the lines of the target's regions."""

    kind = "density"

    def cell_height(self, num_columns):
        return super().cell_height(num_columns) + 0.2  # the name of the axis

    def draw_label(self, ax, label):
        x = self.first_replicate(label)[:, :, self.dims].reshape(-1, 2)
        left, right, bottom, top = self.boxes[self.context.look.group_of[label]]
        color = self.context.look.color_of(label)
        shades = LinearSegmentedColormap.from_list("density", [style.blend("#ffffff", color, 0.15), color,
                                                               style.blend(color, "#000000", 0.6)])
        ax.hexbin(x[:, 0], x[:, 1], gridsize=60, extent=(left, right, bottom, top), mincnt=1, cmap=shades,
                  norm=PowerNorm(0.5), linewidths=0.1, zorder=-3)
        grid = self.contours.get(label)
        if grid is not None:
            levels = highest_density_levels(grid.log_density)
            ax.contour(grid.x, grid.y, np.maximum(grid.log_density, levels[0] - 50), levels=levels, colors=style.INK,
                       linewidths=0.7, zorder=-2)
        self.title(ax, label, self.mode_note(label, x))

    def frame(self, ax, limits):
        super().frame(ax, limits)
        names = next(iter(self.draws.values())).names
        ax.set_xlabel(names[self.dims[0]])
        if ax.get_subplotspec().is_first_col():
            ax.set_ylabel(names[self.dims[1]])

    def draw(self, figure):
        axes = super().draw(figure)
        for row, labels in zip(axes, self.rows()):
            group = self.context.look.heading(self.context.look.group_of[labels[0]])
            if group:  # above the name of the axis, which stands where scatter has the heading
                row[0].set_ylabel(f"{group}\n{next(iter(self.draws.values())).names[self.dims[1]]}")
        text = f"Shades: how many draws of {self.chains_shown()}one replicate"
        if self.contours:
            text += "; lines: regions that hold 50, 90 and 99 % of the target's probability"
        figure.supxlabel(text + ".", fontsize=9, color="#555555", x=0.01, ha="left")
        return axes


def density_panel(context):
    """In the plane where the draws of all labels have two axes or more; else of their first axis."""
    found = [draws for label in context.labels if (draws := context.draws(label)) is not None]
    plane = found and all(draws.x.shape[2] > 1 for draws in found)
    return PlaneDensityPanel(context) if plane else DensityPanel(context)


class DensityPanel(DrawPanel):
    """Histogram of a one-dimensional target's draws against its density."""

    kind = "density"
    num_dims = 1

    def cell_height(self, num_columns):
        return 3.4

    def limits(self):
        pooled = np.concatenate([draws.x[:, :, 0].ravel() for draws in self.draws.values()])
        low, high = np.percentile(pooled, [0.05, 99.95])
        for grid in self.contours.values():
            heavy = grid.x[grid.log_density > grid.log_density.max() - 9]
            low, high = min(low, heavy[0]), max(high, heavy[-1])
        margin = 0.04 * (high - low)
        self.range = low - margin, high + margin
        self.top = max(self.histogram(label)[0].max() for label in self.draws)
        self.top = max([self.top, *(np.max(normalized(grid)) for grid in self.contours.values())])
        return {group: None for group in self.context.look.groups}

    def histogram(self, label):
        """Heights and edges; heights integrate to the share of draws inside the range."""
        x = self.first_replicate(label)[:, :, 0].ravel()
        edges = np.linspace(*self.range, 81)
        counts, _ = np.histogram(x, bins=edges)
        return counts / (len(x) * (edges[1] - edges[0])), edges

    def draw_label(self, ax, label):
        heights, edges = self.histogram(label)
        ax.stairs(heights, edges, fill=True, color=self.context.look.color_of(label), alpha=0.8)
        if label in self.contours:
            grid = self.contours[label]
            ax.plot(grid.x, normalized(grid), color=style.INK, linewidth=1.8)
        self.title(ax, label)

    def frame(self, ax, _):
        ax.set_xlim(self.range)
        ax.set_ylim(0, 1.06 * self.top)
        ax.set_xlabel(next(iter(self.draws.values())).names[0].removesuffix("[0]"))

    def draw(self, figure):
        axes = super().draw(figure)
        for row in axes:
            if not row[0].get_ylabel():
                row[0].set_ylabel("density")
        if self.contours:
            axes[0, 0].legend([Line2D([], [], color=style.INK, linewidth=1.8)], ["target density"],
                              loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.1)


def highest_density_levels(log_density):
    """Levels, ascending, whose regions hold 99, 90 and 50 % of the grid's mass."""
    ordered = np.sort(log_density.ravel())[::-1]
    mass = np.cumsum(np.exp(ordered - ordered[0]))
    places = [int(np.searchsorted(mass, share * mass[-1])) for share in sorted(HPD_MASSES, reverse=True)]
    levels = ordered[np.minimum(places, len(ordered) - 1)]
    # matplotlib needs increasing levels; equal ones occur when a grid point or two hold everything.
    return levels + 1e-6 * np.arange(len(levels)) * max(1.0, abs(ordered[0]))


def normalized(grid):
    density = np.exp(grid.log_density - grid.log_density.max())
    return density / np.trapz(density, grid.x)


def midpoints(values):
    return (values[1:] + values[:-1]) / 2
