#!/usr/bin/python3
"""Names, lines and inlined calls: small programs are built in many ways, and what whyslow says of
every instruction is held against addr2line (binutils) and eu-addr2line (elfutils).

    symbols.py DUMP GROUP      GROUP: gcc, cxx, clang, rust, go, separate, split, static,
                               damaged, debuginfod

An address counts as agreed when one of the two others says the same functions and the same
lines. Where they say less (they know no stubs; neither reads all that newer compilers write)
or call the same thing otherwise (C++ without arguments, see same_name) that is said below.
"""

import collections
import http.server
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

C_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
static int calls; __attribute__((cold, noinline)) static void complain(int x) { printf("%d", x); }
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + rand(); }
static inline __attribute__((always_inline)) int middle(int x)
{
    return inner(x) ^ inner(x + 1);
}
__attribute__((noinline)) int outer(int x)
{
    calls++;
    if (__builtin_expect(x < 0, 0)) {
        complain(x);
        calls *= x;
    }
    return middle(x) + 1;
}
static __attribute__((noinline)) int recurse(int n, int step)
{
    return n <= 0 ? step : recurse(n - step, step) + outer(n);
}
__attribute__((weak)) int weak_one(int x) { return x + 7; }
int strong_one(int x) __attribute__((alias("weak_one")));
int main(int argc, char **argv)
{
    (void)argv;
    printf("%d %d\n", recurse(argc * 5, 1), strong_one(calls));
    return 0;
}
"""
CXX_SOURCE = r"""
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>
namespace {
struct Hidden { int v; int get() const { return v * 3; } };
template <class T> T twice(T x) { return x + x; }
__attribute__((noinline)) int helper(const std::string &s) { return (int)s.size(); }
}
namespace space {
class Shape { public: virtual ~Shape() {} virtual double area() const = 0; int id = twice(4); };
class Square : public Shape {
    double s;
public:
    Square(double x) : s(x) {}
    double area() const override { return s * s; }
};
}
static int run(const std::vector<int> &v, const std::function<int(int)> &f)
{
    int s = 0;
    for (int x : v) s += f(x);
    return s;
}
int main(int argc, char **argv)
{
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < argc + 10; i++) m[std::to_string(i)].push_back(i);
    std::vector<int> v;
    for (auto &p : m) v.insert(v.end(), p.second.begin(), p.second.end());
    std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
    Hidden h{argc};
    struct Local { int x; int go() { return x + 1; } } local{argc};
    std::cout << run(v, [&](int x) { return x + h.get() + local.go(); }) << helper(argv[0]);
    space::Square sq(2);
    std::cout << sq.area() << sq.id << "\n";
    try { if (argc > 5) throw std::string("x"); } catch (std::string &e) { std::cout << e; }
}
"""
RUST_SOURCE = r"""
use std::collections::HashMap;
mod deep {
    pub struct P { pub x: u64 }
    impl P {
        #[inline(always)]
        pub fn step(&self) -> u64 { self.x.wrapping_mul(31) }
        #[inline(never)]
        pub fn run(&self, n: u64) -> u64 { (0..n).map(|i| i ^ self.step()).sum() }
    }
}
fn main() {
    let mut m: HashMap<String, u64> = HashMap::new();
    for a in std::env::args() { *m.entry(a).or_insert(0) += 1; }
    let p = deep::P { x: m.len() as u64 };
    println!("{}", p.run(7));
}
"""
GO_SOURCE = r"""
package main
import ("fmt"; "os"; "sort")
func small(x int) int { return x*3 + 1 }
//go:noinline
func work(n int) int { t := 0; for i := 0; i < n; i++ { t += small(i) }; return t }
func main() {
    v := []string{"a", "c", "b"}
    sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
    fmt.Println(work(len(os.Args)+5), v)
}
"""

Level = collections.namedtuple("Level", "name file line")


def sh(*args, **more):
    return subprocess.run(list(map(str, args)), check=True, capture_output=True, text=True,
                          errors="replace", **more).stdout


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(77)


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def check(truth, text):
    if not truth:
        fail(text)


class Dump:
    """What whyslow says of addresses."""

    def __init__(self, dump, image, addresses, *options, env=None, made_up=False):
        text = "".join(f"{a:x}\n" for a in addresses)
        ran = subprocess.run([dump, *options, str(image)], input=text, capture_output=True,
                             text=True, errors="replace", check=False,
                             env={**os.environ, **(env or {})})
        self.status, self.error = ran.returncode, ran.stderr
        self.at, self.linkage, self.start, self.notes, self.source = {}, {}, {}, [], ""
        levels = None
        for line in ran.stdout.split("\n"):
            if re.fullmatch("0x[0-9a-f]{16}", line):
                levels = self.at.setdefault(int(line, 16), [])
            elif line.startswith("source: "):
                self.source = line[8:]
            elif line.startswith("note: "):
                self.notes.append(line[6:])
            elif line.startswith("error: "):
                self.error = line
            elif line:
                name, linkage, place, declared, extent = line.split("\t")
                # From the unwind table, with the image's own name: others have nothing there.
                if re.search(r"\+0x[0-9a-f]+$", name) and not made_up:
                    continue
                file, _, number = place.rpartition(":")
                levels.append(Level(name, file, int(number)))
                self.linkage[name] = linkage
                self.start[name] = int(extent.split("+")[0], 16)

    def named(self, name):
        return [a for a, levels in self.at.items() if any(l.name == name for l in levels)]


def instructions(image):
    """Address to mnemonic, and to the label that objdump prints (it knows stubs)."""
    mnemonics, labels, label = {}, {}, ""
    for line in sh("objdump", "-d", "--no-show-raw-insn", image).split("\n"):
        head = re.match(r"[0-9a-f]+ <(.*)>:$", line)
        if head:
            label = head.group(1)
        found = re.match(r" *([0-9a-f]+):\t?(.*)", line)
        if found:
            address = int(found.group(1), 16)
            mnemonics[address] = found.group(2)
            labels[address] = label
    return mnemonics, labels


def others(tool, image, addresses):
    """The same from addr2line or eu-addr2line."""
    text = "".join(f"{a:#x}\n" for a in addresses)
    # eu-addr2line ends with 1 when it does not know one of them.
    out = subprocess.run([tool, "-a", "-f", "-i", "-C", "-e", str(image)], input=text, text=True,
                         capture_output=True, errors="replace", check=False).stdout.split("\n")
    at, i, levels = {}, 0, None
    while i + 1 < len(out):
        if re.fullmatch("0x[0-9a-f]+", out[i]):
            levels = at.setdefault(int(out[i], 16), [])
            i += 1
            continue
        if not out[i]:
            i += 1
            continue
        name = out[i].split(" inlined at ")[0]
        place = re.sub(r" \(discriminator.*", "", out[i + 1])
        found = re.match(r"(.*?):(\d+|\?)(:\d+)?$", place)
        file, line = (found.group(1), found.group(2)) if found else ("??", "0")
        line = 0 if line == "?" else int(line)
        # Without a line, binutils gives the file of the nearest STT_FILE symbol: a guess.
        unknown = file == "??" or file.endswith("<artificial>") or line == 0
        levels.append(Level(name, "" if unknown else os.path.normpath(file), line))
        i += 2
    return {a: [] if all(l.name == "??" for l in levels) else levels for a, levels in at.items()}


def bare(name):
    """Without arguments, template arguments, scopes and the compiler's suffixes."""
    name = re.sub(r" \[clone [^]]*\]|(\.(cold|part|constprop|isra|lto_priv|abi0|\d+))+$", "", name)
    depth, kept = 0, ""
    for i, c in enumerate(name):
        if c in "<([" and not kept.endswith("operator"):
            depth += 1
        elif c in ">)]" and depth > 0 and name[i - 1] != "-":
            depth -= 1
        elif depth == 0:
            kept += c
    return kept.strip().split("::")[-1].split(" ")[-1]


