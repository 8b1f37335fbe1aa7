"""Every experiment of the repository, and every template, is valid by the JSON Schema that `moelab schema` prints;
files with a mistake are not.

    schema_test.py MOELAB CONFIGS_FOLDER
"""

import json
import pathlib
import subprocess
import sys

import jsonschema
import yaml


def check_packages(file, domains):
    """A package that is not installed must be missed, also where others bring some files of the pattern: so one path
    of its domain is in a folder of the pattern, but no pattern itself."""
    for domain in domains:
        paths = domain["path"] if isinstance(domain["path"], list) else [domain["path"]]
        if "package" in domain and any("*" in pathlib.PurePath(p).name for p in paths):
            assert any("*" not in pathlib.PurePath(p).name for p in paths), (file, domain)


def main(moelab, configs):
    schema = json.loads(subprocess.run([moelab, "schema"], check=True, capture_output=True).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    corpus_schema = json.loads(subprocess.run([moelab, "schema", "--corpus"], check=True, capture_output=True).stdout)
    corpus_validator = jsonschema.Draft7Validator(corpus_schema)
    corpora = sorted((pathlib.Path(configs) / "corpora").glob("*.yaml"))
    assert corpora, "no corpora found"
    for path in corpora:
        corpus = yaml.safe_load(path.read_text(encoding="utf-8"))
        errors = [e.message for e in corpus_validator.iter_errors(corpus)]
        assert not errors, f"{path}: {errors}"
        assert not corpus_validator.is_valid({**corpus, "domain": []}), "a typo is valid"
        check_packages(path, corpus["domains"])

    files = sorted(p for p in pathlib.Path(configs).rglob("*.yaml") if "corpora" not in p.parts)
    assert files, "no experiments found"
    texts = {str(p): p.read_text(encoding="utf-8") for p in files}
    for name in ("minimal", "dense-vs-moe", "sweep", "scaling"):
        new = subprocess.run([moelab, "new", name], check=True, capture_output=True, text=True)
        texts[name] = new.stdout
    for path in files:
        check_packages(path, yaml.safe_load(texts[str(path)])["data"].get("domains", []))
    for name, text in texts.items():
        assert text.startswith("# yaml-language-server: $schema="), f"{name}: no modeline"
        errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(yaml.safe_load(text))]
        assert not errors, f"{name}: {errors}"

    def valid(path, value):
        document = yaml.safe_load(texts["dense-vs-moe"])
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return validator.is_valid(document)

    lr = ("train", "optimizer", "lr")
    for value in (0.1, "1e-4", "${env:LR,1e-3}"):
        assert valid(lr, value), value
    for value in ("fast", -1, [1], None, True):
        assert not valid(lr, value), value
    for value in (1000, "3_000_000", "3e6"):
        assert valid(("train", "max_tokens"), value), value
    for value in (0, 1.5, "many"):
        assert not valid(("train", "max_tokens"), value), value
    assert not valid(("train", "max_tokes"), 3)
    assert not valid(("model", "kind"), "decodr")
    assert not valid(("model", "ffn"), {"kind": "moe", "d_ff": 3})
    assert valid(("model", "ffn"), {"kind": "dense", "activation": "relu", "d_ff": 3})
    assert not valid(("model", "ffn"), {"kind": "dense", "activation": "rellu", "d_ff": 3})
    assert valid(("train", "grad_clip"), None)
    assert valid(("data", "tokenizer"), "byte")
    assert not valid(("varants",), {})
    print(f"{len(texts)} experiments are valid")


main(*sys.argv[1:])
