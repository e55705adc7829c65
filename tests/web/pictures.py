"""Reads pictures and pages with parsers that nobody here wrote:  pictures.py PICTURE BUNDLE CHECK

The trees are made by hand (picture.c); PICTURE writes them as SVG, as HTML and as what is in
them, so that every rectangle can be held against its node.
"""

import base64
import hashlib
import html.parser
import json
import math
import re
import subprocess
import sys
import tempfile
import pathlib
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
ROUNDING_PX = 0.011  # edges are rounded to a hundredth of a pixel


def picture(tool, tree, form):
    ran = subprocess.run([tool, tree, form], capture_output=True, check=False)
    assert ran.returncode == 0, (tree, form, ran.stderr)
    return ran.stdout


def frames_of(data):
    """Each frame: its lines of words, its rectangle, its label or None; in file order."""
    found = []
    for group in ET.fromstring(data).find(f".//{SVG}g[@id='frames']"):
        rect = group.find(f"{SVG}rect")
        text = group.find(f"{SVG}text")
        found.append({
            "lines": group.find(f"{SVG}title").text.split("\n"),
            "x": float(rect.get("x")), "y": float(rect.get("y")),
            "width": float(rect.get("width")), "height": float(rect.get("height")),
            "label": None if text is None else text.text, "class": group.get("class")})
    root, last = found[0], {-1: 0}
    for i, frame in enumerate(found):
        frame["depth"] = round(abs(frame["y"] - root["y"]) / root["height"])
        frame["parent"] = last[frame["depth"] - 1]
        last[frame["depth"]] = i
    return found


def preorder(nodes):
    """Nodes as a picture draws them: heaviest children first."""
    children = [[] for _ in nodes]
    for i, node in enumerate(nodes[1:], 1):
        children[node["parent"]].append(i)
    order, stack = [], [0]
    while stack:
        at = stack.pop()
        order.append(at)
        stack += sorted(children[at], key=lambda i: (nodes[i]["total"], -i))
    return order


class Page(html.parser.HTMLParser):
    """Elements in order, texts of scripts, styles and cells."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.styles, self.cells, self.policy = [], [], [], [], ""
        self.into = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        into = {"script": self.scripts, "style": self.styles, "td": self.cells}.get(tag)
        if into is not None:
            into.append("")
            self.into = into

    def handle_endtag(self, tag):
        if tag in ("script", "style", "td"):
            self.into = None

    def handle_data(self, data):
        if self.into is not None:
            self.into[-1] += data


def page_data(page):
    index = [i for i, (tag, attrs) in enumerate(page.elements)
             if tag == "script" and attrs.get("id") == "data"]
    assert len(index) == 1, "one element of data"
    return json.loads(page.scripts[0])


def check_rectangles(tool):
    """Every rectangle stands within its parent and says its node's share."""
    for form in ("flame", "icicle"):
        nodes = json.loads(picture(tool, "plain", "tree"))
        drawn = frames_of(picture(tool, "plain", form))
        narrow = [i for i, node in enumerate(nodes) if node["total"] < nodes[0]["total"] * 0.1 / 1180]
        order = [i for i in preorder(nodes) if i not in narrow]
        assert len(narrow) == 1 and len(drawn) == len(order), (len(drawn), len(order))
        taken = [0.0] * len(drawn)
        for i, (frame, at) in enumerate(zip(drawn, order)):
            node, parent = nodes[at], drawn[frame["parent"]]
            assert frame["depth"] == node["depth"], frame
            assert frame["lines"][0] == (node["name"] or "all"), (frame, node)
            share = node["total"] / nodes[0]["total"]
            assert f", {share * 100:.2f}% of all, {node['count']:,} sample" in frame["lines"][1], frame
            assert f"{node['self'] / nodes[0]['total'] * 100:.2f}%" == frame["lines"][1].split()[-1]
            assert abs(frame["width"] - share * 1180) <= ROUNDING_PX, (frame, share)
            assert (frame["y"] > drawn[0]["y"]) == (form == "icicle") or i == 0, frame
            if i > 0:
                left = parent["x"] + taken[frame["parent"]]
                assert abs(frame["x"] - left) <= 1e-6, ("a gap or an overlap", frame)
                assert frame["x"] + frame["width"] <= parent["x"] + parent["width"] + 1e-6, frame
                taken[frame["parent"]] += frame["width"]
        assert all(t <= frame["width"] + 1e-6 for t, frame in zip(taken, drawn))
        words = "\n".join("\n".join(frame["lines"]) for frame in drawn)
        for word in ("src/balance.cc:203", "/usr/bin/app", "\nkernel", "\ninlined", "JIT-compiled",
                     "no symbol"):
            assert word in words, word


