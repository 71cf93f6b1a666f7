#!/usr/bin/env python3
"""the figures of the paper's evaluation, drawn from simulated runs: CSV and PNG"""
# SPDX-License-Identifier: Apache-2.0
#
# Jin, Chase, Kaur, "Interposed Proportional Sharing for a Storage Service Utility" (SIGMETRICS
# 2004). f is the flow to be protected, g the one that asks for more. Every curve is spillsim's; the
# array is its default one. SPILLWAY_BIN names the folder with spillsim.

import concurrent.futures
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import figures_admission
import figures_gate

SPILLSIM = pathlib.Path(os.environ.get("SPILLWAY_BIN", "build/release/bin")) / "spillsim"
RATES = range(100, 501, 20)
SECONDS = 300
LONG_SECONDS = 1000  # where f has little room: its queue is long now and then
LABELS = {"sfqd": "SFQ", "fsfq": "FSFQ", "rw": "RW", "edf": "EDF"}
COLOURS = {"sfqd": "#e08214", "fsfq": "#2166ac", "rw": "#1b7837", "edf": "#b2182b"}
# Line and point of a curve, by its place among those of the same colour.
STYLES = ["dt 1 pt 7", "dt 2 pt 4", "dt 4 pt 9"]

# ---------------------------------------------------------------- runs


def simulate(algorithm, depth, f, g, seconds, *options):
    """One run; returns spillsim's summary of the two flows."""
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder) / "summary.json"
        subprocess.run(
            [SPILLSIM, "array", "--algorithm", algorithm, "--depth", str(depth),
             "--duration", f"{seconds}s", "--flow", f"name=f,{f}", "--flow", f"name=g,{g}",
             "--json", summary, *options],
            check=True, stdout=subprocess.DEVNULL)
        return json.loads(summary.read_text())["flows"]


class Curve:
    """One algorithm, depth and weight of f over the rates of g."""

    def __init__(self, algorithm, depth, weight, f_rate, seconds=SECONDS, terms=("", "")):
        self.algorithm, self.depth, self.seconds = algorithm, depth, seconds
        self.name = f"{LABELS[algorithm]}({depth}) {weight}:1"
        self.f = f"weight={weight},rate={f_rate}/s{terms[0]}"
        self.terms_g = terms[1]

    def point(self, rate):
        f, g = simulate(self.algorithm, self.depth, self.f, f"rate={rate}/s{self.terms_g}",
                        self.seconds)
        return f["response"]["mean_ms"], g["response"]["mean_ms"], f["completed_per_s"]


def sweep(pool, path, curves):
    """Writes one line per rate of g: three columns per curve."""
    points = {curve.name: pool.map(curve.point, RATES) for curve in curves}
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["g_per_s"] + [f"{curve.name} {what}" for curve in curves
                                       for what in ("f_ms", "g_ms", "f_per_s")])
        columns = [list(points[curve.name]) for curve in curves]
        for number, rate in enumerate(RATES):
            writer.writerow([rate] + [f"{value:.5g}" for column in columns
                                      for value in column[number]])

# ---------------------------------------------------------------- drawing


HEADER = """
set terminal pngcairo size {width},{height} font "DejaVu Sans,11" background "white"
set output "{png}"
set datafile separator ","
set grid lc rgb "#dddddd" lt 1
set border 3 lc rgb "#555555"
set tics nomirror
set key top left reverse Left opaque box lc rgb "#cccccc" samplen 3 width 1 height 0.3
"""


def gnuplot(folder, name, width, height, commands):
    """Draws folder/name.png; the commands stay beside it as name.gp."""
    script = folder / f"{name}.gp"
    script.write_text(HEADER.format(width=width, height=height, png=f"{name}.png") + commands)
    subprocess.run(["gnuplot", script.name], cwd=folder, check=True)


def curves_of(file, curves, column):
    """A plot command of one column (0: f_ms, 1: g_ms, 2: f_per_s) of each curve."""
    seen, parts = {}, []
    colours = len({curve.algorithm for curve in curves})
    for number, curve in enumerate(curves):
        place = seen.setdefault(curve.algorithm, 0)
        seen[curve.algorithm] += 1
        # With a colour each, curves that coincide are told apart by their lines.
        style = STYLES[number if colours == len(curves) else place]
        parts.append(f'"{file}" skip 1 using 1:{2 + 3 * number + column} with linespoints '
                     f'lc rgb "{COLOURS[curve.algorithm]}" lw 2 ps 0.8 {style} '
                     f'title "{curve.name}"')
    return "plot " + ", \\\n     ".join(parts) + "\n"


def draw_sweep(pool, folder, name, title, curves, top_ms):
    sweep(pool, folder / f"{name}.csv", curves)
    gnuplot(folder, name, 1200, 520, f"""
set multiplot layout 1,2 title "{title}" font ",13"
set xlabel "g's arrivals (requests/s)"
set xrange [100:500]
set ylabel "mean response time of f (ms)"
set yrange [0:{top_ms}]
{curves_of(f"{name}.csv", curves, 0)}
set key bottom right
set ylabel "mean response time of g (ms, log), {curves[0].seconds} s run"
set logscale y
set yrange [10:1e6]
set format y "10^{{%L}}"
{curves_of(f"{name}.csv", curves, 1)}
unset multiplot
""")


