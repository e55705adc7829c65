#!/usr/bin/python3
"""Our own tools fail when they should: a check that never fails checks nothing."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(os.environ["SOURCE_ROOT"]) / "tools"


def tool(name, *args):
    done = subprocess.run([str(TOOLS / name), *args], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def tree(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def layers_fail_on_an_upward_include():
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"src/base/a.c": '#include "base/a.h"\n#include <stdio.h>\n',
                      "src/store/s.c": '#include "base/a.h"\n#include "model/m.h"\n',
                      "src/main.c": '#include "cmd/x.h"\n'})
        assert tool("check_layers", folder)[0] == 0
        tree(folder, {"src/base/b.c": '#include "store/s.h"\n'})
        status, text = tool("check_layers", folder)
        assert status == 1 and "src/base/b.c:1" in text, text


def layers_fail_on_an_unknown_folder_and_on_the_preload_library_reaching_out():
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"src/misc/a.c": ""})
        assert tool("check_layers", folder)[0] == 1
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"preload/a.c": '#include "format/r.h"\n'})
        assert tool("check_layers", folder)[0] == 0
        tree(folder, {"preload/b.c": '#include "base/arena.h"\n'})
        assert tool("check_layers", folder)[0] == 1


def sizes_fail_on_a_long_file_and_a_long_function():
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"src/a.c": "int f(void)\n{\n" + "    x;\n" * 70 + "}\n"})
        assert tool("check_sizes", folder)[0] == 0
        tree(folder, {"src/b.c": "int f(void)\n{\n" + "    x;\n" * 71 + "}\n"})
        status, text = tool("check_sizes", folder)
        assert status == 1 and "src/b.c:2" in text, text
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"src/a.h": "\n" * 801})
        assert tool("check_sizes", folder)[0] == 1


def setup_names_what_is_missing_without_touching_the_machine():
    with tempfile.TemporaryDirectory() as folder:
        tree(folder, {"tools/packages.txt": "build no-such-package-whyslow x\n"})
        script = pathlib.Path(folder) / "tools" / "setup"
        script.write_text((TOOLS / "setup").read_text())
        # A PATH without apt-get: the script can only say what it would install.
        bin_folder = pathlib.Path(folder) / "bin"
        bin_folder.mkdir()
        for name in ("dirname", "awk", "dpkg-query", "id", "env"):
            (bin_folder / name).symlink_to(f"/usr/bin/{name}")
        done = subprocess.run(["/bin/sh", str(script), "build"], env={"PATH": str(bin_folder)},
                              capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "no-such-package-whyslow" in done.stderr, done


def run_tests():
    loader = importlib.machinery.SourceFileLoader("run_tests", str(TOOLS / "run_tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


def results_of_a_failed_case_have_its_output():
    texts = {"whyslow:truth / truth/waits": "no\n", "whyslow:truth / truth/waits-lock": "one\n\ntwo\n",
             "whyslow:unit / base/array": "not ok 3\n"}
    output_of = run_tests().output_of
    assert output_of("whyslow:truth / truth/waits-lock", texts) == ["one", "two"]
    assert output_of("whyslow.whyslow:unit / base/array 3 - array_grows", texts) == ["not ok 3"]
    assert output_of("whyslow:truth / truth/other", texts) == ["it printed nothing"]


def results_are_read_whatever_a_test_prints():
    """A progress bar's escape characters once ended `make test` after everything had passed."""
    module = run_tests()
    with tempfile.TemporaryDirectory() as folder:
        junit = pathlib.Path(folder) / "junit.xml"
        junit.write_bytes(b'<a><testcase name="one"><system-out>\x1b[K \x00 \xff</system-out></testcase></a>')
        assert [case.get("name") for case in module.cases(junit)] == ["one"]


def results_of_measurements_are_forgiven_if_few_and_right_alone():
    module = run_tests()
    few = [f"whyslow:truth / truth/{number}" for number in range(module.MOST_UNSTABLE)]
    many = few + ["whyslow:fault / fault/one-more"]

    def forgiven(failed, stolen=0.0, passes=lambda test: True):
        return module.unstable(failed, stolen, passes)

    assert forgiven(few) == set(few)
    assert forgiven(few, passes=lambda test: test != "truth/0") == set(few[1:])
    assert forgiven([*few[1:], "whyslow:unit / base/array"]) == set()
    assert forgiven(many) == set() and forgiven(many, module.HELD_BACK) == set(many)
    assert forgiven([*many] * module.MOST_UNSTABLE_HELD_BACK, 0.5) == set()
    assert module.stolen_share((10, 1), (40, 11)) == 0.25 and module.stolen_share((1, 1), (1, 1)) == 0


def main():
    checks = [value for name, value in sorted(globals().items())
              if callable(value) and name.split("_")[0] in ("layers", "sizes", "setup", "results")]
    print(f"1..{len(checks)}")
    failed = 0
    for number, check in enumerate(checks, 1):
        try:
            check()
            print(f"ok {number} - {check.__name__}")
        except AssertionError as error:
            failed = 1
            print(f"not ok {number} - {check.__name__}\n# {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
