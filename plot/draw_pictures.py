# SPDX-License-Identifier: Apache-2.0
"""Pictures of where a run's draws lie: marginals and corner.

Every function takes a Run and gives (figure, caption), or None where the run has nothing for it to show.
"""
import math

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import style

# Okabe and Ito's blue, vermilion, green and purple, in the order in which chains are told apart.
CHAIN_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
FILL, TRUTH, DIVERGENT = "#0072b2", "#d55e00", "#d55e00"
DENSITY = LinearSegmentedColormap.from_list("density", ["#e4eff7", "#0072b2", "#06253a"])
MAX_CORNER = 6
MAX_POINTS = 3000  # of a scatter; more are counted in hexagons
TAIL = 0.1  # percent of the draws beyond either end of an axis


def of_draws(run):
    """What the pictures show, in words."""
    draws, chains = run.draws, run.get("chains")
    count = draws.x.shape[0] * draws.x.shape[1]
    if draws.resampled:
        return f"{count:,} draws of the target, resampled by their weights"
    held = draws.x.shape[0]
    of = f"{held} of the {chains} chains" if isinstance(chains, int) and chains > held else \
        f"{held} chain" + "s" * (held > 1)
    return f"{count:,} draws of {of}"


def new_figure(height, rows, columns, **more):
    figure = Figure(figsize=(style.WIDTH_INCHES, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def legend_above(figure, handles, texts):
    """A line of its own above all axes."""
    top = 1 - 0.32 / figure.get_size_inches()[1]
    figure.get_layout_engine().set(rect=(0, 0, 1, top))
    figure.legend(handles, texts, loc="upper left", bbox_to_anchor=(0.005, 1), ncol=len(handles), borderaxespad=0.3,
                  borderpad=0.1)


def limits(values):
    """Of an axis that shows all but the outermost draws."""
    if len(values) == 0:
        return -1.0, 1.0
    low, high = np.percentile(values, [TAIL, 100 - TAIL])
    margin = 0.06 * (high - low) if high > low else max(0.5, 0.01 * abs(high))
    return low - margin, high + margin


def few_ticks(axis, count=4):
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10]))


def histogram(ax, values):
    """Density of the draws by Freedman and Diaconis' rule; more bars where it would hide separated modes."""
    low, high = limits(values)
    inside = values[(values >= low) & (values <= high)]
    quartiles = np.percentile(inside, [25, 75]) if len(inside) else (0, 0)
    width = 2 * (quartiles[1] - quartiles[0]) / max(1, len(inside)) ** (1 / 3)
    least = 20 if len(inside) < 200 else 40 if len(inside) < 5000 else 60
    bars = int(np.clip((high - low) / width, least, 80)) if width > 0 else least
    heights, edges = np.histogram(inside, bins=bars, range=(low, high))
    ax.stairs(heights / max(1, len(values)) / (edges[1] - edges[0]), edges, fill=True, color=FILL, alpha=0.75)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    few_ticks(ax.xaxis)


def shown_parameters(run, most):
    """Places of the parameters that a picture shows, among those that vary."""
    return [p for p in range(run.draws.x.shape[2]) if varies(run.draws.x[:, :, p])][:most]


def varies(values):
    finite = values[np.isfinite(values)]
    return len(finite) > 1 and np.ptp(finite) > 0


def name_list(run, places, most):
    """` (the first 10 of 100 parameters)` where not all are shown."""
    return f"; the first {len(places)} of {run.dim} parameters" if run.dim > most else ""


