# Each view is whole; several may be asked for; --limit counts rows.
make-io plain rec.whyslow
view() {
    echo "--- $*"
    whyslow io rec.whyslow "$@" | sed '1,/^CPU time/d'
}
view --syscalls --limit 0
view --files
view --peers
view --devices
view --stacks --limit 3
view --requests
view --requests --limit 2
view --peers --devices --limit 1
echo "--- markdown"
whyslow io rec.whyslow --requests --markdown | sed '1,/^| CPU time/d'
# What was asked comes first, and beside it there is room for the rest: no line is wider than the terminal.
export COLUMNS=120
view --requests --limit 9 | sed '/^One after/,$d'
whyslow io rec.whyslow --requests | sed '1,/^CPU time/d; /^One after/,$d' |
    python3 -c 'import sys; print("the widest line:", max(len(line) for line in sys.stdin) - 1 <= 120)'
