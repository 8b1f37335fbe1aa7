"""The manual page: groff typesets it without a warning, and it names every command and option.

What there is comes from --help, which is another way to the parser than the page's."""

import os
import re
import subprocess
import sys

moelab = sys.argv[1]


def answer(*arguments):
    return subprocess.run([moelab, *arguments], check=True, capture_output=True, text=True).stdout


def typeset(page):
    """The page as plain text, and what was warned of."""
    command = ["groff", "-man", "-ww", "-Tutf8", "-rLL=100n"]
    done = subprocess.run(command, input=page, check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    text = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
    return text.replace("\u2212", "-").replace("\u2010", "-"), done.stderr


page = answer("man")
text, warnings = typeset(page)
assert warnings == "", warnings
assert typeset(page.replace(".SH OPTIONS", ".SH OPTIONS\n.nonsense"))[1] != "", "a wrong page passes"



def names_in(help_text, heading, pattern):
    """What a part of a help text lists."""
    part = help_text.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
    return re.findall(pattern, part, re.M)


def commands_below(*above):
    """Every command with its help, those below it after it."""
    for name in names_in(answer(*above, "--help"), "Subcommands", r"^  ([a-z]+) "):
        yield " ".join((*above, name)), answer(*above, name, "--help")
        yield from commands_below(*above, name)


commands = dict(commands_below())
assert len(commands) > 15 and "bench train" in commands, commands
sections = re.split(r"^   ([a-z]+(?: [a-z]+)?)$", text[text.index("COMMANDS"):text.index("EXIT STATUS")], flags=re.M)
assert sections[1::2] == list(commands), (sections[1::2], list(commands))
num_options = 0
for (command, help_text), section in zip(commands.items(), sections[2::2]):
    options = set(names_in(help_text, "Options", r"^  (?:-\w,)?(--[a-z-]+)")) - {"--help"}
    arguments = names_in(help_text, "Positionals", r"^  ([a-z_]+) ")
    missing = [name for name in (*options, *arguments) if name not in section]
    assert not missing, f"{command}: {missing}\n{section}"
    num_options += len(options)
assert num_options > 40, num_options
for variable in ("MOELAB_CACHE", "XDG_CACHE_HOME", "NO_COLOR"):
    assert variable in text
print(f"{len(commands)} commands, {num_options} options")
