#!/usr/bin/python3
"""An experiment, shortened to 20 steps of few tokens: the same bits with 1, 2, 3 and 8 threads, a second
time, after a kill and a resume, and with two runs at a time; in float32 and in bfloat16.

usage: determinism_test.py MOELAB EXPERIMENT.yaml
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import zlib

import h5py
import yaml

STEPS = 20
CLOCK = ("time", "step_seconds", "tokens_per_second", "train_seconds", "wall_seconds", "peak_rss_bytes")  # what may differ


def overrides(path, precision):
    """Two sequences a step, each a micro-batch, and a warm-up of two steps, so that the shortened schedule is sound.
    The first checkpoint, after 11 steps, comes between evaluations and between records of the routing."""
    with open(path) as file:
        experiment = yaml.safe_load(file)
    tokens = 2 * experiment["data"].get("seq_len", 64)
    return ["seeds=[0]", "train.max_tokens=null", f"train.max_steps={STEPS}", f"train.batch_tokens={tokens}",
            f"train.micro_batch_tokens={tokens // 2}",
            f"train.schedule={{kind: cosine, warmup_tokens: {2 * tokens}}}", f"train.precision={precision}",
            f"eval={{every_tokens: {10 * tokens}, max_tokens: {2 * tokens}}}",
            f"train.checkpoint={{every_tokens: {11 * tokens}, keep: 1}}", "log={every_steps: 1, routing_every_steps: 5}"]


def start(moelab, *arguments):
    return subprocess.Popen([moelab, "run", "--quiet", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def run(moelab, *arguments):
    process = start(moelab, *arguments)
    message = process.communicate()[1]
    assert process.returncode == 0, (arguments, process.returncode, message)


def numbers_of(path):
    """Every number of an HDF5 file but for the time, bit by bit."""
    values = {}
    with h5py.File(path) as file:
        file.visititems(lambda key, item: values.update({key: item[()].tobytes()})
                        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and key.split("/")[-1] not in CLOCK else None)
    assert len(values) > 3, path
    return values


def records_of(path):
    """What a journal says but for the time; each line has the right sum."""
    records = []
    with open(path, "rb") as file:
        for line in file:
            record = json.loads(line)
            assert record.pop("crc32") == zlib.crc32(line[:line.rindex(b',"crc32":')]), (path, line)
            records.append({key: value for key, value in record.items() if key.split("/")[-1] not in CLOCK})
    assert records[-1]["step"] == STEPS, path
    return records


def bits(folder):
    """Of each run: what its journal says, and every number of its last checkpoint and of its results."""
    result = {}
    for name in sorted(os.listdir(folder)):
        run_folder = os.path.join(folder, name)
        if not os.path.exists(os.path.join(run_folder, "metrics.jsonl")):
            continue
        values = {f"{file} {key}": value for file in (f"checkpoints/step_{STEPS}.h5", "run.h5")
                  for key, value in numbers_of(os.path.join(run_folder, file)).items()}
        result[name] = (records_of(os.path.join(run_folder, "metrics.jsonl")), values)
    return result


def check_same(one, two, what):
    assert one.keys() == two.keys(), what
    for name in one:
        for a, b in zip(*(side[name][0] for side in (one, two)), strict=True):
            assert a == b, (what, name, a, b)
        assert one[name][1].keys() == two[name][1].keys(), (what, name)
        for key in one[name][1]:
            assert one[name][1][key] == two[name][1][key], (what, name, key)


def checkpoints_in(output):
    return [os.path.join(r, f) for r, _, files in os.walk(output) for f in files if f.startswith("step_") and f.endswith(".h5")]


def start_steps(latest):
    """Where each run has begun, by its log."""
    steps = []
    for name in sorted(os.listdir(latest)):
        log = os.path.join(latest, name, "log.txt")
        if os.path.exists(log):
            with open(log) as file:
                steps += [int(step) for step in re.findall(r" starts at step (\d+) of", file.read())]
    return steps


def killed_and_resumed(moelab, arguments, output):
    """Killed after a checkpoint, then gone on with from it. On a busy machine the kill may come when a run is
    at its end and the next has no checkpoint yet: then once more, in another folder."""
    for attempt in range(10):
        place = f"{output}{attempt}"
        process = start(moelab, *arguments, "-o", place, "-j", "1")
        while process.poll() is None and not checkpoints_in(place):
            time.sleep(0.001)
        process.kill()
        message = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), (process.returncode, message)
        (name,) = os.listdir(place)
        latest = os.path.join(place, name, "latest")
        run(moelab, "--resume", latest)
        if process.returncode == -signal.SIGKILL and any(0 < step < STEPS for step in start_steps(latest)):
            return latest
    raise AssertionError(f"no kill came between a checkpoint and the end of a run: {arguments}")


def main():
    moelab, experiment = sys.argv[1:]
    for precision in ("float32", "bfloat16"):
        arguments = [experiment, *overrides(experiment, precision)]
        with tempfile.TemporaryDirectory() as folder:

            def result(name, *more):
                output = os.path.join(folder, name)
                run(moelab, *arguments, "-o", output, *more)
                (experiment_name,) = os.listdir(output)
                return bits(os.path.join(output, experiment_name, "latest"))

            first = result("first", "-t", "1", "-j", "1")
            assert first
            for threads in ("2", "3", "8"):
                check_same(first, result("threads" + threads, "-t", threads, "-j", "1"), (precision, threads, "threads"))
            check_same(first, result("again", "-t", "1", "-j", "1"), (precision, "a second time"))
            check_same(first, result("jobs", "-j", "2", "-t", "2"), (precision, "two runs at a time"))
            latest = killed_and_resumed(moelab, arguments, os.path.join(folder, "killed"))
            check_same(first, bits(latest), (precision, "resumed"))
    print(f"{len(first)} runs of {experiment}")


main()
