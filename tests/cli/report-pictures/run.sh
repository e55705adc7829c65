# Flame graphs and the page are whole files: well-formed, with the names, and said where.
make-recording plain a.whyslow
make-recording after b.whyslow
whyslow report a.whyslow --flame f.svg --icicle i.svg --html p.html --limit 1 | sed -n '/Written/,$p'
whyslow report a.whyslow --diff b.whyslow --flame d.svg --limit 1 | sed -n '/Written/,$p'
python3 - <<'EOF'
import xml.dom.minidom
for name in ("f.svg", "i.svg", "d.svg"):
    text = xml.dom.minidom.parse(name).toxml()
    print(name, "checksum" in text, "ksys_read" in text)
print("p.html", "checksum" in open("p.html").read())
EOF
echo "--- nothing is left behind where it cannot be written"
whyslow report a.whyslow --flame missing/f.svg
ls
