#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws one run: FOLDER/report.html, a page that needs no other file, and a PNG for each of its pictures.

    plot_run.py --summary FOLDER/summary.json [--draws FOLDER/draws.nc] --out FOLDER

Draws are a netCDF-4 file in ArviZ's schema: posterior x [chain][draw][axis], and sample_stats lp, diverging and energy
where it has them. The pictures stand in pictures.list; what the run did not leave behind has none: some need draws,
or energies among them, others a run of `lockstep evidence`. Pictures that do not apply are not touched: `lockstep`
removes those of an earlier run.

Exit status: 0 done, 2 bad input.
"""
import argparse
import sys
from pathlib import Path

import style

style.apply()

import run_input  # noqa: E402  (after the style)
from lists import pictures_in  # noqa: E402
from output import replace, write  # noqa: E402
from plot_table import PlotError  # noqa: E402
from run_page import page_of, title_of  # noqa: E402

PICTURES = pictures_in("pictures.list")


def draw_run(summary, draws, folder):
    """Writes the pictures and the page; returns the paths."""
    run = run_input.read_run(summary, draws)
    shown, paths = [], []
    for name, (draw, title) in PICTURES.items():
        made = draw(run)
        if made is None:
            continue
        figure, caption = made
        path = write(figure, folder / f"{name}.png", "png", f"{title_of(run)}: {title}")
        paths.append(path)
        shown.append((title, path.read_bytes(), caption))
    items = folder / "items.png"
    if run.get("target", "items") and items.exists():  # that of plot_items.py
        shown.insert(0, ("Items", items.read_bytes(), ""))
    page = page_of(run, shown)
    paths.append(replace(folder / "report.html", lambda file: file.write_text(page, encoding="utf-8")))
    return paths


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Draw one run of lockstep sample or lockstep evidence.")
    parser.add_argument("--summary", required=True, metavar="FILE", type=Path, help="summary.json of the run")
    parser.add_argument("--draws", metavar="FILE", type=Path, help="its draws (.nc)")
    parser.add_argument("--out", required=True, metavar="FOLDER", type=Path, help="folder of the page and pictures")
    options = parser.parse_args(arguments)
    try:
        paths = draw_run(options.summary, options.draws, options.out)
    except PlotError as error:
        print(f"plot_run: {error}", file=sys.stderr)
        return 2
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
