#!/usr/bin/python3
"""How a binary was built: a small program is built in every way that matters, and each
field of build_info is held against what was asked of the compiler.

    build_info.py DUMP GROUP      GROUP: gcc, clang, rust, go, split, system, time, damaged, script
"""

import concurrent.futures
import json
import os
import pathlib
import random
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
int table[64];
int other_sum(const int *values, int count);
int other_grow(int n, int (*step)(int));
static int square(int x) { return x * x; }
static __attribute__((noinline)) int bigger(int n) { printf("%d\n", n); return n + 1; }
static __attribute__((noinline)) int walk(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        table[i % 64] += square(i) + other_grow(i, bigger);
        sum += table[(i * 7) % 64];
    }
    return sum;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 3;
    int sum = walk(n) + other_sum(table, 64);
    printf("%d\n", sum);
    return sum == 42;
}
"""
OTHER = r"""
#include <stdio.h>
int other_sum(const int *values, int count);
int other_grow(int n, int (*step)(int));
int other_sum(const int *values, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    fflush(stdout);
    return sum;
}
int other_grow(int n, int (*step)(int))
{
    int result = n;
    for (int i = 0; i < 3; i++)
        result += step(result);
    return result;
}
"""
ASSEMBLER = """
.text
.globl spin
.type spin,@function
spin: .skip 20000, 0x90
 ret
