"""report.html in a real browser:  run_page_in_browser.py RUN_PAGE

No error, no request but for the page itself, tabs by mouse and keyboard, findings that open, a
phone's width, dark and light. Skipped where there is no browser.
"""

import pathlib
import subprocess
import sys
import tempfile

import browser

SKIP = 77
SELECTED = "document.querySelector('[role=tab][aria-selected=true]').dataset.graph"


def equal(got, want):
    assert got == want, f"{got!r} instead of {want!r}"


def check_quiet(page, folder):
    """Neither errors nor requests, whatever things are called."""
    page.call("Network.enable")
    for path in sorted(folder.iterdir()):
        page.open(path)
        equal((path.name, page.problems()), (path.name, []))
        asked = {event["params"]["request"]["url"] for event in page.events
                 if event.get("method") == "Network.requestWillBeSent"}
        equal(asked - {path.resolve().as_uri(), "about:blank"}, set())
        equal(page.run("document.querySelectorAll('img').length"), 0)
        equal(page.run("[...document.querySelectorAll('script')].every("
                       "s => s.type || s === document.scripts[document.scripts.length - 1])"), True)


def middle(page, selector):
    return page.run(f"(() => {{ const e = document.querySelector('{selector}'); "
                    "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
                    "return [b.x + b.width / 2, b.y + b.height / 2]; })()")


def check_tabs(page, folder):
    page.open(folder / "plain.html")
    equal(page.run(SELECTED), "cpu")
    page.click(*middle(page, "#tab-offcpu"))
    equal(page.run(SELECTED), "offcpu")
    equal(page.run("location.hash"), "#graph=offcpu")
    shown = "[...document.querySelectorAll('.about')].filter(e => e.offsetParent).map(e => e.dataset.about)"
    equal(page.run(shown), ["offcpu"])
    page.key("ArrowRight")
    equal(page.run(SELECTED), "alloc")
    page.key("ArrowRight")
    equal(page.run(SELECTED), "io")
    equal(page.run("document.getElementById('viewer').offsetParent === null"), True)
    page.key("ArrowRight")
    equal(page.run(SELECTED), "cpu")
    equal(page.run("document.getElementById('viewer').offsetParent !== null"), True)
    page.key("/")
    page.type("BURN")
    equal(page.run("document.getElementById('status').textContent"), "1 found, 75.00% of all")
    page.open(folder / "plain.html", "graph=alloc&find=malloc")
    equal(page.run(SELECTED), "alloc")
    equal(page.run("document.getElementById('status').textContent"), "1 found, 75.00% of all")
    equal(page.problems(), [])


def check_findings(page, folder):
    page.open(folder / "plain.html")
    opened = "[...document.querySelectorAll('.finding')].map(e => e.open)"
    equal(page.run(opened), [True, False])
    page.click(*middle(page, "#finding-2 summary .title"))
    equal(page.run(opened), [True, True])
    page.run("document.querySelector('#finding-1 summary').focus()")
    page.key("Enter")
    equal(page.run(opened), [False, True])
    page.open(folder / "plain.html", "finding-2")
    equal(page.run(opened), [True, True])


def check_phone(page, folder):
    """Nothing is wider than the window: what is wide scrolls in its own box."""
    for width in (360, 390, 768):
        page.resize(width, 800)
        for name in ("plain.html", "hostile.html"):
            page.open(folder / name)
            assert page.run("document.documentElement.scrollWidth") <= width, (name, width)
    page.resize(1280, 800)


def check_modes(folder):
    """Words can be read in both modes (WCAG: 4.5)."""
    script = """(() => {
      const parts = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
      const lum = (c) => parts(c).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
      const back = (e) => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor; if (!c.endsWith(', 0)')) return c; }
        return 'rgb(255,255,255)'; };
      return Math.min(...[...document.querySelectorAll('p, h1, h2, h4, li, td, th, dt, dd, a, b, code, summary span')]
        .filter((e) => e.offsetParent && e.textContent.trim()).map((e) => {
          const [a, b] = [lum(getComputedStyle(e).color), lum(back(e))].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05); })); })()"""
    papers = []
    for dark in (False, True):
        with browser.Browser(dark=dark) as page:
            page.open(folder / "plain.html")
            least = page.run(script)
            assert least >= 4.5, (dark, least)
            papers.append(page.run("getComputedStyle(document.body).backgroundColor"))
    equal(papers, ["rgb(255, 255, 255)", "rgb(22, 23, 26)"])


def main():
    why = browser.unusable()
    if why:
        print(f"SKIP: {why}; the same promises are tested under node")
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ("plain", "hostile", "nothing", "wrong-tool"):
            (folder / f"{kind}.html").write_bytes(
                subprocess.run([sys.argv[1], kind], capture_output=True, check=True).stdout)
        with browser.Browser() as page:
            check_quiet(page, folder)
            check_tabs(page, folder)
            check_findings(page, folder)
            check_phone(page, folder)
        check_modes(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
