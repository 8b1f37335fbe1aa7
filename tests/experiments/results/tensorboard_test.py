#!/usr/bin/python3
"""Reads TensorBoard event files with a parser of its own, written from the formats of TFRecord and Event.

usage: tensorboard_test.py WRITE_EXAMPLE
"""
import glob
import os
import struct
import subprocess
import sys
import tempfile

import h5py


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8])
        body = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked(body)
        yield body
        data = data[16 + length :]


def fields(message):
    """Field number and raw value of each entry of a protocol-buffer message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, message[at : at + size]
        at += size


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder, "tensorboard"], check=True)
        (path,) = glob.glob(os.path.join(folder, "tensorboard", "moe-s1", "events.out.tfevents.*"))
        points = {}
        with open(path, "rb") as file:
            events = [dict(fields(body)) for body in records(file.read())]
        assert events[0][3] == b"brain.Event:2"
        for event in events[1:]:
            value = dict(fields(dict(fields(event[5]))[1]))
            (wall,) = struct.unpack("<d", event[1])
            assert 1.6e9 < wall < 1e10
            points.setdefault(value[1].decode(), {})[event[2]] = struct.unpack("<f", value[2])[0]
        with h5py.File(os.path.join(folder, "results.h5")) as file:
            run = file["runs/moe-s1"]
            for name in ("train/loss", "eval/loss", "train/lr"):
                expected = dict(zip(run[name.split("/")[0]]["step"][:].tolist(), run[name][:].astype("f4").tolist()))
                assert points[name] == expected, name
            load_cv = run["routing/load_cv"][:, 1].astype("f4").tolist()
            assert list(points["moe/layer_3/load_cv"].values()) == load_cv
        assert sorted(points["train/grad_norm"]) == [2, 4]  # the others were not measured


main()
