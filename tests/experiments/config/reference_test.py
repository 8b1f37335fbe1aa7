"""The tables of docs/experiment-file.md are those that `moelab schema --reference` prints.

    reference_test.py MOELAB docs/experiment-file.md            # fails where they differ
    reference_test.py MOELAB docs/experiment-file.md --update   # writes them anew
"""

import pathlib
import subprocess
import sys

BEGIN = "<!-- tables: written by tests/experiments/config/reference_test.py --update -->\n"


def main(moelab, page, *options):
    tables = subprocess.run([moelab, "schema", "--reference"], check=True, capture_output=True, text=True).stdout
    path = pathlib.Path(page)
    text = path.read_text(encoding="utf-8")
    head, begin, _ = text.partition(BEGIN)
    assert begin, f"{page} has no line {BEGIN}"
    expected = head + BEGIN + "\n" + tables
    if "--update" in options:
        path.write_text(expected, encoding="utf-8")
    elif text != expected:
        sys.exit(f"{page} is behind the fields; write its tables anew: {sys.argv[0]} {moelab} {page} --update")


main(*sys.argv[1:])
