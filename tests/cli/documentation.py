#!/usr/bin/python3
"""The man pages, completions and installed files, read back by man, bash, zsh and fish."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WHYSLOW, BUILD = sys.argv[1:3]


def out(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def need(program):
    if not shutil.which(program):
        print(f"SKIP: {program} is not installed")
        sys.exit(77)


def check_man(name, folder):
    """man(1) reads the page without a warning and shows every option of the help."""
    page = folder / f"{name or 'whyslow'}.1"
    page.write_text(out(WHYSLOW, "help", "--man", *([name] if name else [])))
    shown = subprocess.run(["man", "--warnings=all", "-l", str(page)], capture_output=True, text=True,
                           env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}, check=True)
    assert shown.stderr == "", f"man complains about {name}: {shown.stderr}"
    text = re.sub(r"\s+", " ", shown.stdout)
    if name:
        for option in re.findall(r"--[a-z][a-z-]+", out(WHYSLOW, "help", name).split("Options:")[1].split("Examples:")[0]):
            assert option in text, f"man page of {name} lacks {option}"
        assert "EXIT STATUS" in text


def check_bash(folder, names):
    script = folder / "whyslow.bash"
    script.write_text(out(WHYSLOW, "help", "--completion", "bash"))

    def complete(*words):
        code = (f". {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
                "_whyslow; printf '%s\\n' \"${COMPREPLY[@]}\"")
        return out("bash", "-c", code).split()

    assert set(names) <= set(complete("whyslow", "''"))
    assert "--completion" in complete("whyslow", "help", "--c")
    assert complete("whyslow", "help", "--completion", "z") == ["zsh"]
    assert "doctor" in complete("whyslow", "help", "doc")


def check_zsh(folder):
    script = folder / "_whyslow"
    script.write_text(out(WHYSLOW, "help", "--completion", "zsh"))
    out("zsh", "-n", str(script))
    assert script.read_text().startswith("#compdef whyslow\n")


def check_fish(folder):
    script = folder / "whyslow.fish"
    script.write_text(out(WHYSLOW, "help", "--completion", "fish"))
    env = {**os.environ, "HOME": str(folder)}
    said = out("fish", "--no-config", "-c", f"source {script}; complete -C 'whyslow doc'", env=env)
    assert "doctor\t" in said, said
    said = out("fish", "--no-config", "-c", f"source {script}; complete -C 'whyslow help --completion f'", env=env)
    assert "fish" in said, said


def check_install(folder, names):
    target = folder / "stage"
    out("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", str(target))
    files = {p.name for p in target.rglob("*") if p.is_file()}
    wanted = {"whyslow", "whyslow.1", "_whyslow", "whyslow.fish", *(f"whyslow-{n}.1" for n in names)}
    assert wanted <= files, f"not installed: {wanted - files}"


def main():
    for program in ("man", "groff", "bash", "zsh", "fish"):
        need(program)
    names = out(WHYSLOW, "help", "--list").split()
    assert "doctor" in names and "help" in names
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name in [None, *names]:
            check_man(name, folder)
        check_bash(folder, names)
        check_zsh(folder)
        check_fish(folder)
        check_install(folder, names)


if __name__ == "__main__":
    main()
