"""Reads report.html with parsers that nobody here wrote:  run_page.py RUN_PAGE CHECK

The run is made by hand (run_page.c), so that every number on the page is known.
"""

import base64
import hashlib
import html.parser
import json
import re
import subprocess
import sys

VOID = {"meta", "input", "br", "link", "img"}


class Page(html.parser.HTMLParser):
    """Elements in their order, the text of each, and whether all of them are closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open, [tag for tag, *_ in self.open]

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, [name for name, *_ in self.open][-3:])
        self.open.pop()

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def all(self, tag, **attrs):
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attrs.items()}
        return [(found, "".join(text)) for name, found, text in self.elements
                if name == tag and all(found.get(key) == value for key, value in wanted.items())]

    def one(self, tag, **attrs):
        found = self.all(tag, **attrs)
        assert len(found) == 1, (tag, attrs, len(found))
        return found[0]

    def text(self):
        return self.one("body")[1]


def page(tool, kind):
    ran = subprocess.run([tool, kind], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return Page(ran.stdout.decode())


def check_policy(tool):
    """Only the page's own script and style may run; nothing is fetched."""
    for kind in ("plain", "hostile", "nothing"):
        read = page(tool, kind)
        policy = read.one("meta", http_equiv="Content-Security-Policy")[0]["content"]
        script = [text for attrs, text in read.all("script") if "type" not in attrs]
        assert policy.startswith("default-src 'none'") and len(script) == 1
        for what, text in (("script", script[0]), ("style", read.one("style")[1])):
            hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"{what}-src 'sha256-{hashed}'" in policy, what
        for tag, attrs, _ in read.elements:
            assert not {"src", "style"} & attrs.keys(), (tag, attrs)
            assert not any(name.startswith("on") for name in attrs), (tag, attrs)
            assert re.fullmatch(r"#[a-z]+|flame-[a-z]+\.svg", attrs.get("href", "#a")), attrs


def check_hostile_names(tool):
    """Names cannot become markup: the page has the same elements whatever things are called."""
    plain, hostile = page(tool, "plain"), page(tool, "hostile")

    def shape(read):
        return [(tag, sorted(attrs)) for tag, attrs, _ in read.elements]
    assert shape(plain) == shape(hostile)
    text = hostile.text()
    for name in ("</script><script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "</details></main>",
                 "\\x1b[31m &amp; ' \\xff"):
        assert name in text, name
    for _, data in hostile.all("script", type_="application/json"):
        assert not re.search("[<>&\u2028\u2029\x00-\x1f]", data)


def check_screen(tool):
    """Tables and lists are those of the terminal; what is for machines or terminals is not shown."""
    read = page(tool, "plain")
    text = read.text()
    assert read.one("h1")[1] == "./app --size 10"
    assert ("dd", "stable: 1.2%") in [(tag, "".join(t)) for tag, a, t in read.elements if a.get("class") == "good"]
    cells = [cell for _, cell in read.all("td")]
    at = cells.index("parse (parse.c:41)")
    assert cells[at - 1:at + 2] == ["1", "parse (parse.c:41)", "480 ms"], cells
    assert "only" not in [word for word in re.findall(r"for (?:machines|terminals) (\w+)", text)]
    assert "n/a: no counters" in [item for _, item in read.all("li")]
    assert "measured in spite of a sanitizer" in [words for _, words in read.all("p", class_="warn")]
    order = [title for _, title in read.all("h2")]
    assert order == ["Findings", "Hotspots", "What to do first", "Hypotheses", "Flame graphs", "Timeline",
                     "How far to trust this"], order
    assert cells[cells.index("scan (scan.c:7)") + 1:][:3] == ["self CPU", "240 ms (230 to 250)", "25% (24 to 26)"], cells
    assert "whyslow report --callers f7 REC" in [code for _, code in read.all("code", class_="command")]
    assert "supports: 2,000 calls" in cells, "the ledger has what every angle says"


