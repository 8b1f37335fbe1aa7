#!/usr/bin/python3
"""Opens every group of a results file in the readers of other people; no error and no warning may come.

usage: readers_test.py WRITE_EXAMPLE
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import h5py
import netCDF4
import numpy
import pandas
import xarray

warnings.simplefilter("error")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    assert done.stderr == "", (command, done.stderr)
    return done.stdout


def check_equal(a, b, what):
    assert a.shape == b.shape, (what, a.shape, b.shape)
    if a.dtype.kind in "OU":
        assert (a.astype(str) == b.astype(str)).all(), what
    else:
        numpy.testing.assert_array_equal(a, b, what)


def groups_of(file):
    names = [""]
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Group) else None)
    return names


def check_h5py(path):
    """Attributes come as text and numbers; every dimension has one scale, in the same group."""
    with h5py.File(path) as file:
        groups = groups_of(file)
        assert len(groups) > 30, groups
        for name in groups:
            group = file[name or "/"]
            for key, value in group.attrs.items():
                assert isinstance(value, (str, float, numpy.floating, numpy.integer)), (name, key, value)
            for dataset in (x for x in group.values() if isinstance(x, h5py.Dataset)):
                assert isinstance(dataset.attrs["long_name"], str), dataset.name
                is_text = h5py.check_string_dtype(dataset.dtype)
                assert not is_text or (is_text.encoding == "utf-8" and is_text.length is None), dataset.name
                if not is_text and "flag_values" not in dataset.attrs:
                    assert isinstance(dataset.attrs["units"], str), dataset.name
                for axis, dimension in enumerate(dataset.dims):
                    if h5py.h5ds.is_scale(dataset.id):
                        continue
                    assert len(dimension) == 1, (dataset.name, axis)
                    assert dimension[0].parent == group, (dataset.name, axis)
                    assert len(dimension[0]) == dataset.shape[axis]
        return groups


def check_xarray(path, groups):
    for engine in ("netcdf4", "h5netcdf"):
        for name in groups:
            with xarray.open_dataset(path, group=name or None, engine=engine) as opened:
                opened.load()
                assert not [d for d in opened.dims if str(d).startswith("phony")], (engine, name, opened.dims)
                with h5py.File(path) as file:
                    group = file[name or "/"]
                    wanted = [k for k in group if isinstance(group[k], h5py.Dataset)]
                    assert sorted(wanted) == sorted(map(str, opened.variables)), (engine, name)
                    for key in wanted:
                        raw = group[key]
                        expected = raw.asstr()[()] if h5py.check_string_dtype(raw.dtype) else raw[()]
                        expected = numpy.asarray(expected)
                        if "_FillValue" in raw.attrs and expected.dtype.kind == "i":
                            fill = raw.attrs["_FillValue"][0]
                            expected = numpy.where(expected == fill, numpy.nan, expected)
                        check_equal(opened[key].values, expected, (engine, name, key))
                if opened.dims and len(opened.dims) == 1:
                    assert len(opened.to_dataframe()) == list(opened.dims.values())[0]


def check_pandas(path):
    with h5py.File(path) as file:
        summary = file["summary"]
        columns = {k: summary[k].asstr()[:] if h5py.check_string_dtype(summary[k].dtype) else summary[k][:] for k in summary}
    frame = pandas.DataFrame(columns)
    assert frame.groupby("variant").eval_loss_final.mean()["moe"] < frame.groupby("variant").eval_loss_final.mean()["dense"]
    journal = os.path.join(os.path.dirname(path), "metrics.jsonl")
    with open(journal, "w") as file:
        file.write('{"step":1,"tokens":2,"train/loss":null}\n{"step":2,"tokens":4,"train/loss":0.5}\n')
    assert pandas.read_json(journal, lines=True)["train/loss"].isna().tolist() == [True, False]


def check_netcdf4(path, groups):
    with netCDF4.Dataset(path) as file:
        assert file.data_model == "NETCDF4"
        for name in groups:
            group = file[name] if name else file
            for variable in group.variables.values():
                variable[...]
        status = file["summary/status"]
        assert status.flag_meanings.split()[status[0]] == "done"
        assert list(status.flag_values) == list(range(len(status.flag_meanings.split())))


def check_values(path):
    """Against what the example is made of, computed here."""
    with h5py.File(path) as file:
        for variant, loss, seed in itertools.product(("dense", "moe"), (3.0, 2.8), range(3)):
            if (variant == "dense") != (loss == 3.0):
                continue
            group = file[f"runs/{variant}-s{seed}/eval"]
            step = numpy.arange(1, 6)
            expected = (loss + 0.01 * float(seed * seed)) + 2.0 / step - 2.0 / 5
            numpy.testing.assert_allclose(group["loss"][:], expected, rtol=1e-15)
            numpy.testing.assert_array_equal(group["step"][:], step)
            numpy.testing.assert_allclose(group["loss_by_domain"][:, 1], expected + 0.1, rtol=1e-15)
        tokens = file["runs/moe-s0/routing/expert_tokens"][:]
        assert tokens.shape == (3, 2, 4) and tokens.dtype == numpy.int32
        assert tokens[1].tolist() == [[3, 4, 0, 3], [7, 3, -1, -1]]
        assert file["runs/moe-s0/train/loss"].compression in ("gzip", None)
        balance = file["runs/moe-s0/train/aux_load_balance"].attrs["long_name"]
        assert "E sum_e f_e P_e" in balance and "1 at even f for any k" in balance, balance
        assert balance.endswith("mean over layers and micro-batches, without its weight"), balance
        assert file.attrs["Conventions"] == "CF-1.10"
        assert file["runs/moe-s0/config_resolved"].asstr()[()].endswith("Größe\n")
        delta = file["variants/delta_vs_baseline"][:]
        assert numpy.isnan(delta[0]) and abs(delta[1] + 0.2) < 1e-12


def check_tools(path):
    header = run("ncdump", "-h", path)
    assert "phony" not in header.lower()
    assert re.search(r"int expert_tokens\(step, layer, expert\)", header), header
    run("ncdump", path)
    run("h5dump", path)
    run("h5ls", "-r", path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        run(sys.argv[1], folder)
        for name in ("results.h5", "moe-s1.h5"):
            path = os.path.join(folder, name)
            with h5py.File(path) as file:
                groups = groups_of(file)
            if name == "results.h5":
                groups = check_h5py(path)
                check_pandas(path)
                check_values(path)
            check_xarray(path, groups)
            check_netcdf4(path, groups)
            check_tools(path)
            with open(path, "rb") as file:
                assert file.read(9)[8] in (0, 2), "superblock that old readers refuse"
    print(json.dumps({"groups": len(groups), "xarray": xarray.__version__, "h5py": h5py.__version__}))


main()
