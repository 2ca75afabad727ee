# SPDX-License-Identifier: Apache-2.0
"""Prints a draws.nc as JSON: {group: {attributes, dims, variables: {name: {dims, dtype, flag, values}}}}.

An independent reader: netCDF4 and nothing of ours. Values are flat, in C order; what is not finite becomes
text. The group "/" is the file itself. Usage: read_draws.py FILE
"""
import json
import math
import sys

import netCDF4
import numpy as np


def describe(group):
    variables = {}
    for name, variable in group.variables.items():
        variable.set_auto_maskandscale(False)
        values = [
            v if isinstance(v, str) or math.isfinite(v) else str(v) for v in variable[...].reshape(-1).tolist()
        ]
        variables[name] = {
            "dims": list(variable.dimensions),
            "dtype": str(variable.dtype),
            "flag": "dtype" in variable.ncattrs() and variable.getncattr("dtype") == "bool",
            "values": values,
        }
    return {
        "attributes": {name: np.asarray(group.getncattr(name)).tolist() for name in group.ncattrs()},
        "dims": {name: len(dimension) for name, dimension in group.dimensions.items()},
        "variables": variables,
    }


with netCDF4.Dataset(sys.argv[1]) as file:
    found = {"/": describe(file)}
    found.update((name, describe(group)) for name, group in file.groups.items())
json.dump(found, sys.stdout, allow_nan=False)
