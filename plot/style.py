# SPDX-License-Identifier: Apache-2.0
"""One look for every picture: sizes, fonts, colours safe for the colour-blind, groups of labels."""
import re
import sys
from pathlib import Path

try:
    import matplotlib
    import netCDF4  # noqa: F401  (of the modules that every script reads with)
except ModuleNotFoundError as missing:
    sys.exit(f"{Path(sys.argv[0]).stem}: Python has no {missing.name} (there are no pictures without it). Install "
             "python3-matplotlib, python3-numpy and python3-netcdf4.")
from matplotlib.colors import to_hex, to_rgb

from read import pseudo_samples_in

WIDTH_INCHES, DPI = 10.667, 150  # 1600 pixels wide
INK, GRID, CONTOUR_FILL, CONTOUR_LINE = "#222222", "#d5d5d5", ("#e9e9e9", "#d6d6d6", "#bdbdbd"), "#6f6f6f"

# Okabe and Ito's palette. Single settings take the warm colours; a family over N takes one hue from light to
# dark, so that the eye reads the order of N before it reads the legend.
SINGLE_HUES = ("#d55e00", "#e69f00", "#cc79a7", "#8c6d31", "#666666", "#000000")
FAMILY_HUES = (("#93c8ee", "#08306b"), ("#8fdcc3", "#00402e"), ("#e3bfd6", "#5e2148"), ("#dcd28a", "#5c4a00"))


def apply():
    """Sets matplotlib up, without the user's own configuration, so that equal input gives equal bytes."""
    matplotlib.use("Agg")
    matplotlib.rcdefaults()
    matplotlib.rcParams.update({
        "font.family": "DejaVu Sans", "font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10,
        "xtick.labelsize": 9.5, "ytick.labelsize": 9.5, "legend.fontsize": 9.5, "figure.dpi": DPI,
        "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.edgecolor": "#888888",
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False, "grid.color": GRID,
        "grid.linewidth": 0.7, "axes.axisbelow": True, "legend.frameon": False,
        "svg.hashsalt": "lockstep", "svg.fonttype": "path", "path.simplify": True,
        "contour.negative_linestyle": "solid",
    })


def blend(light, dark, share):
    return to_hex([(1 - share) * a + share * b for a, b in zip(to_rgb(light), to_rgb(dark))])


def hues(count):
    """Colours that have no order."""
    both = [color for pair in zip((blend(*pair, 0.55) for pair in FAMILY_HUES), SINGLE_HUES) for color in pair]
    both += SINGLE_HUES[len(FAMILY_HUES):]
    return [both[k % len(both)] for k in range(count)]


class Labels:
    """Groups and colours of a study's labels.

    A label is `GROUP NAME`: the first word names the group (a scenario, a system) when every label has at
    least two words and every first word occurs twice and is no parameter (`K=5`). `[plot] groups = { a = "Scenario a" }` says so and
    gives headings.
    """

    def __init__(self, labels, headings):
        self.headings = dict(headings)
        first_words = [label.split(" ", 1)[0] for label in labels]
        automatic = (all(" " in label for label in labels) and min(map(first_words.count, first_words)) > 1
                     and not any("=" in word for word in first_words))
        self.groups, self.group_of, self.name_of = [], {}, {}
        for label, word in zip(labels, first_words):
            group = word if (word in self.headings or (automatic and not self.headings)) else ""
            self.group_of[label] = group
            self.name_of[label] = label.split(" ", 1)[1] if group and " " in label else label
            if group not in self.groups:
                self.groups.append(group)
        self.names = list(dict.fromkeys(self.name_of[label] for label in labels))
        self.color = self._colors()

    def heading(self, group):
        return str(self.headings.get(group, group))

    def members(self, group, labels):
        return [label for label in labels if self.group_of[label] == group]

    def color_of(self, label):
        return self.color[self.name_of[label]]

    def _colors(self):
        families = {}
        for name in self.names:
            families.setdefault(family(name), []).append(name)
        color, num_single, num_family = {}, 0, 0
        for key, names in families.items():
            if len(names) == 1 and not pseudo_samples_in(names[0]):
                color[names[0]] = SINGLE_HUES[num_single % len(SINGLE_HUES)]
                num_single += 1
                continue
            light, dark = FAMILY_HUES[num_family % len(FAMILY_HUES)]
            num_family += 1
            for rank, name in enumerate(sorted(names, key=pseudo_samples_in)):
                share = rank / (len(names) - 1) if len(names) > 1 else 0.55
                color[name] = blend(light, dark, share)
        return color


def family(name):
    """A label's name without its N: `PE N=5` and `PE N=10` are one family."""
    return re.sub(r"\s*\bN\s*=\s*\d+", "", name).strip() or name
