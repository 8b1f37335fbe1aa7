"""Every C++ block of the pages on adding kinds that starts with a file name stands in that file of tests/consumer,
so that what the pages teach is built and run.

    docs_test.py ROOT            # fails where they differ
    docs_test.py ROOT --update   # writes the blocks anew
"""

import pathlib
import re
import sys

PAGES = {"adding-a-router.md": {"nearest_router.cpp", "main.cpp"}, "adding-an-expert.md": {"scaling_expert.cpp"}}
BLOCK = re.compile(r"```cpp\n// tests/consumer/(\S+)\n(.*?)```", re.DOTALL)


def main(root, *options):
    root = pathlib.Path(root)
    for page, expected in PAGES.items():
        path = root / "docs" / page
        text = path.read_text(encoding="utf-8")
        shown = {name for name, _ in BLOCK.findall(text)}
        assert shown == expected, f"{page} shows {shown}, not {expected}"
        current = BLOCK.sub(lambda m: f"```cpp\n// tests/consumer/{m[1]}\n"
                            + (root / "tests/consumer" / m[1]).read_text(encoding="utf-8") + "```", text)
        if "--update" in options:
            path.write_text(current, encoding="utf-8")
        elif text != current:
            sys.exit(f"{page} is not as the files that it shows; write it anew: {sys.argv[0]} {root} --update")


main(*sys.argv[1:])
