# What record says at its end about waits, and which command is next. The tier is the one that
# needs no rights; other tests see to the kernel's.
tell() {
    echo "== $*"
    whyslow record --tier user -o r.whyslow "$@" 2>&1 | grep -v '^ '
    echo "status ${PIPESTATUS[0]}"
    rm -f r.whyslow
}
tell --offcpu -- sleep 0.3
tell --locks -- sh -c 'sleep 0.3; exit 7' | grep -v waits:
tell --cpu --offcpu --locks -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.3'
# Without --cpu there are no samples, and whoever asks for them is told so.
whyslow record --tier user --offcpu -o r.whyslow -- sleep 0.3 2> /dev/null
whyslow report r.whyslow; echo "status $?"
whyslow report r.whyslow --series offcpu | grep honesty
whyslow query r.whyslow "SELECT json_extract(json, '\$.scope') AS scope,
    json_extract(json, '\$.end_ns') - json_extract(json, '\$.start_ns') BETWEEN 3e8 AND 3.6e11 AS span,
    json_extract(json, '\$.pid') = (SELECT pid FROM process WHERE id = 1) AS pid
    FROM document WHERE name = 'target'"
