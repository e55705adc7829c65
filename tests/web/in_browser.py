"""Pictures in a real browser:  in_browser.py PICTURE

What the tests under node promise about a document made by hand is asked here of a browser's
own: events, focus, the policy, hash, dark mode. Skipped where there is no browser.
"""

import pathlib
import subprocess
import sys
import tempfile

import browser

SKIP = 77


def write(tool, folder):
    for tree, form, name in (("plain", "flame", "plain.svg"), ("plain", "html", "plain.html"),
                             ("hostile", "flame", "hostile.svg"), ("hostile", "html", "hostile.html"),
                             ("diff", "icicle", "diff.svg"), ("diff", "html", "diff.html"),
                             ("large", "flame", "large.svg"), ("large", "html", "large.html"),
                             ("deep", "html", "deep.html")):
        (folder / name).write_bytes(subprocess.run([tool, tree, form], capture_output=True,
                                                   check=True).stdout)


def equal(got, want):
    assert got == want, f"{got!r} instead of {want!r}"


def check_no_errors(page, folder):
    for path in sorted(folder.iterdir()):
        page.open(path)
        equal((path.name, page.problems()), (path.name, []))


def check_svg(page, folder):
    page.open(folder / "plain.svg")
    status = "document.querySelector('[role=status]').textContent"
    page.key("/")
    page.type("MEM")
    equal(page.run(status), "2 found, 13.11% of all")
    equal(page.run("document.querySelectorAll('.hit').length"), 2)
    page.key("Escape")
    equal(page.run(status), "")
    x, y = page.run("(() => { const b = [...document.querySelectorAll('.r')].find(g => g.querySelector("
                    "'title').textContent.startsWith('clone3')).getBoundingClientRect(); "
                    "return [b.x + 5, b.y + 5]; })()")
    page.click(x, y)
    equal(page.run(status), "zoomed into clone3")
    zoomed = page.run("location.hash")
    assert zoomed.startswith("#zoom="), zoomed
    page.key("ArrowUp")
    focused = "document.activeElement.querySelector('title').textContent.split('\\n')[0]"
    equal(page.run(focused), "start_thread")
    page.key("Enter")
    equal(page.run(status), "zoomed into start_thread")
    page.key("Escape")
    equal(page.run(status), "")
    page.key("Tab", modifiers=8)  # backwards: the search box stands before the frames
    equal(page.run("document.activeElement.tagName"), "input")
    page.key("Tab")
    equal(page.run(focused), "start_thread")
    page.open(folder / "plain.svg", zoomed[1:])
    equal(page.run(status), "zoomed into clone3")
    page.resize(420, 700)
    assert page.run("Math.max(...[...document.querySelectorAll('.r rect, text')].map("
                    "e => e.getBoundingClientRect().right))") <= 420
    page.resize(1280, 800)
    equal(page.problems(), [])


def check_page(page, folder):
    page.open(folder / "plain.html")
    text = "document.getElementById('%s').textContent"
    page.key("/")
    page.type("LEDGER::book")
    equal(page.run(text % "status"), "2 found, 70.12% of all")
    page.key("Escape")
    equal(page.run("document.activeElement.id"), "canvas")
    page.key("ArrowUp")
    equal(page.run(text % "frame-name"), "_start")
    page.key("Enter")
    equal(page.run(text % "status"), "zoomed into _start")
    assert "level 2: _start" in page.run(text % "live")
    hashed = page.run("location.hash")
    page.key("Escape")
    equal(page.run(text % "status"), "")
    box = page.run("(() => { const b = document.getElementById('canvas').getBoundingClientRect(); "
                   "return [b.left, b.top, b.width, b.height]; })()")
    page.move(box[0] + box[2] - 5, box[1] + box[3] - 27)
    equal(page.run(text % "frame-name"), "clone3")
    page.click(box[0] + box[2] - 5, box[1] + box[3] - 27)
    equal(page.run(text % "status"), "zoomed into clone3")
    page.run("document.querySelector('[data-view=inverted]').click()")
    equal(page.run("location.hash"), "#view=inverted")
    page.run("document.querySelectorAll('#hotspots th button')[1].click()")
    equal(page.run("document.querySelector('#hotspots tbody tr').cells[1].textContent"), "420 ms")
    page.open(folder / "plain.html", hashed[1:])
    equal(page.run(text % "status"), "zoomed into _start")
    equal(page.problems(), [])


def check_policy(page, folder):
    """A script that gets into the page does not run."""
    page.open(folder / "plain.html")
    page.run("{ const s = document.createElement('script'); s.textContent = 'window.ran = 1'; "
             "document.body.append(s); }")
    equal(page.run("window.ran === undefined"), True)
    assert any("Content Security Policy" in problem for problem in page.problems())
    for name in ("hostile.html", "hostile.svg"):
        page.open(folder / name)
        equal(page.run("document.querySelectorAll('script').length"), 2 if "html" in name else 1)


def pixels(page):
    """How many pixels of the canvas have a colour at all, and the first row's."""
    return page.run("(() => { const c = document.getElementById('canvas'); const d = c.getContext('2d')"
                    ".getImageData(0, 0, c.width, c.height).data; let n = 0; "
                    "for (let i = 3; i < d.length; i += 4) n += d[i] > 0; "
                    "return [n, d.slice((c.height - 9) * c.width * 4 + (c.width - 9) * 4)[0]]; })()")


def check_modes(folder):
    shades = []
    for dark in (False, True):
        with browser.Browser(dark=dark) as page:
            page.open(folder / "plain.html")
            drawn, red = pixels(page)
            assert drawn > 50000, drawn
            shades.append(red)
            page.open(folder / "plain.svg")
            shades.append(page.run("getComputedStyle(document.querySelector('.r text')).fill"))
    equal(shades[1::2], ["rgb(17, 17, 17)", "rgb(245, 245, 245)"])
    equal(shades[0::2], [0xe0, 0x3f])


def main():
    why = browser.unusable()
    if why:
        print(f"SKIP: {why}; the same promises are tested under node")
        return SKIP
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(sys.argv[1], folder)
        with browser.Browser() as page:
            check_no_errors(page, folder)
            check_svg(page, folder)
            check_page(page, folder)
            check_policy(page, folder)
        check_modes(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
