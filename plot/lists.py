# SPDX-License-Identifier: Apache-2.0
"""The pictures there are, from the lists beside the scripts: kinds.list of a study's, pictures.list of a run's."""
import importlib
from pathlib import Path


def pictures_in(file):
    """name -> (what draws it, the rest of its line), in the order of the list."""
    lines = (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()
    rows = [(line.split(maxsplit=3) + [""])[:4] for line in lines if not line.startswith("#")]
    return {name: (getattr(importlib.import_module(module), drawer), rest) for name, module, drawer, rest in rows}
