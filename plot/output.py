# SPDX-License-Identifier: Apache-2.0
"""Files of pictures and pages."""
import os

import style
from plot_table import PlotError


def replace(path, save):
    """Lets `save(temporary path)` write, then renames: a reader never meets half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise PlotError(f"cannot write {path} ({error.strerror}). Make the folder writable.") from None
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write(figure, path, form, title):
    """No date, no version inside: equal input gives equal bytes."""
    metadata = {"Title": title, **({"Software": None} if form == "png" else {"Date": None, "Creator": None})}
    return replace(path, lambda file: figure.savefig(file, format=form, dpi=style.DPI, metadata=metadata))
