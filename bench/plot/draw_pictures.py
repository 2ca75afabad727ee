# SPDX-License-Identifier: Apache-2.0
"""Pictures of a run's draws: marginals, corner, trace, rank and energy.

Every function takes a Run and gives (figure, caption), or None where the run has nothing for it to show.
"""
import math

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

import style
from run_input import spread

# Okabe and Ito's blue, vermilion, green and purple, in the order in which chains are told apart.
CHAIN_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
FILL, TRUTH, DIVERGENT = "#0072b2", "#d55e00", "#d55e00"
DENSITY = LinearSegmentedColormap.from_list("density", ["#e4eff7", "#0072b2", "#06253a"])
MAX_CHAINS, MAX_CORNER, MAX_TRACES = 4, 6, 6
MAX_POINTS = 3000  # of a scatter; more are counted in hexagons
MAX_TRACED = 2000  # draws of a chain that a line can show
LEAST_RANKED = 40  # draws of a chain from which ranks say something
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


def shown_chains(run):
    """Places among the chains that were read."""
    return spread(run.draws.x.shape[0], MAX_CHAINS)


def few_chains(run, chains):
    """`4 of the 256 chains`."""
    total = max(run.get("chains") or 0, run.draws.num_chains)
    if len(chains) < total:
        return f"{len(chains)} of the {total} chains"
    return f"{len(chains)} chain" + "s" * (len(chains) > 1)


def trace(run):
    """The values of a few chains, draw by draw."""
    if run.draws is None or run.draws.resampled or run.draws.x.shape[1] < 4:
        return None
    chains, places = shown_chains(run), shown_parameters(run, MAX_TRACES)
    lines = [(run.draws.names[p], run.draws.x[:, :, p]) for p in places]
    if "lp" in run.draws.stats and varies(run.draws.stats["lp"]):
        lines.append(("lp\n(log density)", run.draws.stats["lp"]))
    if not lines:
        return None
    count = min(run.draws.x.shape[1], MAX_TRACED)
    figure, axes = new_figure(1.25 * len(lines) + 0.9, len(lines), 1, sharex=True)
    for ax, (name, values) in zip(axes[:, 0], lines):
        for color, chain in zip(CHAIN_COLORS, chains):
            ax.plot(np.arange(1, count + 1), values[chain, :count], color=color, alpha=0.8,
                    linewidth=0.9 if count < 600 else 0.6)
        ax.set_ylabel(name)
        few_ticks(ax.yaxis)
        ax.grid(True, axis="y")
    axes[-1, 0].set_xlim(1, count)
    axes[-1, 0].set_xlabel("draw" if run.draws.thin == 1 else f"draw (every {run.draws.thin}-th iteration)")
    figure.align_ylabels(axes[:, 0])
    chain_legend(figure, [run.draws.chains[chain] for chain in chains])
    first = "" if count == run.draws.x.shape[1] else f" The first {count:,} of {run.draws.x.shape[1]:,} draws."
    return figure, f"{few_chains(run, chains)}{name_list(run, places, MAX_TRACES)}.{first} " \
                   "Chains that mix look alike and cross each other all the time; steps that last, or chains that " \
                   "keep apart, do not."


def chain_legend(figure, chains):
    handles = [Line2D([], [], color=color, linewidth=2.4) for color, _ in zip(CHAIN_COLORS, chains)]
    texts = [f"chain {chain}" for chain in chains]
    legend_above(figure, handles, texts)


