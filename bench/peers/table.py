#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of what run.sh measured, and OUT/results.json: one file with all figures, as bench/results has them.

    python3 bench/peers/table.py BUILD OUT
"""
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def machine(build, bench):
    """What the figures are of: device, compiler, flags, commit."""
    cpu = dict(re.findall(r"^([a-z ]+?)\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE))
    command = read(build / "compile_commands.json")[0]["command"]
    commit = subprocess.run(["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty", "--exclude=*"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return {"device": f"{cpu['model name']} (family {cpu['cpu family']}, model {cpu['model']}), {os.cpu_count()} "
                      f"processors, {bench['instruction_set']}, {platform.freedesktop_os_release()['PRETTY_NAME']}",
            "compiler": bench["compiler"], "flags": " ".join(re.findall(r" (-[Omf]\S+)", command)),
            "commit": commit or "unknown"}


def rates(run, of):
    """{target: {form: [median, least, largest] of its best number of chains}} by the clock or processor time."""
    table = {}
    for target in run["rates"]:
        forms = table.setdefault(target["target"], {})
        for entry in target["forms"]:
            value = [entry[of][k] for k in ("median", "least", "largest")]
            if value[0] > forms.get(entry["form"], [0])[0]:
                forms[entry["form"]] = value
    return table


def show_rates(title, run):
    print(f"\n{title}: gradients per second by the clock; ratios of lockstep to JAX's best, median (least to largest)")
    for target, forms in rates(run, "wall").items():
        ratio = next(t for t in run["rates"] if t["target"] == target)
        print(f"  {target}; best: {ratio['best']}")
        for form, (median, least, largest) in sorted(forms.items(), key=lambda item: -item[1][0]):
            print(f"    {form:28s} {median:9.3g}  ({least:.3g} to {largest:.3g})")
        for of in ("wall", "cpu"):
            r = ratio["ratio"][of]
            print(f"    lockstep / best, {of:4s}         {r['median']:9.2f}  ({r['least']:.2f} to {r['largest']:.2f})")


def over_forms(run, of):
    """{form: [least, largest] over targets of lockstep's rate over that form's}, `best` being JAX's best."""
    found = {}
    for forms in rates(run, of).values():
        for form, value in forms.items():
            if not form.startswith("lockstep"):
                found.setdefault(form, []).append(forms["lockstep"][0] / value[0])
    found["best"] = [t["ratio"][of]["median"] for t in run["rates"]]
    return {form: [round(min(r), 2), round(max(r), 2)] for form, r in found.items()}


def decoder(out):
    """[{lockstep, jax (the better form), ratio} of each turn]"""
    turns = []
    for turn in (1, 2, 3):
        bench, jax = read(out / f"decoder-{turn}-lockstep.json"), read(out / f"decoder-{turn}-jax.json")
        if bench and jax:
            best = max(r[f"{k}_gradients_per_s"] for r in jax["rates"] for k in ("scan", "calls"))
            own = bench["runs"][0]["gradients_per_s"]
            turns.append({"lockstep": round(own), "jax, the better form": best, "ratio": round(own / best, 2),
                          "jax's cores": max(r["scan_cores"] for r in jax["rates"])})
    return turns


def show_costs(title, table, rmse):
    print(f"\n{title}: processor seconds to RMSE {rmse}, with 90 % interval")
    for name, r in table.items():
        print(f"  {name:48s} {r['cpu_to_rmse']:7.3g} ({r['interval'][0]:.2g} to {r['interval'][1]:.2g}); RMSE "
              f"{r['rmse']:.4f} bias {r['bias']:+.4f} in {r['cpu']:.2f} s")


def main():
    if len(sys.argv) != 3:
        sys.exit("table.py takes two arguments: the folder of lockstep's programs, and that of the figures")
    build, out = map(Path, sys.argv[1:])
    bench = out / "bench.json"
    subprocess.run([build / "lockstep-bench", "--target=gaussian", "--sampler=hmc", "--chains=16", "--threads=1",
                    "--seconds=0.01", f"--json={bench}"], check=True, stdout=subprocess.DEVNULL)
    load = [(out / f"load-{when}").read_text(encoding="utf-8").strip() for when in ("before", "after")]
    results = {"date": str(datetime.date.today()), **machine(build, read(bench)),
               "command": "bash bench/peers/run.sh build/cpu-release OUT",
               "conditions": f"load average {load[0]} before, {load[1]} after"}
    for name, title in (("hmc-1", "one core"), ("hmc-2", "two cores")):
        if run := read(out / f"{name}.json"):
            show_rates(title, run)
            results[f"hmc_{title.replace(' ', '_')}"] = {
                "versions": run["versions"],
                "precision": {"lockstep": "mixed", "others": run["precision"]},
                "lockstep_over_others": {of: over_forms(run, of) for of in ("wall", "cpu")},
                "rates": run["rates"]}
    if mixtures := read(out / "mixtures.json"):
        for target, table in mixtures["results"].items():
            show_costs(f"log Z of {target}", table, mixtures["rmse"])
        results["mixtures_beside_blackjax"] = mixtures
    if evidence := read(out / "evidence.json"):
        show_costs("log Z of a Boltzmann relaxation", evidence["results"], evidence["rmse"])
        results["evidence_beside_blackjax"] = evidence
    if turns := decoder(out):
        print("\ndecoder, two cores, in turn:", json.dumps(turns))
        results["decoder_beside_jax"] = turns
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for title in ("one_core", "two_cores"):
        if part := results.get(f"hmc_{title}"):
            print(f"\n{title}, over targets, lockstep over ...:",
                  json.dumps(part["lockstep_over_others"], indent=1))


if __name__ == "__main__":
    main()
