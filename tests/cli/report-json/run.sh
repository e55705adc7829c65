# Machines get every figure, what is missing as "n/a: reason".
make-recording plain rec.whyslow
whyslow report rec.whyslow --json --limit 3
make-recording bare bare.whyslow
whyslow report bare.whyslow --json
