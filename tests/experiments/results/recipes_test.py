#!/usr/bin/python3
"""Runs every Python block of docs/analysis.md in a folder with the example's results, and the R block where R has rhdf5.

usage: recipes_test.py WRITE_EXAMPLE ANALYSIS_MD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def main():
    write_example, page = map(os.path.abspath, sys.argv[1:])
    with open(page) as file:
        text = file.read()
    python = re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)
    r_code = re.findall(r"^```r\n(.*?)^```", text, re.S | re.M)
    assert len(python) >= 6 and len(r_code) == 1, (len(python), len(r_code))
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
        assert any(o.startswith("-0.2") for o in outputs), outputs
        rscript = shutil.which("Rscript")
        if rscript and subprocess.run([rscript, "-e", "library(rhdf5)"], capture_output=True).returncode == 0:
            done = subprocess.run([rscript, "-e", r_code[0]], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0 and "2.8166" in done.stdout, (done.stdout, done.stderr)
            outputs.append(done.stdout)
    print("\n".join(outputs))


main()