def marginals(run):
    """A histogram of each parameter, with the run's estimate of the mean and the truth."""
    if run.draws is None:
        return None
    places = shown_parameters(run, 10)
    if not places:
        return None
    columns = min(len(places), 5)
    rows = math.ceil(len(places) / columns)
    figure, axes = new_figure(2.3 * rows + 0.35, rows, columns)
    means, truths = run.get("estimates", "mean") or [], run.get("truth", "mean") or []
    quantities = run.get("estimates", "quantities") or {}, run.get("truth", "quantities") or {}
    known = False
    for ax, place in zip(axes.ravel(), places):
        name, axis = run.draws.names[place], place < run.draws.num_axes
        histogram(ax, run.draws.pooled(place))
        estimate = (means[place] if place < len(means) else None) if axis else quantities[0].get(name)
        truth = (truths[place] if place < len(truths) else None) if axis else quantities[1].get(name)
        if estimate is not None:
            ax.axvline(estimate, color=style.INK, linewidth=1.4)
        if truth is not None:
            known = True
            ax.axvline(truth, color=TRUTH, linewidth=1.8, linestyle=(0, (4, 2.5)))
        ax.set_xlabel(name)
    for ax in axes.ravel()[len(places):]:
        ax.axis("off")
    for row in axes:
        row[0].set_ylabel("density")
    handles = [Line2D([], [], color=style.INK, linewidth=1.4)]
    texts = ["mean, as estimated from all chains"]
    if known:
        handles.append(Line2D([], [], color=TRUTH, linewidth=1.8, linestyle=(0, (4, 2.5))))
        texts.append("true mean")
    legend_above(figure, handles, texts)
    return figure, of_draws(run) + name_list(run, places, 10) + "."


def corner(run):
    """Every pair of parameters, with their marginals on the diagonal; divergent draws are marked."""
    if run.draws is None:
        return None
    places = [p for p in shown_parameters(run, MAX_CORNER) if p < run.draws.num_axes]
    if len(places) < 2:
        return None
    size = len(places)
    x = run.draws.x.reshape(-1, run.draws.x.shape[2])
    divergent = run.draws.stats.get("diverging", np.zeros(x.shape[0])).ravel() > 0
    # Cells are wider than tall only where there are many of them: the page is wider than tall.
    figure, axes = new_figure(min(style.WIDTH_INCHES, 2.2 * size + 1.0), size, size)
    bounds = [limits(run.draws.pooled(place)) for place in places]
    for row in range(size):
        for column in range(size):
            ax = axes[row, column]
            if column > row:
                ax.axis("off")
                continue
            if column == row:
                histogram(ax, run.draws.pooled(places[row]))
            else:
                cloud(ax, x[:, places[column]], x[:, places[row]], divergent, max(40, 200 // size))
                ax.set_ylim(bounds[row])
                few_ticks(ax.yaxis)
                ax.spines[["top", "right"]].set_visible(True)
            ax.set_xlim(bounds[column])
            if row == size - 1:
                ax.set_xlabel(run.draws.names[places[column]])
            else:
                ax.tick_params(axis="x", labelbottom=False)
            if column == 0 and row > 0:
                ax.set_ylabel(run.draws.names[places[row]])
            elif column < row:
                ax.tick_params(axis="y", labelleft=False)
    figure.align_ylabels(axes[:, 0])
    said = of_draws(run) + name_list(run, places, MAX_CORNER) + "."
    if divergent.any():
        marker = Line2D([], [], linestyle="none", marker="x", color=DIVERGENT, markersize=7, markeredgewidth=1.6)
        figure.legend([marker], [f"divergent transitions ({divergent.sum()})"], loc="upper right",
                      bbox_to_anchor=(0.99, 0.99))
    elif "diverging" in run.draws.stats:
        said += " No divergent transition among them."
    return figure, said


def cloud(ax, x, y, divergent, across):
    """Points where there are few draws, hexagons by their number where there are many."""
    if len(x) <= MAX_POINTS:
        ax.scatter(x, y, s=6, color=FILL, alpha=0.35, linewidths=0)
    else:
        low, high = (limits(x[np.isfinite(x)]), limits(y[np.isfinite(y)]))
        ax.hexbin(x, y, gridsize=across, extent=(*low, *high), cmap=DENSITY, norm=PowerNorm(0.5), mincnt=1,
                  linewidths=0.1)
    if divergent.any():
        ax.scatter(x[divergent], y[divergent], s=26, marker="x", color=DIVERGENT, linewidths=1.4, zorder=4)
