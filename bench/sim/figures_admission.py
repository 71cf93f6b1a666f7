"""figures of the admission policies before a link, drawn from simulated runs: CSV and PNG"""
# SPDX-License-Identifier: Apache-2.0
#
# After Novak and Kasera, "Auto-Tuning Active Queue Management" (COMSNETS 2017): 40 TCP senders, a
# link of 100, 50, 20, 50, 100 Mb/s. Called from figures.py, which gives the folder and the tools.

import csv
import json
import pathlib
import subprocess
import tempfile

COLOURS = {"duk": "#2166ac", "codel": "#e08214", "pie": "#1b7837", "duk-literal": "#b2182b"}
# What is compared: a name, a policy, and the packets that it takes to be served at a time. 42 is
# half a round trip's worth at 20 Mb/s.
COMPARED = (("CoDel", "codel", 1, "dt 1"), ("PIE", "pie", 1, "dt 1"),
            ("DUK as published", "duk-literal", 1, "dt 1"), ("DUK", "duk", 1, "dt 1"),
            ("DUK, 42 slots", "duk", 42, "dt 2"))
ACTIONS = (("drop", []), ("mark", ["--ecn"]))
SEEDS = 5
STEP_20 = 2  # the third step of the link
CAPACITIES = (100, 50, 20, 50, 100)
STEP_S = 20


def file_of(policy, slots, action):
    return f"link-{action}-{policy}-{slots}.csv"


def link(spillsim, folder, policy, slots, action, options):
    """Time series of the first seed into a CSV, and the rows of all seeds, one per step."""
    command = [spillsim, "link", "--policy", policy, "--slots", str(slots), *options]
    subprocess.run([*command, "--csv", folder / file_of(policy, slots, action)], check=True,
                   stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as scratch:
        summary = pathlib.Path(scratch) / "summary.json"
        subprocess.run([*command, "--seeds", str(SEEDS), "--json", summary], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(summary.read_text())["rows"]


def capacity_marks():
    """The link's capacity in each step, and a line where it changes."""
    marks = ""
    for number, capacity in enumerate(CAPACITIES):
        marks += (f'set label {number + 1} "{capacity}" at {STEP_S * number + STEP_S / 2},'
                  'graph 0.95 center tc rgb "#777777"\n')
        if number:
            marks += (f"set arrow {number} from {STEP_S * number},graph 0 to "
                      f'{STEP_S * number},graph 1 nohead dt 3 lc rgb "#999999"\n')
    return marks


def draw_delays(gnuplot, folder):
    """A panel per policy, drop above, mark below: the delay over time."""
    commands = ('set multiplot layout 2,5 title "Delay in the queue, 40 senders of 250 KB, '
                'above packets are dropped, below marked (grey: the link in Mb/s)" font ",13"\n'
                'set xlabel "time (s)"\nset xrange [0:100]\nset xtics 20\nunset key\n'
                'set ylabel "mean delay of 0.1 s (ms, log)"\nset logscale y\n'
                f"set yrange [0.1:1000]\n{capacity_marks()}")
    for action, _ in ACTIONS:
        for name, policy, slots, _ in COMPARED:
            commands += (f'set title "{name}, {action}"\n'
                         f'plot "{file_of(policy, slots, action)}" skip 1 using 3:8 with lines '
                         f'lw 1 lc rgb "{COLOURS[policy]}"\n')
    gnuplot(folder, "link-delay", 2000, 800, commands + "unset multiplot\n")


def draw_completions(gnuplot, folder, results):
    """CDFs of the transfers that ended while the link had 20 Mb/s."""
    commands = ('set multiplot layout 1,2 title "Transfers of 250 KB by 40 senders at 20 Mb/s, '
                f'{SEEDS} runs" font ",13"\n'
                'set xlabel "completion time (s)"\nset xrange [0:12]\n'
                'set ylabel "share of transfers"\nset yrange [0:1]\nset key bottom right\n')
    for action, _ in ACTIONS:
        file = f"link-completion-{action}.csv"
        columns = [results[policy, slots, action][STEP_20]["completion"]["percentiles_ms"]
                   for _, policy, slots, _ in COMPARED]
        with (folder / file).open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["share"] + [f"{name} s" for name, *_ in COMPARED])
            for percent, values in enumerate(zip(*columns)):
                writer.writerow([percent / 100] + [f"{value / 1e3:.5g}" for value in values])
        curves = ", \\\n     ".join(
            f'"{file}" skip 1 using {2 + number}:1 with lines lw 2 {style} '
            f'lc rgb "{COLOURS[policy]}" title "{name}"'
            for number, (name, policy, _, style) in enumerate(COMPARED))
        commands += f'set title "packets are {action}{"ped" if action == "drop" else "ed"}"\n' \
                    f"plot {curves}\n"
    gnuplot(folder, "link-completion", 1200, 520, commands + "unset multiplot\n")


def write_table(folder, results):
    """The means that tables 2.1 and 2.2 of the source have."""
    with (folder / "link.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["policy", "slots", "action", "from_s", "capacity_mbps", "delay_ms",
                         "delay_p99_ms", "used", "dropped", "marked", "completion_p50_ms",
                         "completion_p95_ms"])
        for (policy, slots, action), rows in results.items():
            for row in rows:
                packets, delay, completion = row["packets"], row["delay"], row["completion"]
                values = (delay["mean_ms"], delay["p99_ms"], row["used"],
                          packets["dropped"] / packets["offered"],
                          packets["marked"] / packets["offered"], completion["p50_ms"],
                          completion["p95_ms"])
                writer.writerow([policy, slots, action, row["from_s"], row["capacity_mbps"],
                                 *(f"{value:.5g}" for value in values)])


def draw(pool, spillsim, gnuplot, folder):
    """All figures; `gnuplot` is figures.py's function."""
    jobs = {(policy, slots, action): pool.submit(link, spillsim, folder, policy, slots, action,
                                                 options)
            for _, policy, slots, _ in COMPARED for action, options in ACTIONS}
    results = {key: job.result() for key, job in jobs.items()}
    write_table(folder, results)
    draw_delays(gnuplot, folder)
    draw_completions(gnuplot, folder, results)
