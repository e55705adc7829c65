# What cannot be done is said with the remedy.
say() { "$@"; echo "exit $?"; }
say whyslow history
WHYSLOW_HISTORY=off; export WHYSLOW_HISTORY
say whyslow history
say whyslow history --store none.db
say whyslow history --store h.db add
echo '{}' >empty.json
say whyslow history --store h.db add empty.json
say whyslow history --store h.db add missing.json
echo '{"results": [{"command": "x", "times": [0.1, 0.2]}]}' >hyper.json
say whyslow history --store h.db add hyper.json
say whyslow history --store h.db
say whyslow history --store h.db unknown
say whyslow history --store h.db a b
say whyslow history --store h.db --metric sugar
say whyslow history --store h.db --p 2
say whyslow history --store h.db --limit 0