def same_name(ours, theirs, linkage):
    # For functions without a linkage name (static, anonymous, local) we put the scopes before
    # the name and they do not; C functions renamed by their header (open, open64) we show as
    # they are in the source.
    return ours == theirs or theirs == linkage or bare(ours) == bare(theirs)


def agree(ours, theirs, dump):
    if len(ours) != len(theirs):
        return False
    for depth, (mine, other) in enumerate(zip(ours, theirs)):
        file = os.path.normpath(mine.file) if mine.file and mine.line else ""
        # binutils calls the innermost one after the symbol when it has no linkage name.
        if not same_name(mine.name, other.name, dump.linkage.get(mine.name, "")) and not (
                depth == 0 and bare(other.name) == bare(ours[-1].name)):
            return False
        if mine.line != other.line or (file and other.file and file != other.file):
            return False
    return True


IDLE = re.compile(r"(cs |data16 |ds |rex\.W )*(nop|int3|xchg +%ax,%ax|hlt|ud2|add +%al,\(%rax\)|"
                  r"lea +0x0\(%[re]si)|^\(bad\)|^$|^ret$")


def compare(dump_exe, image, least_pct, *options, every=1, other=None, judges=("addr2line",
                                                                             "eu-addr2line")):
    mnemonics, labels = instructions(image)
    addresses = list(mnemonics)[::every]
    dump = Dump(dump_exe, image, addresses, *options)
    check(dump.status == 0, f"{image}: {dump.error}")
    opinions = [others(tool, other or image, addresses) for tool in judges]
    at = {l.split()[-1]: l.split()[0] for l in sh("nm", image).split("\n") if len(l.split()) == 3}
    agreed = stubs = padding = aliases = 0
    wrong = []
    for address in addresses:
        ours = dump.at[address]
        if any(agree(ours, opinion.get(address, []), dump) for opinion in opinions):
            agreed += 1
        elif ours and ours[0].name.endswith("@plt") and (labels[address].endswith("@plt") or
                                                         not any(o.get(address) for o in opinions)):
            stubs += 1  # of a static program not even objdump names them
        elif len(ours) == 1 and any(
                len(o.get(address, [])) == 1 and at.get(ours[0].name, "") == at.get(o[address][0].name)
                for o in opinions):
            aliases += 1  # free and __free: one address, and we take the name that people know
        elif not ours and IDLE.match(mnemonics[address]):
            padding += 1  # between functions; they name the function before it
        else:
            wrong.append((address, ours, [o.get(address) for o in opinions], mnemonics[address]))
    pct = 100 * (agreed + stubs + padding + aliases) / len(addresses)
    print(f"{pathlib.Path(image).name}: {len(addresses)} instructions, {pct:.3f}% explained: {agreed} "
          f"agreed, {stubs} stubs, {padding} padding, {aliases} aliases, {len(wrong)} not; source {dump.source}")
    if pct < least_pct:
        for row in wrong[:: max(1, len(wrong) // 8)][:8]:
            print("  ", hex(row[0]), row[3], "\n     ours  ", row[1], "\n     theirs", *row[2])
        fail(f"{image}: less than {least_pct}% explained")
    return dump


def build(folder, name, source, *command):
    path = folder / source[0]
    path.write_text(source[1])
    out = folder / name
    sh(*command, path, "-o", out, cwd=folder)
    return out


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            skip(f"there is no {tool} here")


C = ("known.c", C_SOURCE)
CXX = ("known.cc", CXX_SOURCE)


def chain_check(dump):
    """The chain that the source spells out: inner in middle in outer."""
    chains = [levels for levels in dump.at.values() if levels and levels[0].name == "inner"]
    check(chains, "no instruction of inner()")
    for levels in chains:
        check([l.name for l in levels] == ["inner", "middle", "outer"], f"chain {levels}")
        check([l.line for l in levels] == [5, 8, 17], f"lines {levels}")
        check(all(l.file.endswith("/known.c") for l in levels), f"files {levels}")


def group_gcc(dump, folder):
    for name, flags in {"o2": ["-O2"], "o0": ["-O0"], "v4": ["-O2", "-gdwarf-4"],
                        "v2": ["-O2", "-gdwarf-2", "-gstrict-dwarf"], "nopie": ["-O2", "-no-pie"],
                        "wide": ["-O2", "-gdwarf64"], "lto": ["-O2", "-flto"],
                        "sections": ["-O2", "-ffunction-sections", "-Wl,--gc-sections"]}.items():
        image = build(folder, name, C, "gcc", "-g", *flags)
        found = compare(dump, image, 100)
        check(found.source == "DWARF" and not found.notes, f"{found.source} {found.notes}")
        if name not in ("o0", "lto", "v2"):  # DWARF 2 does not know where calls were inlined
            chain_check(found)
    # The part that gcc moved away is the same function.
    cold = [l for l in sh("nm", folder / "o2").split("\n") if "outer.cold" in l]
    check(cold, "gcc made no cold part")
    address = int(cold[0].split()[0], 16)
    found = Dump(dump, folder / "o2", [address, *found.named("outer")[:1]])
    symbol = int([l for l in sh("nm", folder / "o2").split("\n") if l.endswith(" outer")][0].split()[0], 16)
    check(found.at[address][-1].name == "outer" and found.start["outer"] == symbol,
          f"cold part: {found.at[address]} {found.start}")


def group_stripped(dump, folder):
    """Without any symbol functions are still told apart, by the unwind table, and end where they end."""
    for name, flags in {"pie": [], "nopie": ["-no-pie"], "clang": None}.items():
        compiler = ["gcc", *flags] if flags is not None else ["clang-14"]
        image = build(folder, name, C, *compiler, "-O2", "-g")
        bare_image = folder / f"{name}.bare"
        sh("strip", "-s", image, "-o", bare_image)
        mnemonics, _ = instructions(image)
        spans = [(int(l.split()[0], 16), int(l.split()[1], 16)) for l in sh("nm", "-S", image).split("\n")
                 if len(l.split()) == 4 and l.split()[2] in "tT" and l.split()[3] not in ("_init", "_fini")]
        check(len(spans) >= 4, f"{spans}")
        found = Dump(dump, bare_image, list(mnemonics), made_up=True)
        for start, size in spans:
            inside = [a for a in mnemonics if start <= a < start + size]
            names = {found.at[a][0].name if found.at[a] else "" for a in inside}
            check(names == {f"{name}.bare+{start:#x}"}, f"{name}: {start:#x} is {names}")
        between = [a for a in mnemonics if IDLE.match(mnemonics[a]) and "nop" in mnemonics[a]
                   and not any(b <= a < b + n for b, n in spans)
                   and any(b + n == a for b, n in spans)]
        check(between and not any(found.at[a] for a in between), f"{name}: padding is named")


def group_cxx(dump, folder):
    need("g++")
    for name, flags in {"o2": ["-O2"], "o0": ["-O0"], "lto": ["-O2", "-flto"]}.items():
        # 99.5: gcc's link-time units give "<artificial>" for some files to the one and lines
        # without a file to the other.
        compare(dump, build(folder, name, CXX, "g++", "-g", *flags), 99.5)
    found = Dump(dump, folder / "o0", list(instructions(folder / "o0")[0]))
    for name in ("(anonymous namespace)::helper(std::__cxx11::basic_string<char, "
                 "std::char_traits<char>, std::allocator<char> > const&)",
                 "space::Square::area() const", "main"):
        check(found.named(name), f"no {name}")


def group_clang(dump, folder):
    need("clang-14", "llvm-addr2line-14")
    # binutils 2.40 and elfutils 0.188 do not read all of what clang writes as DWARF 5.
    judges = ("addr2line", "eu-addr2line", "llvm-addr2line-14")
    for name, flags in {"v4": ["-O2", "-gdwarf-4"], "v5": ["-O2", "-gdwarf-5"], "o0": ["-O0"],
                        "tables": ["-O2", "-gline-tables-only"]}.items():
        found = compare(dump, build(folder, name, C, "clang-14", "-g", *flags), 99.5,
                        judges=judges)
        if name in ("v4", "v5"):
            chain_check(found)
    compare(dump, build(folder, "x4", CXX, "clang++-14", "-g", "-O2", "-gdwarf-4"), 99.5,
            judges=judges)
    compare(dump, build(folder, "x5", CXX, "clang++-14", "-g", "-O2", "-gdwarf-5"), 99.5,
            judges=judges)


def group_rust(dump, folder):
    need("rustc")
    for name, flags in {"legacy": [], "v0": ["-C", "symbol-mangling-version=v0"]}.items():
        rustc = "/usr/bin/rustc" if os.path.exists("/usr/bin/rustc") else "rustc"
        if name == "v0" and "symbol-mangling-version" not in sh(rustc, "-C", "help"):
            flags = ["-Z", "unstable-options", "-C", "symbol-mangling-version=v0"]
        try:
            image = build(folder, name, ("known.rs", RUST_SOURCE), rustc, "-g", "-O", *flags)
        except subprocess.CalledProcessError:
            if name == "legacy":
                raise
            continue  # older compilers keep the new scheme for themselves
        compare(dump, image, 98, every=5)  # the others take long for what the library brings along
        found = Dump(dump, image, list(instructions(image)[0]))
        check(any(n in found.start for n in ("known::deep::P::run", "<known::deep::P>::run")),
              "no deep::P::run")
        check(any("run::{" in n for n in found.start), "the closure in run() is not seen inlined")


def group_go(dump, folder):
    need("go")
    go = "/usr/bin/go" if os.path.exists("/usr/bin/go") else "go"
    env = {**os.environ, "GOCACHE": os.path.join(os.environ.get("BUILD_ROOT", folder), "go-cache"), "GO111MODULE": "off", "GOFLAGS": ""}
    (folder / "known.go").write_text(GO_SOURCE)
    for name, flags in {"plain": [], "stripped": ["-ldflags=-s -w"]}.items():
        sh(go, "build", *flags, "-o", folder / name, folder / "known.go", env=env, cwd=folder)
    mnemonics, _ = instructions(folder / "plain")
    found = Dump(dump, folder / "plain", list(mnemonics))
    check(found.source == "DWARF", found.source)
    chains = [l for l in found.at.values() if l and l[0].name == "main.small"]
    check(chains and all([x.name for x in l] == ["main.small", "main.work"] and l[0].line == 4 and
                         l[1].line == 6 for l in chains), f"small is not inlined into work: {chains[:1]}")
    # Neither of the others reads the latest Go; where one does, it must agree.
    if "go1.19" in sh(go, "version"):
        compare(dump, folder / "plain", 98, every=9)
    bare_found = Dump(dump, folder / "stripped", list(instructions(folder / "stripped")[0]))
    check(bare_found.source == "Go's own table", bare_found.source)
    work = [l for l in bare_found.at.values() if l and l[0].name == "main.work"]
    lines = {l[0].line for l in work if l[0].file}  # what fills it up to the next has none
    check(lines == {4, 6} and all(l[0].file.endswith("known.go") for l in work if l[0].file),
          f"stripped Go: {lines} {work[:2]}")


def group_separate(dump, folder):
    whole = build(folder, "whole", CXX, "g++", "-g", "-O2", "-Wl,--build-id=sha1")
    mnemonics, _ = instructions(whole)
    truth = Dump(dump, whole, mnemonics).at
    root = folder / "root"
    root.mkdir()

    def same(image, *options, source):
        found = Dump(dump, image, mnemonics, *options)
        wrong = [a for a in mnemonics if found.at[a] != truth[a]]
        check(found.status == 0 and not wrong, f"{image}: {len(wrong)} differ, first "
              f"{found.at[wrong[0]] if wrong else found.error} {found.notes}")
        check(source in found.source, f"{image}: source {found.source}")

    debug = folder / "whole.debug"
    sh("objcopy", "--only-keep-debug", whole, debug)
    # By name and checksum, beside it; in .debug; under /usr/lib/debug of the root.
    linked = folder / "linked"
    sh("objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
       f"--add-gnu-debuglink={debug}", whole, linked, cwd=folder)
    same(linked, source="separate debug file " + str(debug))
    (folder / ".debug").mkdir()
    debug.rename(folder / ".debug" / "whole.debug")
    same(linked, source="/.debug/whole.debug")
    place = pathlib.Path(f"{root}/usr/lib/debug{folder}/whole.debug")
    place.parent.mkdir(parents=True)
    (folder / ".debug" / "whole.debug").rename(place)
    same(linked, "-r", root, source="/usr/lib/debug")
    # A file of that name with another checksum is not taken.
    (folder / "whole.debug").write_bytes(place.read_bytes() + b"x")
    found = Dump(dump, linked, mnemonics)
    check(found.source == "none" and any("stripped" in n for n in found.notes),
          f"wrong checksum: {found.source} {found.notes}")
    (folder / "whole.debug").unlink()
    # By build-id.
    stripped = folder / "stripped"
    sh("strip", "-o", stripped, whole)
    build_id = re.search("Build ID: ([0-9a-f]+)", sh("readelf", "-n", whole)).group(1)
    by_id = root / "usr/lib/debug/.build-id" / build_id[:2] / (build_id[2:] + ".debug")
    by_id.parent.mkdir(parents=True)
    # An absolute link inside a container leads to the container's own file.
    by_id.symlink_to(f"/usr/lib/debug{folder}/whole.debug")
    same(stripped, "-r", root, source=".build-id")
    other = build(folder, "other", C, "gcc", "-g", "-O2", "-Wl,--build-id=sha1")
    by_id.unlink()
    by_id.write_bytes(other.read_bytes())
    check("separate" not in Dump(dump, stripped, [0], "-r", root).source, "took another build's file")
    # Compressed sections, both ways.
    for how in ("zlib", "zlib-gnu"):
        packed = folder / how
        sh("objcopy", f"--compress-debug-sections={how}", whole, packed)
        same(packed, source="DWARF")
    # A symbol table packed into the image: names without lines.
    small = folder / "small"
    sh("objcopy", "--only-keep-debug", whole, small)
    sh("strip", "--strip-debug", small)
    sh("xz", small)
    mini = folder / "mini"
    sh("objcopy", f"--add-section=.gnu_debugdata={small}.xz", stripped, mini)
    found = Dump(dump, mini, mnemonics)
    check(".gnu_debugdata" in found.source, found.source)
    missed = [a for a, levels in truth.items() if levels and not found.at[a]]
    check(not missed, f"{len(missed)} without a name through .gnu_debugdata")
    check(any("helper" in n for n in found.start), "static functions have names")
    if shutil.which("dwz"):
        pair = folder / "pair"
        shutil.copy(whole, pair)
        shutil.copy(whole, folder / "pair2")
        sh("dwz", "-m", folder / "common.debug", pair, folder / "pair2")
        check(".gnu_debugaltlink" in sh("readelf", "-SW", pair), "dwz shared nothing")
        same(pair, source="DWARF")
        (folder / "common.debug").unlink()
        found = Dump(dump, pair, mnemonics)
        check(found.status == 0 and any("common.debug" in n for n in found.notes), str(found.notes))


def group_split(dump, folder):
    need("llvm-dwp-14")
    compilers = [("gcc", "g++")] + ([("clang", "clang++-14")] if shutil.which("clang++-14") else [])
    for maker, compiler in compilers:
        for version in (4, 5):
            path = folder / "known.cc"
            path.write_text(CXX_SOURCE)
            for split in (False, True):
                stem = f"{maker}{version}{'s' if split else ''}"
                sh(compiler, "-g", f"-gdwarf-{version}", "-O2", *(["-gsplit-dwarf"] if split else []),
                   "-c", path, "-o", folder / f"{stem}.o", cwd=folder)
                sh(compiler, folder / f"{stem}.o", "-o", folder / stem)
            mnemonics, _ = instructions(folder / f"{maker}{version}")
            whole = Dump(dump, folder / f"{maker}{version}", mnemonics).at
            stem = f"{maker}{version}s"
            check(Dump(dump, folder / stem, mnemonics).at == whole, f"{stem}: .dwo")
            # LLVM 14 never ends on what gcc writes as DWARF 5, and binutils 2.40 makes no file of any of these.
            packed = (maker, version) != ("gcc", 5)
            if packed:
                sh("llvm-dwp-14", "-e", folder / stem, "-o", folder / f"{stem}.dwp", cwd=folder)
            dwo = folder / f"{stem}.dwo"
            dwo.rename(folder / "away")
            if packed:
                check(Dump(dump, folder / stem, mnemonics).at == whole, f"{stem}: .dwp")
                (folder / f"{stem}.dwp").unlink()
            # Without either: names and lines still, and a note.
            found = Dump(dump, folder / stem, mnemonics)
            check(any(".dwo" in n for n in found.notes), f"{stem}: {found.notes}")
            lines = sum(1 for l in found.at.values() if l and l[0].line)
            check(lines > len(mnemonics) / 2, f"{stem}: {lines} lines of {len(mnemonics)}")
            print(f"{stem}: {len(mnemonics)} instructions the same{', packed too' if packed else ''}")


def group_static(dump, folder):
    image = build(folder, "static", C, "gcc", "-g", "-O2", "-static")
    found = compare(dump, image, 100, every=11)
    mnemonics, labels = instructions(image)
    chain_check(Dump(dump, image, [a for a in mnemonics if labels[a] == "outer"]))
    pie = build(folder, "pie", C, "gcc", "-g", "-O2", "-static-pie")
    mnemonics, labels = instructions(pie)
    chain_check(Dump(dump, pie, [a for a in mnemonics if labels[a] == "outer"]))
    check(found.source == "DWARF", found.source)


def group_damaged(dump, folder):
    """No damage crashes it, hangs it or makes it eat the machine."""
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    whole = build(folder, "whole", C, "gcc", "-g", "-O2")
    mnemonics, _ = instructions(whole)
    addresses = list(mnemonics)[::3]
    bytes_ = whole.read_bytes()
    sections = re.findall(r"\] (\.\S+) +\S+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", sh("readelf", "-SW", whole))
    dice = random.Random(4)
    target = folder / "damaged"
    ran = 0

    def survives(data, what):
        nonlocal ran
        ran += 1
        target.write_bytes(data)
        found = Dump(dump, target, addresses)
        if found.status not in (0, 1):
            shutil.copy(target, "/tmp/symbols-damaged")
            fail(f"{what}: status {found.status}: {found.error[-2000:]} (kept as /tmp/symbols-damaged)")

    for cut in (0, 1, 4, 63, 64, 65, 1000, len(bytes_) // 2, len(bytes_) - 1):
        survives(bytes_[:cut], f"cut at {cut}")
    for name, offset, size in sections:
        start, length = int(offset, 16), int(size, 16)
        if length == 0 or not re.match(r"\.(debug|sym|str|shstr|rela|dyn|note|plt)", name):
            continue
        for fill in (0x00, 0xff, 0x80):
            data = bytearray(bytes_)
            data[start:start + length] = bytes([fill]) * length
            survives(bytes(data), f"{name} filled with {fill:#x}")
        for _ in range(12):
            data = bytearray(bytes_)
            for _ in range(dice.randint(1, 40)):
                data[start + dice.randrange(length)] = dice.choice((0, 0xff, 0x7f, dice.randrange(256)))
            survives(bytes(data), f"{name} scattered")
    for _ in range(60):  # headers
        data = bytearray(bytes_)
        table = int.from_bytes(data[40:48], "little")
        for _ in range(dice.randint(1, 8)):
            at = dice.choice((dice.randrange(64), table + dice.randrange(len(data) - table)))
            data[at] = dice.randrange(256)
        survives(bytes(data), "headers scattered")
    print(f"{ran} damaged files survived")
    plain = folder / "text"
    plain.write_text("#!/bin/sh\n")
    found = Dump(dump, plain, [0])
    check(found.status == 1 and "not an ELF file" in found.error, found.error)


class Server(http.server.BaseHTTPRequestHandler):
    asked, served, hang = [], {}, threading.Event()

    def do_GET(self):
        Server.asked.append(self.path)
        if self.path in Server.served:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(Server.served[self.path])
        else:
            self.send_error(404)

    def log_message(self, *_):
        pass


def group_debuginfod(dump, folder):
    if not any(pathlib.Path("/usr/lib").glob("*/libdebuginfod.so.1")):
        skip("there is no libdebuginfod here")
    whole = build(folder, "whole", C, "gcc", "-g", "-O2", "-Wl,--build-id=sha1")
    stripped, debug = folder / "stripped", folder / "whole.debug"
    sh("strip", "-o", stripped, whole)
    sh("objcopy", "--only-keep-debug", whole, debug)
    build_id = re.search("Build ID: ([0-9a-f]+)", sh("readelf", "-n", whole)).group(1)
    path = f"/buildid/{build_id}/debuginfo"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    mnemonics, _ = instructions(whole)

    def env(name):
        return {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(folder / name),
                "HOME": str(folder), "no_proxy": "*"}

    found = Dump(dump, stripped, mnemonics, env=env("one"))
    check(found.status == 0 and not Server.asked, f"asked without leave: {Server.asked}")
    found = Dump(dump, stripped, mnemonics, "-d", env=env("two"))
    check(found.status == 0 and Server.asked == [path], f"{Server.asked} {found.error}")
    check(found.source == "none", found.source)
    Server.served[path] = debug.read_bytes()
    found = Dump(dump, stripped, mnemonics, "-d", env=env("three"))
    check("debuginfod" in found.source, f"{found.source} {found.notes} {found.error}")
    chain_check(found)
    # What lies in the cache may be another user's, and what a server sends of another build.
    if os.geteuid() == 0:
        for kept in (folder / "three").rglob("debuginfo"):
            os.chown(kept, 65534, 65534)
        found = Dump(dump, stripped, mnemonics, "-d", env=env("three"))
        check(found.source == "none" and any("another user" in n for n in found.notes), f"{found.source} {found.notes}")
    other = build(folder, "other", C, "gcc", "-g", "-O1", "-Wl,--build-id=sha1")
    Server.served[path] = other.read_bytes()
    found = Dump(dump, stripped, mnemonics, "-d", env=env("six"))
    check(found.source == "none" and any("another build" in n for n in found.notes), f"{found.source} {found.notes}")
    # A server that serves something else, and no server at all.
    Server.served[path] = b"<html>no such file</html>" * 10
    found = Dump(dump, stripped, mnemonics, "-d", env=env("four"))
    check(found.status == 0 and found.source == "none" and found.notes, found.source)
    found = Dump(dump, stripped, mnemonics, "-d", env={**env("five"), "DEBUGINFOD_URLS": ""})
    check(any("DEBUGINFOD_URLS" in n for n in found.notes), str(found.notes))
    server.shutdown()


def main():
    dump, group = sys.argv[1], sys.argv[2]
    need("objdump", "addr2line", "eu-addr2line", "gcc", "g++")
    os.environ.pop("DEBUGINFOD_URLS", None)
    with tempfile.TemporaryDirectory() as name:
        globals()["group_" + group](dump, pathlib.Path(name).resolve())
    print("ok")


if __name__ == "__main__":
    main()
