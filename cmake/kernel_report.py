#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA kernels use of registers and local memory.

kernel_report.py --compile NVCC ARG...   runs nvcc; its lines about kernels go to OBJECT.kernels (OBJECT is the
                                         argument of -o), the others to stderr. Exit status: nvcc's.
kernel_report.py --report DIR            reads every *.kernels under DIR, writes DIR/kernels.txt (every kernel), and
                                         prints how many there are and those that use most.
"""
import re
import subprocess
import sys
from pathlib import Path

PROPERTY = re.compile(r"^\s*\d+ bytes stack frame|^\s*Function properties|^\s*\d+ bytes (gmem|cmem)")


def compile_one(command):
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    ours, others = [], []
    for line in done.stderr.splitlines(keepends=True):
        kernel = line.startswith("ptxas info") or PROPERTY.match(line)
        (ours if kernel else others).append(line)
    sys.stderr.writelines(others)
    if "-o" in command:
        output = Path(command[command.index("-o") + 1])
        log = output.with_name(output.name + ".kernels")
        if ours:
            log.write_text("".join(ours))
        else:
            log.unlink(missing_ok=True)
    return done.returncode


def kernels(text):
    """Yields (stack bytes, registers, architecture, mangled name) of every kernel in a log."""
    name, arch, stack = "", "", 0
    for line in text.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            (name, arch), stack = entry.groups(), 0
        elif frame := re.match(r"\s*(\d+) bytes stack frame", line):
            stack = int(frame[1])
        elif used := re.search(r"Used (\d+) registers", line):
            yield stack, int(used[1]), arch, name


def report(folder):
    found = [k for log in sorted(folder.rglob("*.kernels")) for k in kernels(log.read_text())]
    ours = [k for k in found if "lockstep" in k[3]]
    if not ours:
        print("kernels: none compiled")
        return 0
    # c++filt may be missing: the mangled names serve too.
    try:
        names = subprocess.run(["c++filt"], input="\n".join(k[3] for k in ours), capture_output=True, text=True,
                               check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [k[3] for k in ours]
    names = [re.sub(r"\(lockstep::Stage\)", "stage ", n) for n in names]
    names = [re.sub(r"\(.*", "", n.replace("void ", "").replace("lockstep::", "")) for n in names]
    rows = sorted(((k[0], k[1], k[2], n) for k, n in zip(ours, names)), reverse=True)
    lines = [f"{stack:6} B stack {registers:4} registers {arch:7} {name}\n" for stack, registers, arch, name in rows]
    (folder / "kernels.txt").write_text("".join(lines))
    print(f"kernels: {len(rows)} compiled, {sum(r[0] > 0 for r in rows)} with local memory; all in {folder}/kernels.txt")
    in_registers = [line for line in lines if "advance_register_kernel" in line]
    print("those with their rows in registers that use most:")
    print("".join(in_registers[:6]), end="")
    print("the others that use most memory:")
    print("".join([line for line in lines if "_register_" not in line][:4]), end="")
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--compile":
        sys.exit(compile_one(sys.argv[2:]))
    if len(sys.argv) == 3 and sys.argv[1] == "--report":
        sys.exit(report(Path(sys.argv[2])))
    sys.exit(__doc__)
