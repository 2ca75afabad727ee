#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the data of a posteriordb file (data.json.zip): a line for each entry, its name and its numbers."""
import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    data = json.loads(archive.read(archive.namelist()[0]))
for name, value in data.items():
    print(name, *(repr(v) for v in (value if isinstance(value, list) else [value])))
