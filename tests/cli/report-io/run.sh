# Time in calls is a series like others: functions, tree, pictures, with the honesty of calls.
make-io plain rec.whyslow
whyslow report rec.whyslow --series io --limit 6
whyslow report rec.whyslow --series io --tree --min-pct 20 --limit 12 | sed -n '/^Call/,$p'
whyslow report rec.whyslow --series io --flame f.svg --limit 1 | sed -n '/Written/,$p'
grep -c fetch_price f.svg
whyslow export rec.whyslow --series io --format folded | sort -t' ' -k2 | grep -c ';'
echo "--- whoever asks for samples is told what there is"
whyslow report rec.whyslow; echo "status $?"
echo "--- nothing was called"
make-io empty empty.whyslow
whyslow report empty.whyslow --series io; echo "status $?"
