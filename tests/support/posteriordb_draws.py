#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the reference draws of a posteriordb file (draws.json.zip): the parameters' names, sorted, then one line
a draw."""
import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    chains = json.loads(archive.read(archive.namelist()[0]))
names = sorted(chains[0])
print(*names)
for chain in chains:
    for draw in zip(*(chain[name] for name in names)):
        print(*(repr(value) for value in draw))
