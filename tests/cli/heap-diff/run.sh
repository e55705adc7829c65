# What changed from one recording to the next, function by function, by the measure that was asked for.
make-heap plain a.whyslow
make-heap more b.whyslow
whyslow heap a.whyslow --diff b.whyslow
for measure in peak leaks churn temporary-sites growth; do
    echo "--- $measure"
    whyslow heap a.whyslow --diff b.whyslow --$measure | sed '1,/^In all/d'
done
echo "--- the other way round"
whyslow heap b.whyslow --diff a.whyslow --leaks | sed '1,/^In all/d'
echo "--- json"
whyslow heap a.whyslow --diff b.whyslow --leaks --json | python3 -c '
import json, sys
answer = json.load(sys.stdin)
print(json.dumps(answer["diff"], indent=1))
print(answer["unchanged"])'
echo "--- nothing changed"
whyslow heap a.whyslow --diff a.whyslow | sed '1,/^In all/d'
echo "--- with one side sampled: that side's figures are estimates"
make-heap sampled s.whyslow
whyslow heap b.whyslow --diff s.whyslow --leaks | sed '1,/^In all/d'
