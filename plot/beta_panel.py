# SPDX-License-Identifier: Apache-2.0
"""The panel of inverse temperatures. Same interface as panels.py."""
import numpy as np
from matplotlib.lines import Line2D

from panels import legend_and_facets, log_axis, num_facet_rows, starts_row
from read import PlotError


class BetaPanel:
    """Histograms of the inverse temperatures of all pseudo-samples: a facet per group, a line per label."""

    kind = "beta"

    def __init__(self, context):
        self.context = context

    def prepare(self):
        self.beta = {}
        for label in self.context.labels:
            draws = self.context.draws(label)
            if draws is not None and draws.beta is not None and len(draws.beta):
                if draws.beta.min() < 0 or draws.beta.max() > 1:
                    raise PlotError(f"the draws of \"{label}\" hold a beta outside [0, 1] (it is an inverse "
                                    "temperature). Run that setting again.")
                if np.ptp(draws.beta) > 0:  # a fixed beta has no histogram
                    self.beta[label] = draws.beta
        return None if self.beta else "no draws file holds a beta that varies (group weighted)"

    def height(self):
        return 3.3 * num_facet_rows(len({self.context.look.group_of[label] for label in self.beta}))

    def draw(self, figure):
        look = self.context.look
        groups = [group for group in look.groups if look.members(group, list(self.beta))]
        names = [name for name in look.names if any(look.name_of[label] == name for label in self.beta)]
        handles = [Line2D([], [], color=look.color[name], linewidth=2.4) for name in names]
        axes = legend_and_facets(figure, handles, names, len(groups), self.height())
        for ax, group in zip(axes, groups):
            labels = look.members(group, list(self.beta))
            log, edges = self.bins(labels)
            for label in labels:
                beta = np.maximum(self.beta[label], edges[0])
                shares = 100 * np.histogram(beta, bins=edges)[0] / len(beta)
                ax.stairs(shares, edges, baseline=None, color=look.color_of(label), linewidth=2.2)
            if log:
                ax.set_xscale("log")
            ax.set_xlim(edges[0], edges[-1])
            if log:
                log_axis(ax.xaxis)
            ax.set_ylim(bottom=0)
            ax.set_xlabel("β of the pseudo-samples" + (" (log scale)" if log else ""))
            ax.set_title(look.heading(group), loc="left", fontweight="bold")
            ax.grid(True, axis="y")
            if starts_row(ax):
                ax.set_ylabel("% of pseudo-samples")
        figure.supxlabel("β = 1 is the target; the smaller β, the flatter the density that a pseudo-sample "
                         "explores.", fontsize=9, color="#555555", x=0.01, ha="left")

    def bins(self, labels):
        """(log?, edges). Where most of beta is small, a linear axis would show one spike and nothing else."""
        pooled = np.concatenate([self.beta[label] for label in labels])
        log = np.percentile(pooled, 30) < 0.05
        low = max(np.percentile(pooled, 0.1), 1e-6)
        return log, np.geomspace(low, 1, 31) if log else np.linspace(0, 1, 31)
