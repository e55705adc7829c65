# Killing whyslow does not touch the program: it writes on without SIGPIPE, and ends by itself.
mark=mark-$$
whyslow run --warmup 0 -- sh -c 'touch started; sleep 0.7; head -c 300000 /dev/zero && echo out && touch ended' $mark >/dev/null 2>&1 &
pid=$!
disown $pid # else bash reports its death, with the pid
for i in $(seq 500); do [ -e started ] && break; sleep 0.02; done
kill -9 $pid
[ -e ended ] && echo "ended too early for this test"
for i in $(seq 500); do [ -e ended ] && break; sleep 0.02; done
ls started ended
# Nobody is left waiting.
for i in $(seq 100); do pgrep -f "whyslow-launcher.*$mark" >/dev/null || break; sleep 0.02; done
pgrep -fc "whyslow-launcher.*$mark"
