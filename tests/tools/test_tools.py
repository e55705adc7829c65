#!/usr/bin/python3
"""Our own tools fail when they should: a check that never fails checks nothing."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

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
        # Asked what is missing it says that, installs nothing and is content.
        done = subprocess.run(["/bin/sh", str(script), "--missing", "build"], env={"PATH": str(bin_folder)},
                              capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split()) == (0, ["no-such-package-whyslow"]), done


def run_tests():
    loader = importlib.machinery.SourceFileLoader("run_tests", str(TOOLS / "run_tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


def report(found, texts, wrong=(), truth=False):
    """What run_tests prints of these cases, and its exit status."""
    module = run_tests()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = module.report([module.Case(*case) for case in found], texts, list(wrong), truth)
    return status, text.getvalue()


def results_are_counted_by_suite_and_closed_by_one_line():
    status, text = report([("unit", "base/vec", "1 - grows", "passed"), ("unit", "base/vec", "2 - ends", "passed"),
                           ("fault", "fault/kill", "", "passed")], {})
    assert status == 0 and text.splitlines()[-1] == "3 passed, 0 failed, 0 skipped", text
    assert "unit         1 tests: 2 passed, 0 failed, 0 skipped" in text, text
    assert report([], {})[0] == 1


def results_of_a_failed_case_have_its_output():
    status, text = report([("unit", "base/vec", "1 - grows", "failed"), ("fault", "fault/kill", "", "passed")],
                          {"base/vec": "not ok 1\n\nwhy\n", "fault/kill": "all well"})
    assert status == 1 and "FAILED   base/vec; 1 - grows\n  not ok 1\n  why\n" in text and "all well" not in text, text
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped", text


def results_skipped_are_red_unless_the_machine_is_the_limit():
    def skipped(reason):
        return report([("web", "web/one", "", "skipped"), ("web", "web/two", "", "passed")], {"web/one": reason})[0]

    assert skipped("SKIP: needs root to become nobody") == 0
    assert skipped("SKIP: no mount namespace: Operation not permitted") == 0
    assert skipped("SKIP: rustc is not installed") == 1
    assert skipped("SKIP: the machine is too busy to record anything") == 1
    assert skipped("SKIP: no BPF here: whyslow: this kernel has no ring buffers for BPF") == 0
    assert skipped("SKIP: no BPF here: whyslow: the kernel's verifier refuses the BPF program 'io'") == 1
    assert skipped("SKIP: chromium does not start here") == 1
    assert skipped("") == 1
    assert skipped("SKIP: needs root to become nobody\nSKIP: node is missing") == 1


def results_skipped_by_cmocka_are_no_failures():
    module = run_tests()
    text = "not ok 3 # SKIP needs_root\nnot ok 13 - other\n"
    for number, status in (("3", "skipped"), ("13", "failed"), ("1", "failed")):
        case = module.Case("unit", "base/vec", f"{number} - x", "failed")
        assert module.as_cmocka_means(case, text).status == status, number


def results_of_pages_need_a_browser_that_starts():
    """One that dies was a limit of the machine, and nothing that is drawn was tested."""
    code = "import browser; browser.is_ubuntu = lambda: {}; print(browser.unusable())"
    with tempfile.TemporaryDirectory() as folder:
        stub = pathlib.Path(tree(folder, {"chromium": "#!/bin/sh\nexit 1\n"})) / "chromium"
        stub.chmod(0o755)
        for ubuntu in (True, False):
            done = subprocess.run([sys.executable, "-c", code.format(ubuntu)], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1",
                                       "PYTHONPATH": str(TOOLS.parent / "tests/web")})
            assert (done.returncode == 0) == ubuntu, done
            assert ("this distribution has no browser" if ubuntu else "the browser ended") in done.stdout + done.stderr, done


def results_of_measurements_are_red_only_if_one_failed():
    held, failed, disturbed = "x\nheld\n", "x\nfailed: 3 s for 2 s\n", "x\nnot judged: steal 12%\n"
    quiet = [("truth", "truth/a", "", "passed"), ("truth", "truth/b", "", "skipped")]
    status, text = report(quiet, {"truth/a": held, "truth/b": disturbed}, truth=True)
    assert status == 0 and "measurements: 1 held, 0 failed, 1 not judged" in text, text
    assert "truth: truth/b: not judged: steal 12%" in text and text.endswith("1 passed, 0 failed, 1 skipped\n"), text
    status, text = report([*quiet, ("truth", "truth/c", "", "failed")],
                          {"truth/a": held, "truth/b": disturbed, "truth/c": failed}, truth=True)
    assert status == 1 and "measurements: 1 held, 1 failed, 1 not judged" in text, text
    # One that crashed after such a line has not held, whatever it said.
    assert "0 held, 1 failed" in report([("truth", "truth/a", "", "failed")], {"truth/a": held}, truth=True)[1]


def results_of_measurements_may_say_what_they_held_with():
    _, text = report([("truth", "truth/a", "", "passed")], {"truth/a": "held: 130 s\n"}, truth=True)
    assert "truth: truth/a: held: 130 s\n" in text and "1 held, 0 failed" in text, text


def results_of_what_the_build_has_last_come_last():
    module = run_tests()
    module.introspected = lambda build, what: [{"name": name, "priority": priority}
                                               for name, priority in (("a", -1), ("c", 0), ("b", 0))]
    assert module.in_order("build", {"a", "b", "c"}) == ["b", "c", "a"]


def results_that_are_missing_are_red():
    module = run_tests()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(tree(folder, {"tests/unit/test_vec.c": """
            /* cmocka_unit_test(one), */
            const struct CMUnitTest tests[] = {cmocka_unit_test(a), cmocka_unit_test_setup(b, f(1, 2)),
                fresh(c), // fresh(d),
            };"""}))
        tests = {"base/vec": "unit", "fault/kill": "fault"}

        def short(*names):
            return module.short([module.Case("", name, "1 - x" if "/vec" in name else "", "passed") for name in names],
                                tests, source)

        assert short("base/vec", "base/vec", "base/vec", "fault/kill") == []
        assert short("base/vec", "base/vec", "base/vec") == ["did not run: fault/kill"]
        assert short("base/vec", "base/vec", "fault/kill") == ["base/vec: 2 checks ran of 3 in test_vec.c"]
    assert report([("unit", "base/vec", "", "passed")], {}, ["did not run: fault/kill"])[0] == 1


def declared_tests_are_those_of_the_build():
    module = run_tests()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(tree(folder, {
            "tests/unit/test_vec.c": "", "tests/cli/help/run.sh": "", "fuzz/fuzz_dns.c": "",
            "tests/replay/cases.txt": "one\n", "tests/declared.txt": "fault/kill\nunwind/aarch64\n"}))
        whole = {"base/vec": "unit", "cli/help": "cli", "fuzz/dns": "fuzz", "replay/one": "replay",
                 "fault/kill": "fault", "unwind/aarch64": "unit"}
        assert module.compare(whole, source) == ([], [])
        for name in whole:
            less = {test: suite for test, suite in whole.items() if test != name}
            missing, undeclared = module.compare(less, source)
            assert len(missing) == 1 and name.split("/")[1] in missing[0] and not undeclared, (name, missing)
        assert module.compare({**whole, "fault/new": "fault"}, source) == ([], ["fault/new"])
        # A name that another suite has stands for nothing.
        assert module.compare({**whole, "cli/help": "web"}, source)[0] == ["cli: help"]


def results_are_read_whatever_a_test_prints():
    """A progress bar's escape characters once ended `make test` after everything had passed."""
    module = run_tests()
    with tempfile.TemporaryDirectory() as folder:
        junit = pathlib.Path(folder) / "junit.xml"
        junit.write_bytes(b'<a><testcase name="w:unit / base/one"><system-out>\x1b[K \x00 \xff</system-out>'
                          b'</testcase></a>')
        assert [case.test for case in module.cases(junit)] == ["base/one"]