def check_labels(tool):
    """Labels are the beginning of the name and fit their rectangle."""
    for tree in ("plain", "hostile"):
        labelled = 0
        for frame in frames_of(picture(tool, tree, "flame")):
            columns = math.floor((frame["width"] - 6) / 7.225)
            if frame["label"] is None:
                assert columns < 3, frame
                continue
            labelled += 1
            assert columns >= 3, ("too narrow for a label", frame)
            wide = sum(2 if ord(letter) >= 0x2e80 else 1 for letter in frame["label"])
            assert wide <= columns, frame
            name = frame["lines"][0]
            assert frame["label"] == name or \
                frame["label"][-1] == "…" and name.startswith(frame["label"][:-1]), frame
        assert labelled >= 10


def check_readable_without_scripts(tool):
    root = ET.fromstring(picture(tool, "plain", "flame"))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert "ledger --year 2026 <books>: CPU time" in texts
    assert any("99.6% complete" in text for text in texts), "the honesty line"
    assert "Too narrow to draw: 1 frame, 0.00% of all together." in texts
    legend = ["".join(t.itertext()) for t in root.find(f".//{SVG}g[@id='legend']").iter(f"{SVG}text")]
    assert legend == ["program (hue by image)", "kernel", "inlined", "JIT-compiled", "no symbol"]
    for element in root.iter():
        for name in element.attrib:
            assert not name.lower().startswith("on") and "href" not in name, (element.tag, name)
    script = root.find(f"{SVG}script").text
    for word in ("eval", "Function(", "http:", "https:", "import"):
        found = script.replace("http://www.w3.org/", "")
        assert not re.search(rf"\b{re.escape(word)}", found), word


def check_hostile_names(tool):
    """Names cannot become markup, and what they hold is still to be seen."""
    data = picture(tool, "hostile", "flame")
    root = ET.fromstring(data)
    assert len(root.findall(f".//{SVG}script")) == 1
    names = [frame["lines"][0] for frame in frames_of(data)]
    for name in ("<script>alert(1)</script>", "]]>", "\"quotes\" 'and' &amp; entities",
                 "\\x1b[31mred\\x1b[0m", "\\x01\\x02\\x1f\\x7f", "\\xff\\xfe\\xc0\\xaf bytes",
                 "\\xef\\xbf\\xbf\\xef\\xbf\\xbe not characters",
                 "line one\\nline two\\r\\n\\ttabbed", "[unknown]", "nul\\x00inside",
                 "\\xe2\\x80\\xa8separators\\xe2\\x80\\xa9\\xe2\\x80\\xaereversed"):
        assert name in names, (name, names)
    assert max(len(name) for name in names) <= 1024, "a name of 100 KB is cut"
    page = Page(picture(tool, "hostile", "html").decode())
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2 and tags.count("title") == 1, tags
    assert not any(name.startswith("on") for _, attrs in page.elements for name in attrs)
    texts = page_data(page)["strings"]
    for name in ("<script>alert(1)</script>", "</title></g></svg><script>alert(2)</script>",
                 "\\x1b[31mred\\x1b[0m", "</script><!--", "\\xe2\\x80\\xa8separators"
                 "\\xe2\\x80\\xa9\\xe2\\x80\\xaereversed"):
        assert name in texts, name
    assert max(len(text) for text in texts) <= 1024
    assert "<script>alert(1)</script>" in page.cells
    raw = page.scripts[0]
    assert not re.search("[<>&\u2028\u2029\x00-\x1f]", raw), "the data could end its element"


