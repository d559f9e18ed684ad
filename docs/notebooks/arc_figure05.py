"""Draws figure 5 of [ARC], utilisation over delay, from the runs of an experiment: a dot for each run, a line through the means.

    namecast experiment run arc/figure05
    python3 -m venv venv && venv/bin/pip install --requirement docs/notebooks/requirements.txt
    venv/bin/python docs/notebooks/arc_figure05.py results/arc/figure05/runs.parquet figure05.svg

`runs.parquet` has a row for each run: a column of labels for each sweep (here controller and delay), run and seed, and a column
of numbers for each metric, which is NULL where what it stands for never happened. DuckDB, pandas and pyarrow read it as it is.
"""

import sys

import duckdb
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

RUNS, PICTURE = sys.argv[1:]

# Labels are as the file has them, "8 ms": the number is what they begin with.
MEANS = """
    SELECT controller,
           regexp_extract(delay, '^[0-9.]+')::DOUBLE AS ms,
           avg(utilisation),
           stddev_samp(utilisation) / sqrt(count(utilisation)),
           list(utilisation)
    FROM read_parquet(?)
    GROUP BY controller, ms
    ORDER BY controller, ms
"""
rows = duckdb.execute(MEANS, [RUNS]).fetchall()

figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for controller in sorted({row[0] for row in rows}):
    points = [row for row in rows if row[0] == controller]
    delays, means = [row[1] for row in points], [row[2] for row in points]
    (line,) = axes.plot(delays, means, label=controller)
    for _, delay, _, _, runs in points:
        axes.plot([delay] * len(runs), runs, ".", color=line.get_color(), alpha=0.4)
axes.set_xlabel("one-way delay of the bottleneck (ms)")
axes.set_ylabel("share of 10 Mbit/s")
axes.set_ylim(0, 1.02)
axes.legend()
figure.savefig(PICTURE)

print("controller, delay in ms, mean utilisation, its standard error, runs")
for controller, delay, mean, error, runs in rows:
    print(f"{controller}, {delay:g}, {mean:.4f}, {error or 0:.4f}, {len(runs)}")