def declared_tests_are_registered_once():
    rows = [{"name": name, "cmd": ["io.py", case], "env": {"TIMES": times}}
            for name, case, times in (("truth/a", "reads", "judged"), ("truth/b", "reads", "judged"),
                                      ("smoke/c", "reads", "not-judged"), ("truth/a", "other", "judged"))]
    assert run_tests().twice(rows) == ["truth/b", "truth/a"]


def tests_run_in(folder, missing, introspected, *args):
    """run_tests in a tree of its own, whose setup and meson say what they are told; meson configures for good."""
    source = pathlib.Path(tree(folder, {
        "tools/run_tests": (TOOLS / "run_tests").read_text(), "tests/declared.txt": "fault/kill\nfault/storm\n",
        "tools/setup": f"#!/bin/sh\necho {missing}\n",
        "bin/meson": "#!/bin/sh\necho \"$@\" >>\"$0.log\"\ncase $* in introspect*--tests*) cat <<'END'\n"
                     f"{json.dumps(introspected)}\nEND\n;; esac\n"}))
    for name in ("tools/run_tests", "tools/setup", "bin/meson"):
        (source / name).chmod(0o755)
    done = subprocess.run([sys.executable, str(source / "tools/run_tests"), str(source / "build"), *args],
                          text=True, check=False, capture_output=True,
                          env={**os.environ, "PATH": f"{source}/bin:/usr/bin:/bin"})
    log = source / "bin/meson.log"
    return done, log.read_text() if log.exists() else ""


