# Tables for documents; names of commands cannot break out of their cells.
whyslow bench -r 2 -w 0 --style none --time-unit second -n 'a|b' -n 'c,"d"' --export-markdown md \
    --export-asciidoc adoc --export-orgmode org --export-csv csv true 'echo x'
echo "exit $?"
sed -E 's/[0-9]+\.[0-9]+( s)?/N\1/g' md adoc org
head -1 csv; cut -d, -f1-2 csv | tail -1; python3 -c 'import csv; print([r[0] for r in csv.reader(open("csv"))])'
# A full disk: the results are still printed, the old file is still whole, the error is clear.
whyslow bench -r 2 -w 0 --export-json /dev/full true >out; echo "exit $?"
grep -c '^wall time' out
# A place that cannot be written is found before time is spent; what was there stays.
echo old >kept; whyslow bench --export-json no/such/folder/x --export-csv kept 'touch ran'; echo "exit $?"
cat kept; ls ran
