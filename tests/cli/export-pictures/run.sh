# Pictures are formats of export, chosen by what a file name ends with.
make-recording plain a.whyslow
for name in f.svg i.icicle.svg p.html; do
    whyslow export a.whyslow -o $name
done
python3 - <<'EOF'
import re
import xml.etree.ElementTree as ET
for name in ("f.svg", "i.icicle.svg"):
    frames = ET.parse(name).getroot().find(".//*[@id='frames']")
    tops = [float(group[1].get("y")) for group in frames]
    titles = [group[0].text.split("\n") for group in frames]
    print(name, "root on top" if tops[0] == min(tops) else "root at the bottom")
    print("\n".join(f"  {title[0]}: {title[1]}" for title in titles))
page = open("p.html").read()
print("p.html", re.findall(r'<p class="honesty">(.*?)</p>', page))
print("rows of hotspots:", page.count("<tr><td"))
EOF
echo "--- by name, to a pipe"
whyslow export a.whyslow --format flame | cmp - f.svg && echo the same
echo "--- nowhere to write"
whyslow export a.whyslow -o missing/f.svg
