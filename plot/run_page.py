# SPDX-License-Identifier: Apache-2.0
"""The page of a run: verdict, gates in words, estimates, cost and pictures, in one file that needs no other."""
import base64
import html
import math

from evidence_pictures import estimates_of, finite
from gates import FAILED, PASSED, gates_of, plain

# As the report of a study has it (host/studies/study_report.cpp), and marks for gates.
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;margin:1em 0;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:.2em .7em;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}th{border-bottom:2px solid #888}
.wide{overflow-x:auto}img{max-width:100%;height:auto}figure{margin:1.5em 0}figcaption{color:#555;font-size:13px}
table.words td,table.words th{text-align:left;white-space:normal;vertical-align:top}
table.words td:first-child{white-space:nowrap}
.passed,.pass{color:#00664b}.failed,.fail{color:#a33c00}.open{color:#6b5000}.state{font-weight:bold;white-space:nowrap}
.verdict{font-size:17px;font-weight:bold}"""
MAX_ROWS = 100
COSTS = {"gradients": "gradients of the target", "warmup_gradients": "gradients of the warm-up",
         "scout_gradients": "gradients of the scout", "search_gradients": "gradients of the search",
         "wall_s": "wall time (s)", "sampling_s": "sampling (s)", "gradients_per_s": "gradients per second"}


def text(value):
    return html.escape(str(value))


def with_error(value, error):
    """With as many digits as the error leaves."""
    if not finite(value):
        return ""
    if not finite(error) or error <= 1e-9 * abs(value):
        return plain(value)
    digits = min(12, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def table(rows, kind=""):
    """rows[0] is the head; cells are texts, or (text, class)."""
    lines = []
    for row, cells in enumerate(rows):
        tag = "td" if row else "th"
        made = (cell if isinstance(cell, tuple) else (cell, "") for cell in cells)
        lines.append("<tr>" + "".join(f"<{tag}{f' class={chr(34)}{name}{chr(34)}' if name else ''}>{text(cell)}</{tag}>"
                                      for cell, name in made) + "</tr>")
    return f'<div class="wide"><table{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>\n' + "\n".join(lines) + \
        "\n</table></div>\n"


def far(value, error, truth):
    """Distance from the truth in standard errors."""
    return f"{(value - truth) / error:+.1f}".replace("-", "\N{MINUS SIGN}") \
        if finite(truth) and finite(error) and error > 0 and finite(value) else ""


def at(values, place):
    return values[place] if isinstance(values, list) and place < len(values) else None


def estimates(run):
    """Means and second moments of the parameters, and the target's own quantities."""
    found, truth = run.get("estimates"), run.get("truth") or {}
    if not found:
        return ""
    has_truth = any(finite(value) for value in truth.get("mean") or [])
    quantiles, figures = found.get("quantiles") or {}, run.get("diagnostics")
    ranges = [(key, quantiles[key]) for key in ("5%", "50%", "95%") if key in quantiles]
    columns = {"rhat": "R-hat", "ess_bulk": "bulk ESS", "ess_tail": "tail ESS"}
    agreed = [(name, figures[key]) for key, name in columns.items() if isinstance(figures.get(key), list)]
    truths = (["true mean", "z"], ["true second moment", "z"]) if has_truth else ([], [])
    rows, names = [["parameter", "mean", *truths[0], "sd", *(key.replace("%", " %") for key, _ in ranges),
                    *(name for name, _ in agreed), "second moment", *truths[1]]], run.names()
    for i, name in enumerate(names[:MAX_ROWS]):
        mean, error = at(found.get("mean"), i), at(found.get("mean_se"), i)
        second, second_error = at(found.get("second_moment"), i), at(found.get("second_moment_se"), i)
        sd = math.sqrt(max(0.0, second - mean * mean)) if finite(mean) and finite(second) else None
        row = [name, with_error(mean, error), plain(sd, 4), *(plain(at(values, i), 4) for _, values in ranges),
               *(plain(at(values, i), 4) for _, values in agreed), with_error(second, second_error)]
        if has_truth:
            known, known_second = at(truth.get("mean"), i), at(truth.get("second_moment"), i)
            row[2:2] = [plain(known), far(mean, error, known)]
            row += [plain(known_second), far(second, second_error, known_second)]
        rows.append(row)
    page = table(rows)
    if len(names) > MAX_ROWS:
        page += f"<p>The first {MAX_ROWS} of {len(names)} parameters; summary.json holds all.</p>\n"
    own = found.get("quantities") or {}
    if own:
        rows = [["quantity", "estimate", "truth", "z"]]
        for name, value in own.items():
            error, known = (found.get("quantities_se") or {}).get(name), (truth.get("quantities") or {}).get(name)
            rows.append([name, with_error(value, error), plain(known), far(value, error, known)])
        page += table(rows)
    return page


def evidence(run):
    z = run.get("log_z")
    if not z:
        return ""
    rows = [["log Z", "estimate"], ["estimate", with_error(z.get("estimate"), z.get("se"))]]
    for key, name in (("interval95", "95 % interval"), ("interval997", "99.7 % interval")):
        if isinstance(z.get(key), list):
            rows.append([name, " to ".join(plain(end) for end in z[key])])
    rows += [[name, plain(z[key])] for key, name in (("lower", "lower bound"), ("upper", "upper bound"), ("gap", "gap"))
             if finite(z.get(key))]
    truth = run.get("truth", "log_z")
    if finite(truth):
        rows.append(["truth", plain(truth, 8)])
    rows += [[name, with_error(value, error)] for name, value, error, _ in estimates_of(run)]
    return table(rows)


def scalars(group, names):
    return [[name, plain(group[key], 4)] for key, name in names.items() if finite(group.get(key))]


def diagnostics(run):
    found = run.get("diagnostics")
    rows = [["diagnostic", "value"]]
    rows += [[key.replace("_", " "), plain(value, 4)] for key, value in found.items()
             if finite(value) and not isinstance(value, bool)]
    return table(rows) if len(rows) > 1 else ""


def settings(group):
    return ", ".join(f"{key} = {value}" for key, value in (group or {}).items())


def about(run):
    """What was run, as a table of two columns."""
    rows = [["what", "value"], ["target", run.get("target", "name")], ["dimension", plain(run.get("target", "dim"))]]
    for name, value in (("target's settings", settings(run.get("target", "settings"))),
                        ("data", run.get("target", "data")),
                        ("sampler" if run.get("command") == "sample" else "method", run.get("sampler", "name")),
                        ("its settings", settings(run.get("sampler", "settings"))),
                        ("chains", plain(run.get("chains"))),
                        ("warm-up iterations", plain(run.get("warmup"))), ("iterations", plain(run.get("iterations"))),
                        ("seed", run.get("seed")), ("device", run.get("device")), ("precision", run.get("precision")),
                        ("lockstep", run.get("version"))):
        if value not in (None, "", []):
            rows.append([name, str(value)])
    return table(rows, "words")


def gate_table(run):
    rows = [["gate", "state", "found", "needed", "what it says", "what to do"]]
    for gate in gates_of(run):
        look = {PASSED: "passed", FAILED: "failed"}.get(gate.state, "open")
        rows.append([gate.name, (gate.state, f"state {look}"), gate.found, gate.needed, gate.meaning, gate.advice])
    return table(rows, "words") if len(rows) > 1 else ""


def verdict(run):
    said = run.get("verdict")
    look = {"pass": "pass", "fail": "fail"}.get(said, "open")
    warnings = run.get("warnings") or []
    missed = any("standard errors from the truth" in warning for warning in warnings)
    passed = "by what a run can see: the truth known of this target is missed" if missed else "every gate that applies has passed"
    more = {"pass": passed,
            "fail": f"failed: {', '.join(run.get('failed_gates'))}"}.get(said, "the run is too short to judge")
    page = f'<p class="verdict {look}">Verdict: {text(said)} ({text(more)})</p>\n'
    if warnings:
        page += "<ul>" + "".join(f"<li>{text(warning)}</li>" for warning in warnings) + "</ul>\n"
    return page


def unseen_modes(run):
    """What the search may have missed: beside a pass too."""
    modes = (run.get("diagnostics") or {}).get("modes") or {}
    if "stopped" not in modes:
        return ""
    if finite(modes.get("narrowest")):
        said = (f"Of further modes that hold a tenth of all, those narrower than {plain(modes['narrowest'], 2)} times the widest "
                "known may have been missed (of wider ones 1 in 20), and any far from these and from the starts.")
    else:
        why = modes.get("narrowest_unknown")
        said = f"Of further modes nothing is known{f', for {why}' if why else ''}."
    return f"<p>{text(said)}</p>\n"


def modes_table(run):
    """Modes that chains visit, with the share of each and what it should be."""
    shares = ((run.get("diagnostics") or {}).get("modes") or {}).get("shares") or []
    if not shares:
        return ""
    rows = [["mode", "share", "se", "expected", "place"]]
    for number, mode in enumerate(shares[:MAX_ROWS], 1):
        rounding = 1e-9 * max(map(abs, mode["place"]))
        place = ", ".join(plain(0 if abs(x) < rounding else x, 3) for x in mode["place"][:6])
        place += ", .." if len(mode["place"]) > 6 else ""
        rows.append([str(number), *(plain(mode.get(key), 4) for key in ("share", "share_se", "expected")), place])
    return "<h2>Modes</h2>\n" + table(rows)


def in_short(run):
    """Chains, iterations, gradients and time, in one line."""
    cost = run.get("cost")
    parts = [f"{plain(run.get('chains'))} chains"] if run.get("chains") else []
    parts += [f"{plain(run.get('iterations'))} iterations"] if run.get("iterations") else []
    parts += [f"{plain(cost[key], 3)} {what}" for key, what in (("gradients", "gradients"), ("wall_s", "s in all"))
              if finite(cost.get(key))]
    return f"<p>{text(', '.join(parts))}</p>\n" if parts else ""


def title_of(run):
    return f"{run.get('target', 'name')} by {run.get('sampler', 'name')}" + \
        (": log Z" if run.get("command") == "evidence" else "")


def picture(title, png, caption):
    code = base64.b64encode(png).decode("ascii")
    note = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    return f'<h2>{title}</h2>\n<figure><img alt="{title}" src="data:image/png;base64,{code}">\n{note}</figure>\n'


def page_of(run, pictures):
    """pictures: [(title, bytes of the PNG, caption)] in their order."""
    title = text(title_of(run))
    shown = "".join(picture(*one) for one in pictures)
    parts = [f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" '
             f'content="width=device-width">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n'
             f"<h1>{title}</h1>\n", verdict(run), unseen_modes(run), in_short(run), "<h2>Gates</h2>\n", gate_table(run),
             "<h2>Estimates</h2>\n", evidence(run), estimates(run), modes_table(run), shown,
             "<h2>Cost</h2>\n", table([["what", "value"], *scalars(run.get("cost"), COSTS)]),
             "<h2>Diagnostics</h2>\n", diagnostics(run), "<h2>The run</h2>\n", about(run),
             f"<p>run.toml beside this page repeats it: lockstep {text(run.get('command'))} --config run.toml --out ANOTHER</p>\n",
             "</body>\n</html>\n"]
    return "".join(parts)
