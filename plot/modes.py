# SPDX-License-Identifier: Apache-2.0
"""Modes of a density on a grid, and how many of them a set of draws has visited."""
import numpy as np

PROMINENCE = 0.5  # nats a mode must rise above its saddle; less is an artefact of the grid
REACH = 10.0  # nats below its peak at which a draw still counts as having visited a mode


class Modes:
    """Basins of the grid's modes, found by flooding it from the top.

    Cells are added in order of falling density. A cell without a higher neighbour starts a basin; where two
    basins meet, the lower one joins the higher if it rises less than PROMINENCE above the meeting point.
    """

    def __init__(self, log_density, floor=30.0):
        self.log_density = log_density
        rows, columns = log_density.shape
        self.basin = np.full((rows, columns), -1)
        self.peak = []  # log density of each basin's top
        self.parent = []
        cells = np.argwhere(log_density > log_density.max() - floor)
        heights = log_density[cells[:, 0], cells[:, 1]]
        for row, column in cells[np.argsort(-heights, kind="stable")]:
            near = self.basin[max(row - 1, 0):row + 2, max(column - 1, 0):column + 2]
            roots = sorted({self.root(i) for i in near[near >= 0]}, key=lambda i: (-self.peak[i], i))
            if not roots:
                roots = [len(self.peak)]
                self.peak.append(log_density[row, column])
                self.parent.append(roots[0])
            for other in roots[1:]:
                if self.peak[other] - log_density[row, column] < PROMINENCE:
                    self.parent[other] = roots[0]
            self.basin[row, column] = roots[0]
        self.count = len({self.root(i) for i in range(len(self.peak))})

    def root(self, basin):
        while self.parent[basin] != basin:
            basin = self.parent[basin]
        return basin

    def visited(self, rows, columns):
        """The number of modes with a draw in their basin, no more than REACH below the peak."""
        basins = self.basin[rows, columns]
        heights = self.log_density[rows, columns]
        found = ((self.root(basin), height) for basin, height in zip(basins, heights) if basin >= 0)
        return len({basin for basin, height in found if height > self.peak[basin] - REACH})
