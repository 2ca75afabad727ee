# SPDX-License-Identifier: Apache-2.0
"""Reads a summary.json strictly (NaN, Infinity and repeated keys are errors) and prints, as JSON, its members
in file order: {"keys": [top-level names], "values": [[path, value], ...]} with floats in hexadecimal.

An independent reader: the standard library and nothing of ours. Usage: read_summary.py FILE
"""
import json
import sys


def refuse(constant):
    sys.exit(f"{constant} is not a JSON number")


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        sys.exit("a key is repeated")
    return members


def leaves(value, path):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}[{index}]")
    else:
        yield [path, value.hex() if isinstance(value, float) else value]


with open(sys.argv[1], encoding="utf-8") as file:
    summary = json.load(file, parse_constant=refuse, object_pairs_hook=unique)
json.dump({"keys": list(summary), "values": list(leaves(summary, ""))}, sys.stdout)