def check_page_data(tool):
    """The page holds the tree: columns agree with each other and with the nodes."""
    nodes = json.loads(picture(tool, "plain", "tree"))
    page = Page(picture(tool, "plain", "html").decode())
    data = page_data(page)
    assert data["schema"] == "whyslow.flame/1" and data["unit"] == "ns" and data["diff"] is None
    frames, order = data["frames"], preorder(nodes)
    assert {len(column) for column in frames.values()} == {len(order)}
    for i, at in enumerate(order):
        node = nodes[at]
        assert (frames["depth"][i], frames["weight"][i], frames["self"][i], frames["count"][i]) == \
            (node["depth"], node["total"], node["self"], node["count"])
        name = data["strings"][data["functions"]["name"][frames["function"][i]]]
        assert name == (node["name"] or "all")
    assert {len(column) for column in data["functions"].values()} == {len(order) + 1}
    assert len(page.cells) == 6 * (len(nodes) - 1), "the machine's column is not shown"
    assert "2.29 s" in page.cells and "n/a: no debug information" in page.cells


def check_policy(tool):
    """Only the page's own script and style may run, by their hashes."""
    page = Page(picture(tool, "plain", "html").decode())
    want = {"script": page.scripts[1], "style": page.styles[0]}
    assert len(page.scripts) == 2 and len(page.styles) == 1
    assert page.policy.startswith("default-src 'none'")
    for kind, text in want.items():
        hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hashed}'" in page.policy, (kind, page.policy)
    for tag, attrs in page.elements:
        assert "src" not in attrs and "href" not in attrs and "style" not in attrs, (tag, attrs)


def check_differential(tool):
    """Red is more, blue is less, and the number stands in the label."""
    frames = {frame["lines"][0].split(" ", 1)[1]: frame
              for frame in frames_of(picture(tool, "diff", "flame"))}
    total, earlier = json.loads(picture(tool, "diff", "tree"))[0]["total"], 1937000000
    cases = {"ledger::Book::balance(ledger::Account const&)": (945, 1270),
             "ledger::Tokenizer::next()": (450, 270), "py::report.render": (306, 0)}
    step = {"f%d" % (28 + i): i for i in range(-5, 6)}
    for name, (now, before) in cases.items():
        frame = frames[name]
        change = now * 1e6 / total * 100 - before * 1e6 / earlier * 100
        assert frame["lines"][0] == f"{change:+.2f}% {name}", (frame, change)
        want = f"before: {before * 1e6 / earlier * 100:.2f}% of all" if before else "before: not there"
        assert frame["lines"][2] == want, frame
        assert step[frame["class"].split()[1]] == round(change / 30 * 5), (frame, change)
    assert frames["all"]["lines"][0] == "+0.00% all"
    for frame in frames.values():
        if frame["label"] and frame["label"][-1] == "…":
            assert "%" in frame["label"], ("a number was cut", frame)
    root = ET.fromstring(picture(tool, "diff", "flame"))
    words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert "-30% less" in words and "+30% more" in words and "percentage points" in words
    assert "Not drawn, since gone: 1 path that took 3.98% before; the largest is lookup<slow>" in words
    work = frames_of(picture(tool, "work", "flame"))
    change = (total - earlier) / earlier * 100
    assert work[0]["lines"][0] == f"{change:+.2f}% all", work[0]
    work = " ".join("".join(text.itertext())
                    for text in ET.fromstring(picture(tool, "work", "flame")).iter(f"{SVG}text"))
    assert "now minus before, in percent of the earlier total." in work
    data = page_data(Page(picture(tool, "diff", "html").decode()))
    assert len(data["diff"]["change_pct"]) == len(data["frames"]["depth"])
    assert data["diff"]["limit_pct"] == 30 and data["diff"]["gone"] == 1


