#!/usr/bin/python3
"""Every number of `moelab compare` against numpy and scipy, computed here from the curves in the file.

usage: scipy_test.py WRITE_EXAMPLE MOELAB
"""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile

import h5py
import numpy
from scipy import stats


def read_runs(path):
    """variant -> seed -> curves and sizes."""
    runs = {}
    with h5py.File(path) as file:
        for name in file["runs"]:
            run, summary = file["runs"][name], file["summary"]
            row = summary["run"].asstr()[:].tolist().index(name)
            entry = {k: run["eval"][k][:].astype(float) for k in ("loss", "tokens", "time")}
            entry["flops"] = 3 * summary["flops_forward_per_token"][row] * entry["tokens"]
            entry["total"], entry["active"] = summary["params_total"][row], summary["params_active"][row]
            entry["mixture"] = "routing" in run
            runs.setdefault(run.attrs["variant"], {})[int(run.attrs["seed"])] = entry
    return runs


def close(actual, expected, what, tolerance=1e-9):
    assert actual is not None and abs(actual - expected) <= tolerance * max(1, abs(expected)), (what, actual, expected)


def holm(p_values):
    """Step-down: the smallest times the number of them, and so on, never falling."""
    order = numpy.argsort(p_values)
    scaled = numpy.array(p_values)[order] * numpy.arange(len(p_values), 0, -1)
    adjusted = numpy.empty(len(p_values))
    adjusted[order] = numpy.minimum(1, numpy.maximum.accumulate(scaled))
    return adjusted


def cost_at(loss, cost, target):
    """Curves of the example fall everywhere, so numpy's interpolation over the reversed loss will do."""
    assert (numpy.diff(loss) < 0).all()
    if not loss[-1] <= target < loss[0]:
        return numpy.nan
    return numpy.exp(numpy.interp(target, loss[::-1], numpy.log(cost[::-1])))


def geometric(ratios, entry, name):
    ratios = numpy.array(ratios)
    reached = numpy.log(ratios[~numpy.isnan(ratios)])
    assert entry[name + "_not_reached"] == numpy.isnan(ratios).sum(), (name, ratios)
    if len(reached) == 0:
        assert entry[name] is None
        return
    close(entry[name], numpy.exp(reached.mean()), name)
    if len(reached) < 3:
        assert entry[name + "_low"] is None and entry[name + "_high"] is None
        return
    low, high = numpy.exp(stats.t.interval(0.95, len(reached) - 1, reached.mean(), stats.sem(reached)))
    close(entry[name + "_low"], low, name)
    close(entry[name + "_high"], high, name)


def check_statistics(entries, values, what):
    """Means, intervals and tests of one value a seed (variant -> values) against the entries of the JSON."""
    p_values = []
    for variant, x in values.items():
        e = entries[variant]
        numpy.testing.assert_allclose([s["value"] for s in e["seeds"]], x, rtol=1e-12)
        close(e["mean"], x.mean(), what)
        close(e["std"], x.std(ddof=1), what)
        low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
        close(e["ci_low"], low, what)
        close(e["ci_high"], high, what)
        if variant == "dense":
            assert e["delta"] is None
            continue
        d = x - values["dense"]
        close(e["delta"], d.mean(), what)
        close(e["delta_std"], d.std(ddof=1), what)
        low, high = stats.t.interval(0.95, len(d) - 1, d.mean(), stats.sem(d))
        close(e["delta_ci_low"], low, what)
        close(e["delta_ci_high"], high, what)
        p = stats.ttest_rel(x, values["dense"]).pvalue
        close(e["p_value"], p, what)
        p_values.append(p)
        # Other random numbers: equal up to the noise of 10,000 resamples.
        boot = stats.bootstrap((d,), numpy.mean, confidence_level=0.95, n_resamples=100000, method="percentile",
                               random_state=1).confidence_interval
        close(e["delta_bootstrap_low"], boot.low, what, 0.1 * d.std(ddof=1))
        close(e["delta_bootstrap_high"], boot.high, what, 0.1 * d.std(ddof=1))
    for variant, p in zip([v for v in values if v != "dense"], holm(p_values)):
        close(entries[variant]["p_value_holm"], p, what)


def check_efficiency(entries, runs):
    dense = [v for v in runs if not next(iter(runs[v].values()))["mixture"]]
    assert dense == ["dense", "dense_large"]
    for variant, seeds in runs.items():
        e = entries[variant]
        if variant != "dense":
            for name, cost in (("compute_efficiency", "flops"), ("wall_clock_efficiency", "time")):
                ratios = []
                for seed, mine in seeds.items():
                    base = runs["dense"][seed]
                    target = max(mine["loss"].min(), base["loss"].min())
                    ratios.append(cost_at(base["loss"], base[cost], target) / cost_at(mine["loss"], mine[cost], target))
                geometric(ratios, e, name)
        if variant in dense:
            assert e["active_parameter_efficiency"] is None
            continue
        for name, size in (("active_parameter_efficiency", "active"), ("total_parameter_efficiency", "total")):
            ratios = []
            for seed, mine in seeds.items():
                losses = numpy.array([runs[d][seed]["loss"][-1] for d in dense])
                sizes = numpy.array([runs[d][seed][size] for d in dense])
                ratios.append(cost_at(losses, sizes, mine["loss"][-1]) / mine[size])
            geometric(ratios, e, name)


def main():
    write_example, moelab = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_example, folder, "study"], check=True)
        path = os.path.join(folder, "study.h5")

        def compare(*options):
            return subprocess.run([moelab, "compare", path, *options], check=True, capture_output=True, text=True).stdout

        def entries(*options):
            document = json.loads(compare("--format", "json", *options))
            return {v["variant"]: v for v in document["variants"]}

        runs = read_runs(path)
        assert {v: len(s) for v, s in runs.items()} == {"dense": 5, "dense_large": 5, "moe": 5, "moe_even": 5}
        at = {
            "final": lambda r: r["loss"][-1],
            "best": lambda r: r["loss"].min(),
            "tokens=450": lambda r: numpy.interp(450, r["tokens"], r["loss"]),
            "flops=1.5e7": lambda r: numpy.interp(1.5e7, r["flops"], r["loss"], left=numpy.nan, right=numpy.nan),
        }
        for place, value in at.items():
            values = {v: numpy.array([value(r) for r in seeds.values()]) for v, seeds in runs.items()}
            values = {v: x for v, x in values.items() if not numpy.isnan(x).any()}
            assert "dense" in values and len(values) >= 3, place
            check_statistics(entries("--at", place), values, place)
        final = entries()
        check_efficiency(final, runs)
        missed = [final[v]["active_parameter_efficiency_not_reached"] for v in ("moe", "moe_even")]
        assert missed[0] == 0 and 0 < missed[1] < 5, missed  # the example has both

        rows = {r["variant"]: r for r in csv.DictReader(io.StringIO(compare("--format", "csv")))}
        for variant, entry in final.items():
            assert rows[variant].pop("baseline") == entry["baseline"] == "dense", variant
            for name, text in rows[variant].items():
                if name != "variant":
                    assert (float(text) if text else None) == entry[name], (variant, name)
        gain = f"{final['moe']['compute_efficiency']:.2f} [{final['moe']['compute_efficiency_low']:.2f}"
        for form in ("table", "md", "latex"):
            assert gain in compare("--format", form), form


main()
