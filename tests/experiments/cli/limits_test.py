#!/usr/bin/python3
"""Sizes and names at their ends: each works, or is refused with the limit named.

usage: limits_test.py MOELAB
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

MOELAB = sys.argv[1]

FFN = """version: 1
name: {name}
data: {{kind: synthetic, num_features: {width}, num_targets: 1, eval_sequences: 8, seq_len: 1}}
model: {{kind: ffn, d_model: {width}, num_layers: 1, ffn: {ffn}}}
train: {{max_steps: 2, batch_tokens: 1, optimizer: {{lr: 1e-3}}}}
"""

DECODER = """version: 1
name: {name}
data: {{kind: text, seq_len: {length}, domains: [{{name: "{domain}", path: text.txt}}]}}
model: {{kind: decoder, d_model: 4, num_layers: 1, num_heads: 1, ffn: {{activation: relu, d_ff: 4}}}}
train: {{max_steps: 1, batch_tokens: {length}, optimizer: {{lr: 1e-3}}}}
eval: {{max_tokens: {length}}}
"""


def moelab(folder, *arguments, code=0):
    done = subprocess.run([MOELAB, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr[-2000:])
    return done.stdout + done.stderr


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def of_length(folder, length):
    """An absolute path of so many bytes below the folder."""
    path = folder
    while length - len(path) > 202:
        path = os.path.join(path, "y" * 200)
    path = os.path.join(path, "y" * (length - len(path) - 1))
    assert len(path) == length, path
    return path


def main():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "text.txt", "".join(f"line {i} of größe 漢字\n" for i in range(60000)))

        # One token a step, width 1, and 4,096 experts of it.
        many = "{kind: moe, experts: {kind: ffn, count: 4096, activation: relu, d_ff: 1}, router: {kind: top_k, top_k: 2}}"
        write(folder, "experts.yaml", FFN.format(name="experts", width=1, ffn=many))
        assert "base" in moelab(folder, "run", "-q", "experts.yaml", "train.checkpoint.every_tokens=1")
        checkpoints = glob.glob(os.path.join(folder, "runs/experts/latest/base-s0/checkpoints/*.h5"))
        # Weights and two moments of 8,192 matrices of one number: what HDF5 takes for a dataset, and no more.
        assert checkpoints and max(map(os.path.getsize, checkpoints)) < 64 << 20, checkpoints
        assert "4096" in moelab(folder, "show", "runs/experts/latest/results.h5")
        moelab(folder, "plot", "runs/experts/latest/results.h5", "coactivation", "-o", "pairs.svg")
        assert os.path.getsize(os.path.join(folder, "pairs.svg")) < 10 << 20
        # More of them have no co-activation, which is said before, and is no error of what reads the results.
        write(folder, "more.yaml", FFN.format(name="more", width=1, ffn=many.replace("4096", "4100")))
        assert "no co-activation" in moelab(folder, "check", "more.yaml")
        assert "no co-activation" in moelab(folder, "run", "-q", "more.yaml")
        results = "runs/more/latest/results.h5"
        assert "no run of" in moelab(folder, "plot", results, "coactivation", "-o", "pairs.svg", code=1)
        for command in (["show", results], ["compare", results], ["recover", "runs/more/latest"],
                        ["plot", results, "domains", "-o", "x.svg"], ["report", results, "-o", "x.html"]):
            moelab(folder, *command)
        write(folder, "wrong.yaml", FFN.format(name="wrong", width=0, ffn="{activation: relu, d_ff: 4}"))
        assert "d_model" in moelab(folder, "check", "wrong.yaml", code=2)

        # A sequence of 65,536.
        write(folder, "long.yaml", DECODER.format(name="long", length=65536, domain="text"))
        moelab(folder, "run", "-q", "long.yaml")
        assert "65.5k" in moelab(folder, "show", "runs/long/latest/results.h5")

        # Names with Unicode and spaces; they come back as they were, and folders have harmless names.
        write(folder, "name.yaml", DECODER.format(name='"größe mit 漢字"', length=64, domain="ein Bereich äö"))
        moelab(folder, "run", "-q", "name.yaml")
        (made,) = [n for n in os.listdir(os.path.join(folder, "runs")) if n.startswith("gr")]
        assert made.isascii() and " " not in made, made
        assert "größe mit 漢字" in moelab(folder, "show", f"runs/{made}/latest/results.h5")
        assert "eval/loss/ein Bereich äö" in moelab(
            folder, "compare", f"runs/{made}/latest/results.h5", "--metric", "eval/loss/ein Bereich äö")

        # Paths up to what the system takes, and one beyond, which is told of.
        below = os.path.join(folder, *["x" * 200] * 17)
        moelab(folder, "run", "-q", "name.yaml", "-o", below)
        assert os.path.exists(os.path.join(below, made, "latest", "results.h5"))
        assert "too long" in moelab(folder, "run", "-q", "name.yaml", "-o", os.path.join(folder, *["x" * 200] * 25), code=1)

        # Up to the last byte of PATH_MAX (4,096 with the final zero): either all of the run has room, or the end says what has not.
        codes = []
        for length in (3900, 3960, 3985, 4000, 4010, 4020, 4030, 4040, 4050, 4060, 4070, 4080, 4090, 4094, 4095, 4096, 4097):
            path = of_length(folder, length)
            done = subprocess.run([MOELAB, "run", "-q", "name.yaml", "-o", path], cwd=folder, capture_output=True, text=True)
            said = done.stdout + done.stderr
            codes.append(done.returncode)
            if done.returncode == 0:
                assert glob.glob(os.path.join(glob.escape(path), "*/*/report.html")), length
            else:
                assert done.returncode in (1, 3) and "too long" in said, (length, done.returncode, said[-1000:])
            shutil.rmtree(os.path.join(folder, "y" * 200), ignore_errors=True)
        assert codes[0] == 0 and codes[-1] == 1 and codes == sorted(codes, key=bool), codes

        # Names that would act on a terminal are refused, and shown as what they are.
        for name, shown in (("a\\e]0;owned\\a", "a\\x1b]0;owned\\x07"), ("a\\nb", "a\\nb"), ("a\\rb", "a\\x0db"),
                            ("a\\tb", "a\\tb"), ("a\\x7fb", "a\\x7fb"), ("a\\u202Eb", "a\\u202eb")):
            for key, text in (("name", DECODER.format(name=f'"{name}"', length=64, domain="text")),
                              ("data.domains[0].name", DECODER.format(name="fine", length=64, domain=name))):
                write(folder, "out.yaml", text)
                said = moelab(folder, "run", "out.yaml", code=2)
                assert f'{key}: the text "{shown}" holds a control character' in said, (name, said)
                assert "\x1b" not in said and "\a" not in said and "\r" not in said, said
            write(folder, "out.yaml", DECODER.format(name="fine", length=64, domain="text") + f'variants: {{"{name}": {{}}}}\n')
            assert f"`{shown}`" in moelab(folder, "run", "out.yaml", code=2), name

        # Nothing of a config leads out of the output folder.
        for name in ("../outside", "/tmp/outside", "..", "a/b"):
            write(folder, "out.yaml", DECODER.format(name=f'"{name}"', length=64, domain="text"))
            assert "cannot name a folder" in moelab(folder, "run", "-q", "out.yaml", code=2), name
        write(folder, "out.yaml", DECODER.format(name="fine", length=64, domain="text") + 'variants: {"../x": {}}\n')
        assert "cannot name a variant" in moelab(folder, "run", "-q", "out.yaml", code=2)


main()
