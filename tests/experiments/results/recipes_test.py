#!/usr/bin/python3
"""Runs every Python block of docs/analysis.md in a folder with the example's results, and those in R and Julia where these are installed.

usage: recipes_test.py WRITE_EXAMPLE ANALYSIS_MD
"""
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

import h5py


def check_pairs_of_sweep(write_example, block):
    """The recipe pairs as `moelab compare` does, whose differences stand in /variants."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_example, folder, "sweep"], check=True)
        os.rename(os.path.join(folder, "sweep.h5"), os.path.join(folder, "results.h5"))
        done = subprocess.run([sys.executable, "-W", "error", "-c", block], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (block, done.stderr)
        with h5py.File(os.path.join(folder, "results.h5")) as file:
            columns = [file["variants"][name][:] for name in ("delta_vs_baseline", "delta_ci_low", "delta_ci_high")]
    expected = [row for row in zip(*columns) if not math.isnan(row[0])]
    found = [[float(x) for x in line.split()[-3:]] for line in done.stdout.splitlines()]
    assert len(expected) == 2 and len(found) == 2, (expected, done.stdout)
    for row, other in zip(sorted(expected), sorted(map(tuple, found))):
        assert all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(row, other)), (expected, found)


def main():
    write_example, page = map(os.path.abspath, sys.argv[1:])
    with open(page) as file:
        text = file.read()
    python = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    assert len(python) >= 6, len(python)
    outputs = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_example, folder], check=True)
        with open(os.path.join(folder, "metrics.jsonl"), "w") as file:
            file.write('{"step":1,"tokens":2,"train/loss":0.5}\n{"step":1,"tokens":2,"eval/loss":0.75}\n')
        for block in python:
            done = subprocess.run([sys.executable, "-W", "error", "-c", block], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, (block, done.stderr)
            outputs.append(done.stdout)
        # The paired comparison: the example's mixture is lower by 0.2 with each seed.
        assert any(o.startswith("{} -0.2") for o in outputs), outputs
        # The means over seeds of dense and mixture: 3 and 2.8 + 0.05 / 3.
        for language, command, library in (("r", ["Rscript", "-e"], "library(hdf5r)"), ("julia", ["julia", "-e"], "using HDF5")):
            (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)
            if not shutil.which(command[0]) or subprocess.run([*command, library], capture_output=True).returncode != 0:
                print(f"not run: {language}, which is not installed here with its HDF5 library")
                continue
            done = subprocess.run([*command, block], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0 and "2.8166" in done.stdout, (done.stdout, done.stderr)
            outputs.append(done.stdout)
    (paired,) = [block for block in python if "stats.sem" in block]
    check_pairs_of_sweep(write_example, paired)
    print("\n".join(outputs))


main()
