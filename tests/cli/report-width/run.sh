# On a narrow terminal names wrap and figures stay whole.
make-recording plain rec.whyslow
COLUMNS=100 whyslow report rec.whyslow --limit 5
COLUMNS=60 whyslow report rec.whyslow --limit 3