def check_findings(tool):
    """A finding opens to everything it rests on."""
    read = page(tool, "plain")
    found = read.all("details", class_="finding")
    assert [attrs["id"] for attrs, _ in found] == ["finding-1", "finding-2"]
    assert ["open" in attrs for attrs, _ in found] == [True, False]
    for words in ("2,000 fsyncs take 50% of the time", "append (journal.c:17)", "saves 480 ms (432 to 528)",
                  "50% of the wall time", "sampling supports: 12% of samples", "tracing rejects: no call",
                  "counting cannot say", "every record is synced recording.whyslow w12",
                  "the journal is opened with O_DSYNC", "whyslow io -- ./app", "sync once, in journal.c:17",
                  "after a crash the last records are missing", "whyslow compare ./app ./app.new",
                  "recording-io.whyslow", "whyslow io out/r1/recording-io.whyslow",
                  "whyslow waits --stack w12 out/r1/recording.whyslow", "impact", "2.00 times as fast", "5.00 ms"):
        assert words in found[0][1], (words, found[0][1])
    others = [text for _, text in read.all("details", class_="others")]
    assert others[0].startswith("1 dismissed") and "only 3 of them" in others[0], others
    assert others[1].startswith("1 not judged") and "only 3 of them" in others[1], others
    wrong = page(tool, "wrong-tool")
    assert "wrong tool here: 40% of the time was stolen" in wrong.text()
    assert "sync once" not in wrong.text(), "nothing is advised where changing code is the wrong tool"


def check_timeline(tool):
    """Lanes have the shares that are known; waits too short to be told are spread."""
    read = page(tool, "plain")
    lanes = [attrs["aria-label"] for attrs, _ in read.all("svg", viewbox="0 0 480 20")]
    assert lanes == ["critical path, running 50%, disk 50%", "main 100, running 50%, disk 50%",
                     "worker 101, running 50%, lock 50%"], lanes
    paths = [attrs["d"] for attrs, _ in read.all("path")]
    assert paths == ["M0 0h240v20h-240z", "M240 0h240v20h-240z"] * 2 + \
        ["M240 10h240v10h-240z", "M240 0h240v10h-240z", "M0 48L0 36L240 0L480 24L480 48z"], paths
    cells = [cell for _, cell in read.all("td")]
    at = cells.index("disk")
    assert cells[at:at + 4] == ["disk", "480 ms", "50.0%", "main 100"], cells[at:at + 7]
    assert "journal.txt" in cells[at + 4] and cells[at + 6] == "w12", cells[at:at + 7]
    split = [(attrs["class"], float(attrs["x"]), float(attrs["width"])) for attrs, _ in read.all("rect", height="24")]
    assert split == [("w0", 0, 500), ("w3", 500, 250), ("w10", 750, 250)], split
    # Each class has a colour: one that is added needs one, too.
    style = "".join(text for _, text in read.all("style"))
    assert all(f".w{number}" in style and f"--w{number}:" in style for number in range(11)), style
    assert "heap, up to ~3.91 KiB" in read.text(), "allocations are sampled"
    assert "running 480 ms 50%" in read.text() and "not seen 240 ms 25%" in read.text()


def check_graphs(tool):
    """A tab an axis; one that is n/a says why and has no data."""
    read = page(tool, "plain")
    assert [attrs["data-graph"] for attrs, _ in read.all("button", role="tab")] == ["cpu", "offcpu", "alloc", "io"]
    data = {attrs["id"]: json.loads(text) for attrs, text in read.all("script", type_="application/json")}
    assert list(data) == ["graph-cpu", "graph-offcpu", "graph-alloc"]
    assert all(graph["schema"] == "whyslow.flame/1" for graph in data.values())
    assert "disk: fsync of journal" in data["graph-offcpu"]["strings"]
    assert "n/a: not permitted here" in read.one("div", data_about="io")[1]
    assert "1,000 waits, 0 lost" in read.one("div", data_about="offcpu")[1]
    ids = [attrs["id"] for _, attrs, _ in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids)), "ids are one of a kind"
    for _, attrs, _ in read.elements:
        for name in ("aria-labelledby", "aria-controls"):
            assert name not in attrs or attrs[name] in ids, attrs


def check_nothing(tool):
    """A run of which nothing could be measured has a page that says so."""
    read = page(tool, "nothing")
    assert not read.all("script", type_="application/json")
    assert read.text().count("n/a: not permitted here") == 5, "four graphs and the timeline"
    assert "No suspicion is confirmed" in read.text() and not read.all("path")


def main():
    tool, name = sys.argv[1:3]
    globals()["check_" + name.replace("-", "_")](tool)


if __name__ == "__main__":
    main()
