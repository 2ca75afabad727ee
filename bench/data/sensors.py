#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a sensor network's two tables into the data of target sensors.

    python3 bench/data/sensors.py sensors.csv distances.csv network.json

sensors.csv: columns sensor_id, known (True, False), x, y (of unknown ones: not used). distances.csv: columns i, j,
observed (0, 1), distance. network.json: sensors, anchors, distances; unknown sensors are numbered 1, 2, ... in the
order of the table, the anchors after them.
"""
import csv
import json
import sys


def table(path, columns):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    missing = set(columns) - set(rows[0] if rows else ())
    if missing:
        sys.exit(f"{path} has no column {', '.join(sorted(missing))}. Give the network's table")
    return rows


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    sensors = table(sys.argv[1], ("sensor_id", "known", "x", "y"))
    anchors = [s for s in sensors if s["known"] == "True"]
    unknown = [s for s in sensors if s["known"] != "True"]
    number = {s["sensor_id"]: n for n, s in enumerate(unknown + anchors, 1)}
    pairs = [p for p in table(sys.argv[2], ("i", "j", "observed", "distance")) if p["observed"] == "1"]
    data = {
        "sensors": len(unknown),
        "anchors": [[float(a["x"]), float(a["y"])] for a in anchors],
        "distances": [[number[p["i"]], number[p["j"]], float(p["distance"])] for p in pairs],
    }
    with open(sys.argv[3], "w") as out:
        json.dump(data, out)
        out.write("\n")


if __name__ == "__main__":
    main()
