# Flame graphs by each measure: what is wide is what the tables have, and the root has the total.
make-heap plain rec.whyslow
make-heap more more.whyslow
whyslow heap rec.whyslow --flame flame.svg --icicle icicle.svg --html page.html | sed -n '/^Written/,$p'
for by in bytes count peak leak temporary; do
    whyslow heap rec.whyslow --flame $by.svg --flame-by $by > /dev/null
    echo "--- $by"
    python3 - $by.svg << 'END'
import sys, xml.etree.ElementTree as ET
SVG = "{http://www.w3.org/2000/svg}"
root = ET.parse(sys.argv[1]).getroot()
print(["".join(text.itertext()) for text in root.iter(f"{SVG}text")][0])
frames = [group.find(f"{SVG}title").text.split("\n")[:2] for group in root.find(f".//{SVG}g[@id='frames']")]
for name, cost in frames[:1] + [f for f in frames if f[0] in ("parse_item", "accept_order", "format_price", "build_rows")]:
    print(f"{name}: {cost}")
END
done
cmp flame.svg peak.svg && echo "the peak is drawn unless something else is asked for"
echo "--- what changed"
whyslow heap rec.whyslow --diff more.whyslow --flame diff.svg --flame-by leak > /dev/null
grep -o '<title>+[0-9.]*% audit_log' diff.svg
echo "--- nothing to draw"
make-heap bare bare.whyslow
whyslow heap bare.whyslow --flame none.svg --flame-by temporary
echo "status $?"
ls none.svg