.size spin,.-spin
.section .note.GNU-stack,"",@progbits
"""
RUST = """
#[inline(never)]
fn walk(values: &mut Vec<usize>, n: usize) -> usize {
    let mut sum = 0;
    for i in 0..n {
        let square = i * i;
        values.push(square);
        sum += values.iter().map(|v| v + 1).sum::<usize>();
    }
    sum
}
fn main() {
    let n = std::env::args().count();
    let mut values = Vec::new();
    println!("{}", walk(&mut values, n));
}
"""
GO = """
package main
import ("fmt"; "os")
func walk(n int) int { s := 0; for i := 0; i < n; i++ { s += i * i }; return s }
func main() { fmt.Println(walk(len(os.Args))) }
"""

NA = object()  # the field must be "n/a: …"


class Has:
    """The text must contain this."""

    def __init__(self, *parts):
        self.parts = parts

    def __repr__(self):
        return f"text with {self.parts}"


class Between:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __repr__(self):
        return f"{self.low} to {self.high}"


YES_OR_NA = object()  # the field may be unknown, but not False


def fits(got, want):
    if want is YES_OR_NA:
        return got is True or fits(got, NA)
    if want is NA:
        return isinstance(got, str) and got.startswith("n/a: ") and len(got) > 10
    if isinstance(want, Has):
        return isinstance(got, str) and all(part in got for part in want.parts)
    if isinstance(want, Between):
        return isinstance(got, (int, float)) and want.low <= got <= want.high
    return got == want and isinstance(got, bool) == isinstance(want, bool)


class Truth:
    def __init__(self, dump, folder):
        self.dump, self.folder = dump, folder
        self.cases, self.failed, self.passed = [], 0, 0
        (folder / "main.c").write_text(MAIN)
        (folder / "other.c").write_text(OTHER)
        (folder / "main.cc").write_text(MAIN.replace("#include <stdio.h>",
                                                     '#include <string>\n#include <iostream>\n'
                                                     '#include <cstdio>\nextern "C" {')
                                        .replace("int table[64];", "}\nint table[64];\nextern \"C\" {")
                                        .replace("static int square", "}\nstatic int square")
                                        .replace('printf("%d\\n", sum);',
                                                 "std::cout << std::to_string(sum);"))
        (folder / "spin.s").write_text(ASSEMBLER)
        (folder / "main.rs").write_text(RUST)

    def case(self, name, build, **want):
        """`build`: shell commands that leave ./out behind; run in a folder of the case's own."""
        self.cases.append((name, build, want))

    def read(self, path, **kwargs):
        return subprocess.run([self.dump, str(path)], capture_output=True, text=True, check=False,
                              timeout=600, **kwargs)

    def run_one(self, row):
        name, build, want = row
        place = self.folder / ("case-" + "".join(c if c.isalnum() else "_" for c in name))
        place.mkdir()
        env = dict(os.environ, M="../main.c", O="../other.c", CC=str(place))
        made = subprocess.run(["sh", "-euc", build], cwd=place, env=env, capture_output=True,
                              text=True, check=False)
        if made.returncode != 0:
            return name, [f"could not be built: {made.stderr.strip()[-400:]}"]
        ran = self.read(place / "out")
        if ran.returncode != 0:
            return name, [f"dump failed with {ran.returncode}: {ran.stderr[-600:]}"]
        got = json.loads(ran.stdout)
        return name, [f"{key}: got {got.get(key)!r}, wanted "
                      f"{'n/a' if value is NA else repr(value)} "
                      f"(because {got.get(key + '_because')!r})"
                      for key, value in want.items() if not fits(got.get(key), value)]

    def report(self, name, problems):
        if problems:
            self.failed += 1
            print(f"FAILED {name}")
            for problem in problems:
                print(f"    {problem}")
        else:
            self.passed += 1
            print(f"ok     {name}")

    def finish(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, problems in pool.map(self.run_one, self.cases):
                self.report(name, problems)
        print(f"{self.passed} right, {self.failed} wrong")
        return 1 if self.failed or not self.passed else 0


def group_gcc(t):
    base = dict(machine="x86_64", language="C", compiler=Has("GNU C"), kind="PIE", static=False,
                symbols=True, stripped=False, unwind_tables=True, debug_info=True, lto=False,
                debug_info_where="in the binary", split_debug=False, sanitizers="none",
                instrumented="no", dwarf_version=5, assertions=False, script=NA)
    for level, wanted, optimized in [("-O0", "-O0", False), ("", "-O0", False), ("-O", "-O1", True),
                                     ("-O1", "-O1", True), ("-O2", "-O2", True),
                                     ("-O3", "-O3", True), ("-Os", "-Os", True),
                                     ("-Og", "-Og", False), ("-Ofast", "-Ofast", True),
                                     ("-O0 -O2", "-O2", True)]:
        slow = wanted == "-O0"
        t.case(f"gcc {level or 'without -O'}", f"gcc -g {level} $M $O -o out", **base | dict(
            optimization=wanted, optimized=optimized, frame_pointers=slow,
            frame_pointer_pct=100 if slow else 0, build_id=Has("")))
    o2 = dict(optimization="-O2", optimized=True)
    t.case("gcc -fno-omit-frame-pointer", "gcc -g -O2 -fno-omit-frame-pointer $M $O -o out",
           **base | o2 | dict(frame_pointers=True, frame_pointer_pct=Between(90, 100)))
    t.case("gcc -flto", "gcc -g -O2 -flto $M $O -o out", **base | o2 | dict(lto=True))
    t.case("gcc -flto -O0", "gcc -g -O0 -flto $M $O -o out",
           **base | dict(lto=True, optimization="-O0", optimized=False))
    t.case("gcc -g1", "gcc -g1 -O2 $M $O -o out",
           **base | o2 | dict(debug_info_because=Has("-g1")))
    t.case("gcc -g, more than lines", "gcc -g -O2 $M $O -o out",
           **base | o2 | dict(debug_info_because=Has("variables")))
    t.case("gcc without -g", "gcc -O2 $M $O -o out",
           **base | dict(optimization=NA, optimized=NA, lto=NA, debug_info=False, dwarf_version=NA,
                         debug_info_where=NA, language=NA, compiler=Has("GCC: "), symbols=True))
    t.case("gcc -frecord-gcc-switches", "gcc -O2 -frecord-gcc-switches $M $O -o out",
           optimization="-O2", optimized=True, debug_info=False)
    t.case("gcc -gno-record-gcc-switches -O2",
           "gcc -g -O2 -gno-record-gcc-switches $M $O -o out",
           optimized=True, optimization="optimized, level not recorded", lto=NA)
    t.case("gcc -gno-record-gcc-switches -O0",
           "gcc -g -O0 -gno-record-gcc-switches $M $O -o out",
           optimized=False, optimization="not optimized, level not recorded")
    t.case("gcc -gdwarf-4", "gcc -g -gdwarf-4 -O2 $M $O -o out", **base | o2 | dict(dwarf_version=4))
    t.case("gcc -gz", "gcc -g -gz -O2 $M $O -o out", **base | o2)
    t.case("gcc -no-pie", "gcc -g -O2 -no-pie -fno-pie $M $O -o out",
           **base | o2 | dict(kind="executable"))
    t.case("gcc -static", "gcc -g -O2 -static $M $O -o out",
           **base | o2 | dict(kind="executable", static=True, assertions=NA))
    t.case("gcc -static-pie", "gcc -g -O2 -static-pie $M $O -o out",
           **base | o2 | dict(kind="PIE", static=True, assertions=NA))
    t.case("gcc -shared", "gcc -g -O2 -shared -fPIC $O -o out",
           **base | o2 | dict(kind="shared library"))
    t.case("gcc -c", "gcc -g -O2 -c $M -o out", kind="object", optimization=NA, unwind_tables=NA)
    t.case("gcc mixed levels",
           "gcc -g -O0 -c $O -o o.o; gcc -g -O2 -c $M -o m.o; gcc m.o o.o -o out",
           optimization=Has("mixed", "-O0", "-O2", "% of the code"))
    t.case("gcc with a large assembler file",
           "gcc -g -c ../spin.s -o s.o; gcc -g -O2 $M $O s.o -o out",
           **base | o2 | dict(unwind_tables=False))
    t.case("gcc without unwind tables",
           "gcc -g -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables $M $O -o out",
           optimization="-O2", debug_info=True)
    t.case("gcc without any unwind tables",
           "gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables "
           "-falign-functions=256 $M $O -o out", unwind_tables=False)
    t.case("gcc stripped", "gcc -g -O2 $M $O -o out; strip out",
           **base | dict(symbols=False, stripped=True, debug_info=False, optimization=NA,
                         optimized=NA, lto=NA, language=NA, dwarf_version=NA, debug_info_where=NA,
                         compiler=Has("GCC")))
    t.case("gcc strip -g", "gcc -g -O2 $M $O -o out; strip -g out",
           symbols=True, stripped=False, debug_info=False)
    t.case("gcc without build-id", "gcc -g -Wl,--build-id=none $M $O -o out", build_id=NA)
    for sanitizer, name in [("address", "address"), ("undefined", "undefined"),
                            ("thread", "thread"), ("leak", "leak"),
                            ("address,undefined", "address, undefined")]:
        t.case(f"gcc -fsanitize={sanitizer}", f"gcc -g -O1 -fsanitize={sanitizer} $M $O -o out",
               sanitizers=name, instrumented="no", optimization="-O1")
    t.case("gcc -static-libasan", "gcc -g -fsanitize=address -static-libasan $M $O -o out",
           sanitizers="address")
    t.case("gcc asan, stripped", "gcc -fsanitize=address $M $O -o out; strip out",
           sanitizers="address")
    t.case("gcc -pg", "gcc -g -pg $M $O -o out", instrumented="gprof (-pg)", sanitizers="none")
    t.case("gcc -pg -static", "gcc -g -pg -static $M $O -o out", instrumented="gprof (-pg)")
    t.case("gcc --coverage", "gcc -g --coverage $M $O -o out", instrumented="gcov")
    t.case("gcc --coverage, stripped", "gcc --coverage $M $O -o out; strip out",
           instrumented="gcov")
    t.case("gcc with assert()",
           'printf "#include <assert.h>\\nint main(int c,char**v){(void)v;assert(c<9);}" >a.c; '
           "gcc -g a.c -o out", assertions=True)
    t.case("gcc with assert() and NDEBUG",
           'printf "#include <assert.h>\\nint main(int c,char**v){(void)v;(void)c;assert(c<9);}" '
           ">a.c; gcc -g -DNDEBUG a.c -o out", assertions=False)
    t.case("g++ -O2", "gcc -g -O2 -c $O -o o.o; g++ -g -O2 ../main.cc o.o -o out",
           optimization="-O2", language=Has("C++", "C"), compiler=Has("GNU C++", "GNU C1"))
    t.case("g++ without -g", "gcc -c $O -o o.o; g++ -O2 ../main.cc o.o -o out; strip out",
           optimization=NA, language="C++")


def group_clang(t):
    base = dict(machine="x86_64", language="C", compiler=Has("clang version 14"), symbols=True,
                unwind_tables=True, debug_info=True, sanitizers="none", instrumented="no",
                dwarf_version=5)
    cc = "clang-14"
    for level in ["-O1", "-O2", "-O3", "-Os", "-Oz", "-Og"]:
        t.case(f"clang {level}", f"{cc} -g {level} $M $O -o out",
               **base | dict(optimization="optimized, level not recorded", optimized=True,
                             frame_pointers=False))
    t.case("clang -O0", f"{cc} -g -O0 $M $O -o out",
           **base | dict(optimization="not optimized, level not recorded", optimized=False,
                         frame_pointers=True, frame_pointer_pct=100))
    t.case("clang -gdwarf-4 -O2", f"{cc} -g -gdwarf-4 -O2 $M $O -o out",
           **base | dict(optimized=True, dwarf_version=4))
    t.case("clang -gdwarf-4 -O0", f"{cc} -g -gdwarf-4 -O0 $M $O -o out",
           **base | dict(optimized=False, dwarf_version=4))
    for level, optimized in [("-O2", True), ("-O0", False), ("-Os", True), ("-Og", False)]:
        t.case(f"clang -grecord-command-line {level}",
               f"{cc} -g -grecord-command-line {level} $M $O -o out",
               **base | dict(optimization=level, optimized=optimized))
    t.case("clang -frecord-command-line, without -g",
           f"{cc} -frecord-command-line -O3 $M $O -o out", optimization="-O3", optimized=True)
    t.case("clang -fno-omit-frame-pointer", f"{cc} -g -O2 -fno-omit-frame-pointer $M $O -o out",
           **base | dict(frame_pointers=True, frame_pointer_pct=Between(90, 100), optimized=True))
    t.case("clang -g1 -O2", f"{cc} -g1 -O2 $M $O -o out",
           **base | dict(debug_info_because=Has("-g1"), optimized=True))
    t.case("clang -gline-tables-only -O0", f"{cc} -gline-tables-only -O0 $M $O -o out",
           **base | dict(optimization=NA, optimized=NA, debug_info_because=Has("-g1")))
    t.case("clang without -g", f"{cc} -O2 $M $O -o out", compiler=Has("clang version 14"),
           optimization=NA, debug_info=False)
    t.case("clang without LTO", f"{cc} -g -O2 $M $O -o out", lto=NA)
    if subprocess.run(["sh", "-c", "echo 'int main(void){return 0;}' | clang-14 -flto -x c - "
                       "-o /dev/null"], capture_output=True, check=False).returncode == 0:
        t.case("clang -flto", f"{cc} -g -O2 -flto $M $O -o out", lto=True, optimized=True)
    for sanitizer, name in [("address", "address"), ("undefined", "undefined"),
                            ("thread", "thread"), ("memory", "memory"), ("leak", "leak"),
                            ("address,undefined", "address, undefined"),
                            ("thread,undefined", "thread, undefined")]:
        t.case(f"clang -fsanitize={sanitizer}", f"{cc} -g -fsanitize={sanitizer} $M $O -o out",
               sanitizers=name, instrumented="no")
    t.case("clang asan, stripped", f"{cc} -fsanitize=address $M $O -o out; strip out",
           sanitizers="address")
    t.case("clang -fprofile-instr-generate", f"{cc} -fprofile-instr-generate $M $O -o out",
           instrumented="llvm profile")
    t.case("clang profile, stripped", f"{cc} -fprofile-instr-generate $M $O -o out; strip out",
           instrumented="llvm profile")
    t.case("clang -fsanitize-coverage",
           f"{cc} -fsanitize=address -fsanitize-coverage=trace-pc-guard $M $O -o out",
           sanitizers="address", instrumented="coverage for fuzzing")
    t.case("clang --coverage", f"{cc} --coverage $M $O -o out", instrumented="gcov")
    t.case("clang -pg", f"{cc} -g -pg $M $O -o out", instrumented="gprof (-pg)")


def group_rust(t):
    base = dict(language="Rust", compiler=Has("rustc version"), sanitizers="none",
                unwind_tables=True, symbols=True)
    t.case("rustc -g", "rustc -g ../main.rs -o out",
           **base | dict(optimized=False, optimization="not optimized, level not recorded",
                         debug_info=True))
    for level in ["1", "2", "3"]:
        t.case(f"rustc -g -C opt-level={level}", f"rustc -g -C opt-level={level} ../main.rs -o out",
               **base | dict(optimized=True, optimization="optimized, level not recorded",
                             debug_info=True))
    t.case("rustc -C debuginfo=1 -O", "rustc -C debuginfo=1 -O ../main.rs -o out",
           **base | dict(debug_info=True, optimized=True))
    t.case("rustc without -g: the library's debug information is not the program's",
           "rustc -O ../main.rs -o out", **base | dict(debug_info=False, optimization=NA))
    # Recent versions show it by units that share a module; those before leave no trace.
    t.case("rustc -C lto -O", "rustc -g -C lto=fat -O ../main.rs -o out",
           **base | dict(optimized=True, debug_info=True, lto=YES_OR_NA))
    t.case("rustc without LTO", "rustc -g -O ../main.rs -o out", **base | dict(lto=NA))
    t.case("rustc frame pointers", "rustc -g -O -C force-frame-pointers=yes ../main.rs -o out",
           language="Rust", frame_pointer_pct=Between(1, 100))
    t.case("rustc stripped", "rustc -O ../main.rs -o out; strip out",
           language="Rust", stripped=True, symbols=False, optimization=NA)
    t.case("rustc stripped of .comment", "rustc -O ../main.rs -o out; strip -R .comment out",
           language="Rust", stripped=True)


def group_go(t):
    (t.folder / "main.go").write_text(GO)
    (t.folder / "go.mod").write_text("module example.com/walk\n")
    go = "/usr/bin/go" if os.path.exists("/usr/bin/go") else "go"  # the distribution's has its library built
    build = f"cd ..; GOFLAGS=-mod=mod GO111MODULE=on {go} build -o \"$CC/out\""
    base = dict(language="Go", compiler=Has("go1."), frame_pointers=True, lto=False, symbols=True,
                debug_info=True, sanitizers="none")
    # The library is built once a build folder.
    os.environ["GOCACHE"] = os.path.join(os.environ.get("BUILD_ROOT", t.folder), "go-cache")
    if "HOME" not in os.environ:
        os.environ["HOME"] = str(t.folder)
    t.case("go build", f"{build} main.go",
           **base | dict(optimized=True, optimization="optimized (Go's default)"))
    t.case("go build -gcflags=-N", f"{build} -gcflags=-N main.go",
           **base | dict(optimized=False, optimization="not optimized (-gcflags=-N)"))
    t.case("go build -gcflags='-N -l'", f"{build} -gcflags='-N -l' main.go",
           **base | dict(optimized=False))
    t.case("go build -gcflags=-l", f"{build} -gcflags=-l main.go",
           **base | dict(optimized=True, optimization=Has("without inlining")))
    t.case("go build -ldflags='-s -w'", f"{build} -ldflags='-s -w' main.go",
           **base | dict(symbols=False, stripped=True, debug_info=False, optimized=True))


def group_split(t):
    keep = "gcc -g -O2 $M $O -o out; objcopy --only-keep-debug out out.debug; strip out; "
    link = keep + "objcopy --add-gnu-debuglink=out.debug out; "
    here = dict(stripped=True, symbols=True, debug_info=True, split_debug=True, optimization="-O2",
                language="C", debug_info_where=Has("out.debug"))
    t.case("debuglink beside the binary", link, **here)
    t.case("debuglink in .debug/", link + "mkdir .debug; mv out.debug .debug/", **here)
    t.case("debuglink to nothing", link + "rm out.debug", stripped=True, symbols=False,
           debug_info=False, split_debug=True, debug_info_because=Has("out.debug"))
    t.case("debuglink to another build",
           link + "gcc -g -O0 $M $O -o x; objcopy --only-keep-debug x out.debug",
           debug_info=False, symbols=False, debug_info_because=Has("checksum"))
    t.case("no link, and a file of that name beside it", keep, debug_info=False, split_debug=False)
    for compiler, name in [("gcc", "gcc"), ("clang-14", "clang")]:
        for version in ["4", "5"]:
            build = f"{compiler} -g -gdwarf-{version} -gsplit-dwarf -O2 -c $M -o m.o; " \
                    f"{compiler} -g -gdwarf-{version} -gsplit-dwarf -O2 -c $O -o o.o; " \
                    "gcc m.o o.o -o out; "
            t.case(f"{name} -gsplit-dwarf -gdwarf-{version}", build, optimized=True,
                   debug_info=True, split_debug=True, language="C", debug_info_where=Has(".dwo"),
                   dwarf_version=int(version))
            t.case(f"{name} -gsplit-dwarf -gdwarf-{version}, .dwo files gone",
                   build + "rm *.dwo", debug_info=False, split_debug=True, optimization=NA,
                   debug_info_because=Has("missing", ".dwo"))


def group_system(t):
    """What the distribution ships: stripped, and in Debian without frame pointers."""
    debian = "ID=debian" in pathlib.Path("/etc/os-release").read_text().split("\n")
    frames = dict(frame_pointers=False) if debian else {}
    for name in ["/bin/true", "/bin/bash", "/usr/bin/python3", "/usr/bin/git"]:
        if os.path.exists(name):
            t.case(f"system {name}", f"cp {name} out", **frames, unwind_tables=True, symbols=False,
                   stripped=True, sanitizers="none", instrumented="no")


def big_files():
    places = ["/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/llvm-14/bin",
              "/usr/lib/llvm-14/lib", "/usr/lib/go-1.19/bin"]
    found = [p for place in places if os.path.isdir(place) for p in pathlib.Path(place).iterdir()
             if p.is_file() and not p.is_symlink() and p.stat().st_size > 20 << 20]
    return sorted(found, key=lambda p: -p.stat().st_size)[:8]


def check_big(t):
    """CPU time, since others may use the machine: the reader's own limit (0.8 s) and start-up."""
    for path in big_files():
        t.read(path)  # once to have it in memory: the disk is not what is judged
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = t.read(path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        good = ran.returncode == 0 or "ELF file nor" in ran.stderr
        t.report(f"{path} in time", [] if good and took < 1.5 else
                 [f"status {ran.returncode}, {took:.1f} s, {ran.stderr[-300:]}"])


def judge_refusal(ran):
    """Any answer but a crash: facts, or an error that says what is wrong."""
    if ran.returncode == 0:
        return json.loads(ran.stdout) and None
    if ran.returncode == 1 and ran.stderr.startswith("error: ") and len(ran.stderr) > 30:
        return None
    return f"status {ran.returncode}: {ran.stderr[-800:]}"


def check_damaged(t):
    source = t.folder / "good"
    for build in ["gcc -g -O2 main.c other.c -o good", "gcc -g -gz -O2 main.c other.c -o good",
                  "gcc -g -O0 -gsplit-dwarf main.c other.c -o good", "gcc -g -c main.c -o good"]:
        subprocess.run(build, shell=True, cwd=t.folder, check=True)
        good = source.read_bytes()
        bad = t.folder / "bad"
        dice = random.Random(7)
        shoff = struct.unpack_from("<Q", good, 40)[0]
        mutants = [("cut to %d bytes" % n, good[:n]) for n in
                   [0, 1, 4, 15, 16, 63, 64, 100, len(good) // 4, len(good) // 2, shoff,
                    shoff + 1, len(good) - 1]]
        for i in range(60):
            data = bytearray(good)
            for _ in range(dice.choice([1, 4, 40])):
                data[dice.randrange(len(data))] = dice.randrange(256)
            mutants.append((f"flips {i}", bytes(data)))
        for i in range(40):  # only headers: where sizes and offsets stand
            data = bytearray(good)
            at = dice.choice([dice.randrange(16, 64), dice.randrange(shoff, len(data) - 8)])
            data[at:at + 8] = struct.pack("<Q", dice.choice([0xffffffffffffffff, 1 << 40, 0,
                                                             1 << 31, len(good)]))
            mutants.append((f"header {i}", bytes(data[:len(good)])))
        problems = []
        for name, data in mutants:
            bad.write_bytes(data)
            try:
                problem = judge_refusal(t.read(bad))
            except subprocess.TimeoutExpired:
                problem = "hangs"
            if problem:
                problems.append(f"{name}: {problem}")
        t.report(f"{len(mutants)} damaged files of '{build}'", problems[:5])


def refused(t, name, path, *parts):
    ran = t.read(path)
    missing = [part for part in parts if part not in ran.stderr]
    t.report(name, [f"status {ran.returncode}: {ran.stderr!r} lacks {missing}"]
             if ran.returncode != 1 or missing else [])


def check_refused(t):
    subprocess.run("gcc -g -O2 main.c other.c -o good", shell=True, cwd=t.folder, check=True)
    good = (t.folder / "good").read_bytes()
    path = t.folder / "bad"
    path.write_bytes(good[:len(good) // 2])
    refused(t, "a cut file is named so", path, "damaged", "cut off")
    data = bytearray(good)
    struct.pack_into("<Q", data, 40, 0)  # no section headers, as sstrip leaves it
    struct.pack_into("<HH", data, 60, 0, 0)
    path.write_bytes(data[:len(good) // 8])
    refused(t, "a cut file without sections is named so", path, "segment", "cut off")
    data = bytearray(good)
    struct.pack_into("<H", data, 60, 0xfff0)
    path.write_bytes(data)
    refused(t, "too many sections are named so", path, "damaged", "sections")
    data = bytearray(good)
    shoff, = struct.unpack_from("<Q", data, 40)
    struct.pack_into("<Q", data, shoff + 64 * 3 + 32, 1 << 50)
    path.write_bytes(data)
    refused(t, "a section of a petabyte is named so", path, "section 3", str(1 << 50))
    path.write_text("just text\n")
    refused(t, "a text file", path, "neither an ELF file nor a script")
    path.write_bytes(b"")
    refused(t, "an empty file", path, "neither an ELF file nor a script")
    refused(t, "a folder", t.folder, "directory")
    refused(t, "a file that is not there", t.folder / "nowhere", "No such file")
    os.mkfifo(t.folder / "pipe")
    refused(t, "a pipe", t.folder / "pipe", "not a regular file")
    refused(t, "a device", "/dev/zero", "not a regular file")


def check_scripts(t):
    python = os.path.realpath(shutil.which("python3", path="/usr/bin:/bin"))

    def script(name, line, *want, status=0, **fields):
        path = t.folder / "script"
        path.write_text(line)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        ran = t.read(path, env=dict(os.environ, PATH="/usr/bin:/bin"))
        problems = []
        if ran.returncode != status:
            problems.append(f"status {ran.returncode}: {ran.stderr}")
        elif status:
            problems = [f"{ran.stderr!r} lacks {part!r}" for part in want if part not in ran.stderr]
        else:
            got = json.loads(ran.stdout)
            fields = {"script": str(path)} | fields
            problems = [f"{k}: {got[k]!r}, wanted {v!r}" for k, v in fields.items() if got[k] != v]
            if os.path.realpath(got["path"]) != python:
                problems.append(f"path is {got['path']!r}, not {python!r}")
        t.report(name, problems)

    script("#! with a path", "#!/usr/bin/python3\nprint(1)\n", path="/usr/bin/python3")
    script("#! with blanks and an argument", "#! /usr/bin/python3 -u\n")
    script("#! through env", "#!/usr/bin/env python3\n")
    script("#! through env -S", "#!/usr/bin/env -S LANG=C python3 -u\n")
    script("#! through env -SNAME", "#!/usr/bin/env -Spython3 -u\n")
    script("#! without an end of line", "#!/usr/bin/python3")
    (t.folder / "inner").write_text("#!/usr/bin/python3\n")
    script("#! to another script", f"#!{t.folder}/inner\n")
    script("#! to nothing", "#!/nowhere/interpreter\n", "/nowhere/interpreter", status=1)
    script("#! through env to nothing", "#!/usr/bin/env no-such-program\n", "no-such-program",
           "PATH", status=1)
    script("#! with nothing behind it", "#!\n", "names no interpreter", status=1)
    script("#! to itself", f"#!{t.folder}/script\n", "deep", status=1)
    script("#! without end", "#!" + "x" * 10000, "longer than", status=1)


GROUPS = {
    "gcc": (["gcc", "g++", "strip"], group_gcc, None),
    "clang": (["clang-14", "strip"], group_clang, None),
    "rust": (["rustc", "strip"], group_rust, None),
    "go": (["go"], group_go, None),
    "split": (["gcc", "clang-14", "objcopy"], group_split, None),
    "system": ([], group_system, None),
    "time": ([], None, check_big),
    "damaged": (["gcc"], None, check_damaged),
    "refused": (["gcc"], None, check_refused),
    "script": ([], None, check_scripts),
}


def main():
    dump, group = sys.argv[1:3]
    tools, cases, checks = GROUPS[group]
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print(f"SKIP: {', '.join(missing)} not installed")
        return 77
    if os.uname().machine != "x86_64" and cases:
        print("SKIP: the expected answers are x86_64's")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        t = Truth(os.path.abspath(dump), pathlib.Path(folder))
        if cases:
            cases(t)
        if checks:
            checks(t)
        return t.finish()


if __name__ == "__main__":
    sys.exit(main())