def declared_tests_that_a_build_has_not_are_red_and_named():
    test = {"suite": ["whyslow:fault"], "depends": [], "cmd": [], "env": {}}
    with tempfile.TemporaryDirectory() as folder:
        done, asked = tests_run_in(folder, "", [{**test, "name": "fault/kill"}])
        assert done.returncode == 1 and "declared, but not in this build: fault/storm" in done.stdout, done
        assert done.stdout.endswith("0 passed, 1 failed, 0 skipped\n"), done
        assert "setup --reconfigure" in asked and "\ntest " not in asked, asked


def declared_tests_are_counted_in_a_clean_root():
    """Also of a `make test` that was ended: what had gone wrong by then is red, else it is not judged."""
    sys.path.insert(0, str(TOOLS.parent / "tests/tools"))
    import clean_root
    few, all_of_them = "building what 46 tests need\n", f"building what {clean_root.declared()} tests need …\n"
    assert "46 tests ran" in clean_root.wrong_count(few) and "46 tests ran" in clean_root.wrong_count(
        all_of_them + "cli  40 tests: 40 passed\nunit    6 tests: 60 passed\n")
    assert clean_root.wrong_count(all_of_them) is None and clean_root.wrong_count("setup: done\n") is None
    good, bad = (f"  1/905 whyslow:fault / fault/kill     {status}    0.10s\n" for status in ("OK ", "FAIL"))
    for text, until, status, words in ((good, -1, 77, "over in make test, after 1 tests of"), (bad, -1, 1, "fault/kill"),
                                       (few, -1, 1, "46 tests ran"), (good, 100, 1, "did not end within")):
        os.environ["JUDGE_UNTIL"] = str(time.time() + until)
        said, had = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(said):
                clean_root.cut_off("test", text)
        except SystemExit as ended:
            had = ended.code
        finally:
            del os.environ["JUDGE_UNTIL"]
        assert had == status and words in said.getvalue().splitlines()[-1], (had, said.getvalue())


def declared_prerequisites_that_are_missing_are_red_and_named():
    with tempfile.TemporaryDirectory() as folder:
        done, asked = tests_run_in(folder, "libcmocka-dev", [])
        assert done.returncode == 1 and "libcmocka-dev" in done.stdout and asked == "", done
        assert done.stdout.endswith("0 passed, 1 failed, 0 skipped\n"), done
        # Measurements start programs that no other test does: the list of groups that is asked for is the one of
        # 'make setup-truth'.
        groups = re.search(r"^setup-truth:\n\t@tools/setup (.*)$", (TOOLS.parent / "Makefile").read_text(), re.M)[1]
        done, _ = tests_run_in(folder, "$*", [], "--truth")
        assert re.findall(r"installs it\): (\S+)", done.stdout) == ["--missing", *groups.split()], done


def main():
    checks = [value for name, value in sorted(globals().items())
              if callable(value) and name.split("_")[0] in ("layers", "sizes", "setup", "results", "declared")]
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
