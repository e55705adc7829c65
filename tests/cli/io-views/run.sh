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