def check_size_is_bounded(tool):
    """A million nodes, or six thousand levels, give a file a browser can hold."""
    svg = picture(tool, "large", "flame")
    assert len(svg) < 8 << 20, len(svg)
    assert len(frames_of(svg)) == 10000
    assert b"Too narrow to draw: 990,000 frames" in svg
    page = picture(tool, "large", "html")
    assert len(page) < 16 << 20, len(page)
    data = page_data(Page(page.decode()))
    assert len(data["frames"]["depth"]) == 100000 and data["left_out"]["frames"] == 900000
    # 9,999 names of 5,000 "<" and more: 4 MiB of them up to 1 KB, each "<" four letters, and
    # then 100 bytes each; in the page all share 16 MiB, each "<" six letters.
    wordy = picture(tool, "wordy", "flame")
    assert 8 << 20 < len(wordy) < 24 << 20, len(wordy)
    assert len(frames_of(wordy)) == 10000
    assert len(picture(tool, "wordy", "html")) < 48 << 20
    deep = picture(tool, "deep", "flame")
    assert b"Too narrow or beyond 1024 levels to draw: 4,978 frames" in deep
    assert max(frame["depth"] for frame in frames_of(deep)) == 1023
    assert max(page_data(Page(picture(tool, "deep", "html").decode()))["frames"]["depth"]) == 4095


def luminance(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_contrast(tool):
    """Every label can be read on every fill, in both modes (WCAG asks for 4.5; we for 6)."""
    style = ET.fromstring(picture(tool, "plain", "flame")).find(f"{SVG}style").text
    light, dark = (re.findall(r"\.f\d+ rect\{fill:(#\w{6})\}", part)
                   for part in style.split("@media", 1))
    assert len(light) == len(dark) == 35
    assert "text{fill:#111}" in style and "text{fill:#f5f5f5}" in style
    for color in light:
        assert contrast(color, "#111111") >= 6, color
    for color in dark:
        assert contrast(color, "#f5f5f5") >= 6, color


def check_nothing_to_draw(tool):
    for form in ("flame", "html"):
        ran = subprocess.run([tool, "empty", form], capture_output=True, check=False)
        assert ran.returncode == 1 and ran.stdout == b"", ran
        assert b"no samples" in ran.stderr


def check_same_twice(tool):
    for form in ("flame", "html"):
        assert picture(tool, "plain", form) == picture(tool, "plain", form)


def check_bundling(bundle):
    """What would end a script early, or would not run as one, is refused."""
    cases = {
        "export const a = '</scr' + 'ipt>';\n": None,
        "export const a = '</script>';\n": "would end it",
        "export const a = list[list[0]]>1;\n": "would end it",
        "export const a = '<!--';\n": "would end it",
        "export default 1;\n": "cannot bundle",
        "import { b } from './other.js';\n": "must be listed before",
    }
    with tempfile.TemporaryDirectory() as folder:
        module, out = pathlib.Path(folder, "module.js"), pathlib.Path(folder, "out.js")
        for text, refusal in cases.items():
            module.write_text(text)
            ran = subprocess.run([bundle, out, module], capture_output=True, text=True, check=False)
            assert (ran.returncode != 0) == bool(refusal), (text, ran.stderr)
            assert not refusal or refusal in ran.stderr, ran.stderr
        module.write_text("const twice = 1;\n")
        other = pathlib.Path(folder, "other.js")
        other.write_text("export function twice() {}\n")
        ran = subprocess.run([bundle, out, module, other], capture_output=True, text=True, check=False)
        assert ran.returncode != 0 and "declared in module.js too" in ran.stderr, ran.stderr


def main():
    tool, bundle, name = sys.argv[1:4]
    check = globals()["check_" + name.replace("-", "_")]
    check(bundle if name == "bundling" else tool)


if __name__ == "__main__":
    main()