def sweep_shallow(pool, folder):
    draw_sweep(pool, folder, "sweep-depth-8",
               "f at 240 requests/s, depth 8, weights f:g",
               [Curve(a, 8, w, 240, LONG_SECONDS) for a in ("sfqd", "fsfq", "rw") for w in (2, 8)],
               60)


def sweep_deep(pool, folder):
    draw_sweep(pool, folder, "sweep-depth-32",
               "f at 240 requests/s, depth 32, weights f:g",
               [Curve(a, 32, w, 240) for a in ("fsfq", "rw") for w in (1, 2, 8)], 140)


def depths(pool, folder):
    panels = []
    for rate, top_ms in ((60, 160), (240, 160)):
        curves = [Curve(a, d, 2, rate) for a in ("fsfq", "rw") for d in (16, 64)]
        file = f"depth-f{rate}.csv"
        sweep(pool, folder / file, curves)
        panels.append(f'set title "f at {rate} requests/s"\nset yrange [0:{top_ms}]\n'
                      + curves_of(file, curves, 0))
    gnuplot(folder, "depth", 1200, 520, """
set multiplot layout 1,2 title "Depth 16 and 64, weights f:g = 2:1" font ",13"
set xlabel "g's arrivals (requests/s)"
set xrange [100:500]
set ylabel "mean response time of f (ms)"
""" + "".join(panels) + "unset multiplot\n")


def protection(pool, folder):
    terms = (",deadline=1s", ",deadline=10ms")
    curves = [Curve(a, 16, 2, 300, terms=terms) for a in ("fsfq", "rw", "edf")]
    sweep(pool, folder / "protection.csv", curves)
    gnuplot(folder, "protection", 1200, 520, f"""
set multiplot layout 1,2 title \
  "f at 300 requests/s, depth 16, weights 2:1; EDF targets: f 1 s, g 10 ms" font ",13"
set xlabel "g's arrivals (requests/s)"
set xrange [100:500]
set key bottom left
set ylabel "f's completed requests/s"
set yrange [0:350]
{curves_of("protection.csv", curves, 2)}
set key top left
set ylabel "mean response time of f (ms, log), {SECONDS} s run"
set logscale y
set yrange [10:1e6]
set format y "10^{{%L}}"
{curves_of("protection.csv", curves, 0)}
unset multiplot
""")


ON_OFF = ("fsfq", "rw", "edf")
ON_OFF_FLOWS = ("weight=2,rate=480/s,deadline=1s",
                "weight=1,rate=120/s,on=10s,off=10s,deadline=10ms")


def on_off(pool, folder):
    def run(algorithm):
        simulate(algorithm, 16, *ON_OFF_FLOWS, 100, "--csv", folder / f"on-off-{algorithm}.csv")

    list(pool.map(run, ON_OFF))
    phases = "".join(
        f"set object {n + 1} rectangle from {20 * n},graph 0 to {20 * n + 10},graph 1 "
        f'fc rgb "#f0f0f0" fs noborder behind\n' for n in range(5))
    columns = {"throughput": (3, 8), "response": (4, 9)}
    commands = (f"set multiplot layout 2,3 title \"f at 480 requests/s (weight 2), g 120 requests/s"
                f" in the grey phases (weight 1), depth 16\" font \",13\"\n{phases}"
                "set xlabel \"time (s)\"\nset xrange [0:100]\n")
    for what, axis in (("throughput", 'set ylabel "completed requests/s"\nset yrange [0:750]\n'),
                       ("response", 'set ylabel "mean response time (ms, log)"\nset logscale y\n'
                        'set yrange [10:100000]\nset format y "10^{%L}"\n')):
        commands += axis
        for algorithm in ON_OFF:
            label = f"{LABELS[algorithm]}(16)"
            if algorithm == "edf":
                label += ", targets: f 1 s, g 10 ms"
            f, g = columns[what]
            file = f"on-off-{algorithm}.csv"
            commands += (f'set title "{label}"\n'
                         f'plot "{file}" skip 1 using 1:{f} with lines lw 2 lc rgb "#2166ac" '
                         f'title "f", "{file}" skip 1 using 1:{g} with points pt 7 ps 0.6 '
                         f'lc rgb "#b2182b" title "g"\n')
    gnuplot(folder, "on-off", 1500, 800, commands + "unset multiplot\n")

# ---------------------------------------------------------------- all of them


def main():
    if len(sys.argv) != 2:
        print("usage: figures.py FOLDER", file=sys.stderr)
        return 2
    if not SPILLSIM.exists():
        print(f"{SPILLSIM}: not built: make figures builds it", file=sys.stderr)
        return 1
    if not shutil.which("gnuplot"):
        print("gnuplot is missing: make deps installs it (package gnuplot-nox)", file=sys.stderr)
        return 1
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for figure in (on_off, sweep_shallow, sweep_deep, depths, protection):
            figure(pool, folder)
        figures_gate.draw(pool, SPILLSIM, gnuplot, folder)
        figures_admission.draw(pool, SPILLSIM, gnuplot, folder)
    for path in sorted(folder.glob("*.png")):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
