# SPDX-License-Identifier: Apache-2.0
"""Pictures of how a run's chains move: trace, rank and energy.

Every function takes a Run and gives (figure, caption), or None where the run has nothing for it to show.
"""
import math

import numpy as np
from matplotlib.lines import Line2D

import style
from draw_pictures import (CHAIN_COLORS, TAIL, few_ticks, legend_above, name_list, new_figure, of_draws,
                           shown_parameters, varies)
from run_input import spread

MAX_CHAINS, MAX_TRACES = 4, 6
MAX_TRACED = 2000  # draws of a chain that a line can show
LEAST_RANKED = 40  # draws of a chain from which ranks say something


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
    return figure, said + "Below 0.3 fresh momenta move the energy too little for the tails of the target to be " \
                          "entered: a heavy tail, or a funnel."
