# SPDX-License-Identifier: Apache-2.0
"""The panel of a posterior of places: draws whose coordinates are x and y of one place after another."""
import numpy as np

from draw_panels import DrawPanel, MAX_POINTS
import style


class PlacesPanel(DrawPanel):
    """All places of a draw in one plane, a colour each, over the true ones where the study gives them
    (`places = [x_1, y_1, x_2, ..]`)."""

    kind = "places"

    def prepare(self):
        self.places = np.array(self.context.study.plot.get("places", []), float).reshape(-1, 2)
        return super().prepare()

    def limits(self):
        """Per group: what 999 of 1,000 places are in."""
        limits = {}
        for group in self.context.look.groups:
            x = [self.draws[label].x for label in self.context.look.members(group, list(self.draws))]
            if not x:
                continue
            plane = np.concatenate([draws[:, :, :draws.shape[2] // 2 * 2].reshape(-1, 2) for draws in x] + [self.places])
            low, high = np.percentile(plane, [0.05, 99.95], axis=0)
            margin = 0.05 * (high - low)
            limits[group] = (low - margin, high + margin)
        return limits

    def frame(self, ax, limits):
        (left, bottom), (right, top) = limits
        ax.set_rasterization_zorder(0)
        ax.set_xlim(left, right)
        ax.set_ylim(bottom, top)
        ax.set_aspect("equal")
        ax.spines[["top", "right"]].set_visible(True)

    def draw_label(self, ax, label):
        x = self.first_replicate(label)
        x = x.reshape(-1, x.shape[2])
        count = x.shape[1] // 2
        shown = x[np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS // count)).astype(int)]
        for place, color in enumerate(style.hues(count)):
            ax.scatter(shown[:, 2 * place], shown[:, 2 * place + 1], s=4, color=color, alpha=0.35, linewidths=0, zorder=-3)
            if place < len(self.places):
                ax.scatter(*self.places[place], s=42, marker="s", facecolor=color, edgecolor="black", linewidths=1, zorder=3)
        self.title(ax, label)

    def draw(self, figure):
        super().draw(figure)
        text = "Points: draws of one replicate, a colour for each place" + ("; squares: where they truly are." if len(self.places)
                                                                           else ".")
        figure.supxlabel(text, fontsize=9, color="#555555", x=0.01, ha="left")
