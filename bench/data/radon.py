#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the published Minnesota radon table into the data of target radon.

    python3 bench/data/radon.py radon.csv radon.json

radon.csv: columns county (from 0), floor (0 basement, 1 first floor), log_uranium (of the county), log_radon
(log pCi/L); Gelman & Hill (2006), chapter 12, as in Graham & Storkey's code. radon.json: y = log_radon, county
from 1, floor, log_uranium.
"""
import csv
import json
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], newline="") as table:
        rows = list(csv.DictReader(table))
    missing = {"county", "floor", "log_uranium", "log_radon"} - set(rows[0] if rows else ())
    if missing:
        sys.exit(f"{sys.argv[1]} has no column {', '.join(sorted(missing))}. Give the published table")
    data = {
        "y": [float(r["log_radon"]) for r in rows],
        "county": [int(r["county"]) + 1 for r in rows],
        "floor": [int(r["floor"]) for r in rows],
        "log_uranium": [float(r["log_uranium"]) for r in rows],
    }
    if min(data["county"]) != 1:
        sys.exit(f"{sys.argv[1]} has counties from {min(data['county']) - 1} on, not from 0. Give the published table")
    with open(sys.argv[2], "w") as out:
        json.dump(data, out)
        out.write("\n")


if __name__ == "__main__":
    main()