def rank(run):
    """How the ranks of each chain's draws, among those of all, spread: evenly where chains agree."""
    if run.draws is None or run.draws.x.shape[0] < 2 or run.draws.x.shape[1] < LEAST_RANKED:
        return None
    chains, num_draws = shown_chains(run), run.draws.x.shape[1]
    places = [p for p in shown_parameters(run, MAX_TRACES) if np.isfinite(run.draws.x[:, :, p]).all()]
    if not places:
        return None
    bins = int(np.clip(num_draws // 20, 5, 20))
    columns = min(len(places), 3)
    rows = math.ceil(len(places) / columns)
    figure, axes = new_figure(2.5 * rows + 0.6, rows, columns)
    for ax, place in zip(axes.ravel(), places):
        shares = ranks(run.draws.x[:, :, place])
        edges = np.linspace(0, 1, bins + 1)
        counts = [np.histogram(shares[chain], bins=edges)[0] / (num_draws / bins) for chain in chains]  # 1: expected
        scale = 0.9 / max(2, np.max(counts))
        for line, (color, count) in enumerate(zip(CHAIN_COLORS, counts)):
            floor, heights = len(chains) - 1 - line, scale * count
            ax.bar(edges[:-1], heights, width=np.diff(edges), bottom=floor, align="edge", color=color, alpha=0.8,
                   edgecolor="white", linewidth=0.4)
            ax.plot([0, 1], [floor + scale] * 2, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.set_yticks([len(chains) - 1 - k + 0.4 for k in range(len(chains))],
                      [f"{run.draws.chains[chain]}" for chain in chains])
        ax.set_ylim(0, len(chains))
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        ax.tick_params(axis="y", length=0)
        ax.set_title(run.draws.names[place], loc="left")
    for ax in axes.ravel()[len(places):]:
        ax.axis("off")
    who = "group" if run.draws.resampled else "chain"
    for row in axes:
        row[0].set_ylabel(who)
    for ax in axes[-1]:
        ax.set_xlabel("rank among all draws (share)")
    what = f"{len(chains)} of the {run.draws.num_chains} groups" if run.draws.resampled else few_chains(run, chains)
    return figure, f"{what}{name_list(run, places, MAX_TRACES)}. Dashed: as many draws as are expected of a {who} " \
                   f"that agrees with the others; a {who} with its draws at one end is elsewhere than they, one with " \
                   "them at both ends, or in the middle, has another scale."


def ranks(values):
    """Ranks of all values as shares in [0, 1]; equal ones share their mean rank."""
    _, place, count = np.unique(values.ravel(), return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count - 1) / 2
    return (mean_rank[place].reshape(values.shape) - 0.5) / values.size


def bayesian_fraction(energy):
    """E-BFMI of each chain: mean squared step of the energy over its variance (Betancourt 2016)."""
    variance = energy.var(axis=1)
    steps = np.square(np.diff(energy, axis=1)).mean(axis=1)
    return np.divide(steps, variance, out=np.full(len(energy), np.nan), where=variance > 0)


def energy(run):
    """Marginal energy and energy transitions, as Stan's and ArviZ's."""
    if run.draws is None or "energy" not in run.draws.stats or run.draws.thin > 1 or run.draws.x.shape[1] < 4:
        return None
    values = run.draws.stats["energy"]
    values = values[np.isfinite(values).all(axis=1)]
    if len(values) == 0 or not np.ptp(values) > 0:
        return None
    figure, axes = new_figure(3.4, 1, 1)
    ax = axes[0, 0]
    marginal, steps = (values - values.mean()).ravel(), np.diff(values, axis=1).ravel()
    low, high = np.percentile(np.concatenate([marginal, steps]), [5 * TAIL, 100 - 5 * TAIL])
    edges = np.linspace(low, high, 41 if len(steps) < 5000 else 61)
    for part, color, style_of_line in ((marginal, CHAIN_COLORS[0], "-"), (steps, CHAIN_COLORS[1], (0, (4, 2)))):
        heights = np.histogram(part, bins=edges)[0] / (len(part) * (edges[1] - edges[0]))
        ax.stairs(heights, edges, fill=True, color=color, alpha=0.25)
        ax.stairs(heights, edges, color=color, linewidth=1.8, linestyle=style_of_line)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("energy less its mean (nats)")
    ax.set_ylabel("density")
    handles = [Line2D([], [], color=CHAIN_COLORS[0], linewidth=2),
               Line2D([], [], color=CHAIN_COLORS[1], linewidth=2, linestyle=(0, (4, 2)))]
    ax.legend(handles, ["marginal energy", "energy transition"], loc="upper right")
    fraction = bayesian_fraction(values)
    fraction = fraction[np.isfinite(fraction)]
    said = f"{of_draws(run)}. "
    if len(fraction):
        said += f"E-BFMI: {fraction.min():.2f} at the least, {np.median(fraction):.2f} in the middle. "
    return figure, said + "Below 0.3 the momenta's refreshments move the energy too little for the tails of the target " \
                          "to be entered: a heavy tail, or a funnel."


PICTURES = {"marginals": marginals, "corner": corner, "trace": trace, "rank": rank, "energy": energy}
