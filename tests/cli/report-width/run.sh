# On a narrow terminal names wrap, figures stay whole, and a row that is too wide goes on below.
make-recording plain rec.whyslow
COLUMNS=100 whyslow report rec.whyslow --limit 5
COLUMNS=60 whyslow report rec.whyslow --limit 3
