"""figures of the admission policies before a pool of slots, drawn from simulated runs"""
# SPDX-License-Identifier: Apache-2.0
#
# 16 slots that do 500 requests a second, exponential service. Called from figures.py, which gives
# the folder and the tools.

import csv
import json
import pathlib
import subprocess
import tempfile

COLOURS = {"tail": "#777777", "codel": "#e08214", "pie": "#1b7837", "duk-literal": "#b2182b",
           "duk": "#2166ac"}
LABELS = {"tail": "64 may wait", "codel": "CoDel", "pie": "PIE", "duk-literal": "DUK as published",
          "duk": "DUK"}
SEEDS = 5
SHARES = (100, 50, 20, 50, 100)
STEP_S = 20
SCHEDULE = " ".join(f"{share}%:{STEP_S}s" for share in SHARES)
# name, title, options, the range of the completion times in ms
COMPLETIONS = (
    ("load-1.2", "open loop, load 1.2", ["--load", "1.2"], 10, 1000),
    ("load-2", "open loop, load 2", ["--load", "2"], 10, 10000),
    ("costs", "load 1.2, costs 1 to 64", ["--load", "1.2", "--cost", "pareto:1.2:1:64"], 1, 10000),
    ("retries", "200 clients, refused ones try again after 50 ms",
     ["--flow", "concurrency=200,pause=50ms"], 10, 10000),
)
DELAY_LOADS = (0.8, 1.2)
TABLE_LOADS = "0.5,0.8,0.9,1,1.2,2,10"


def rows_of(spillsim, *options):
    with tempfile.TemporaryDirectory() as scratch:
        summary = pathlib.Path(scratch) / "summary.json"
        subprocess.run([spillsim, "gate", "--policy", ",".join(COLOURS), *options, "--json",
                        summary], check=True, stdout=subprocess.DEVNULL)
        return json.loads(summary.read_text())["rows"]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def draw_completions(gnuplot, folder, results):
    """CDFs of the response times of what was served, the seeds' percentiles averaged."""
    commands = ('set multiplot layout 2,2 title "Completion times of what was served, 16 slots, '
                f'500 requests/s, {SEEDS} runs" font ",13"\n'
                'set xlabel "from the first try to the answer (ms, log)"\nset logscale x\n'
                'set ylabel "share of requests served"\nset yrange [0:1]\nset key bottom right\n')
    for name, title, _, least_ms, most_ms in COMPLETIONS:
        file = f"gate-completion-{name}.csv"
        columns = [[mean(column) for column in zip(*(
            row["response"]["percentiles_ms"] for row in results[name]
            if row["policy"] == policy))] for policy in COLOURS]
        with (folder / file).open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["share"] + [f"{LABELS[policy]} ms" for policy in COLOURS])
            for percent, values in enumerate(zip(*columns)):
                writer.writerow([percent / 100] + [f"{value:.5g}" for value in values])
        curves = ", \\\n     ".join(
            f'"{file}" skip 1 using {2 + number}:1 with lines lw 2 lc rgb "{COLOURS[policy]}" '
            f'title "{LABELS[policy]}"' for number, policy in enumerate(COLOURS))
        commands += f'set title "{title}"\nset xrange [{least_ms}:{most_ms}]\nplot {curves}\nunset key\n'
    gnuplot(folder, "gate-completion", 1200, 900, commands + "unset multiplot\n")


def draw_delays(spillsim, gnuplot, folder):
    """The wait over time while the capacity changes, a row of panels per load."""
    shown = [policy for policy in COLOURS if policy != "duk-literal"]
    commands = (f'set multiplot layout {len(DELAY_LOADS)},{len(shown)} title "Wait in the queue, '
                'load of the full capacity (grey: capacity in %)" font ",13"\n'
                'set xlabel "time (s)"\nset xrange [0:100]\nset xtics 20\nunset key\n'
                'set ylabel "mean wait of 0.5 s (ms, log)"\nset logscale y\nset yrange [0.1:10000]\n')
    for number, share in enumerate(SHARES):
        commands += (f'set label {number + 1} "{share}" at {STEP_S * number + STEP_S / 2},'
                     'graph 0.95 center tc rgb "#777777"\n')
        if number:
            commands += (f"set arrow {number} from {STEP_S * number},graph 0 to "
                         f'{STEP_S * number},graph 1 nohead dt 3 lc rgb "#999999"\n')
    for load in DELAY_LOADS:
        for policy in shown:
            file = f"gate-delay-{policy}-{load}.csv"
            subprocess.run([spillsim, "gate", "--policy", policy, "--load", str(load),
                            "--schedule", SCHEDULE, "--warmup", "0", "--duration",
                            f"{STEP_S * len(SHARES)}s", "--interval", "500ms", "--csv",
                            folder / file], check=True, stdout=subprocess.DEVNULL)
            commands += (f'set title "{LABELS[policy]}, load {load}"\n'
                         f'plot "{file}" skip 1 using 4:8 with lines lw 1 '
                         f'lc rgb "{COLOURS[policy]}"\n')
    gnuplot(folder, "gate-delay", 1600, 800, commands + "unset multiplot\n")


def write_table(folder, rows):
    """Means over the seeds, by load and policy."""
    keys = dict.fromkeys((row["load"], row["policy"]) for row in rows)
    with (folder / "gate.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["load", "policy", "wait_ms", "wait_p99_ms", "used", "refused",
                         "beyond_ideal"])
        for load, policy in keys:
            runs = [row for row in rows if (row["load"], row["policy"]) == (load, policy)]
            values = ([run["wait"]["mean_ms"] for run in runs], [run["wait"]["p99_ms"] for run in runs],
                      [run["used"] for run in runs], [run["refused"] for run in runs],
                      [run["beyond_ideal"] for run in runs])
            writer.writerow([load, policy, *(f"{mean(value):.5g}" for value in values)])


def draw(pool, spillsim, gnuplot, folder):
    """All figures; `gnuplot` is figures.py's function."""
    seeds = ["--seeds", str(SEEDS)]
    jobs = {name: pool.submit(rows_of, spillsim, *options, *seeds)
            for name, _, options, _, _ in COMPLETIONS}
    table = pool.submit(rows_of, spillsim, "--load", TABLE_LOADS, *seeds)
    draw_delays(spillsim, gnuplot, folder)
    draw_completions(gnuplot, folder, {name: job.result() for name, job in jobs.items()})
    write_table(folder, table.result())
