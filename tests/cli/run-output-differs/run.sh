whyslow run --runs 4 -- bash -c 'echo $RANDOM$RANDOM$RANDOM' 2>/dev/null | grep '^output'
grep -c golden whyslow-out/latest/scenario.toml
# stdout of the program never reaches ours; markdown is a table.
whyslow run --runs 2 --markdown -- echo should-not-be-seen 2>/dev/null | grep -c -e '^should-not' -e 'a run costs.*wall time'
