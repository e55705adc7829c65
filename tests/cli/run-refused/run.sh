whyslow run; echo "exit $?"
whyslow run --; echo "exit $?"
whyslow run -- no-such-command; echo "exit $?"
whyslow run -- ./no-such-file; echo "exit $?"
touch plain; whyslow run -- ./plain; echo "exit $?"
mkdir empty; whyslow run -- ./empty; echo "exit $?"
whyslow run --runs 0 -- /bin/true; echo "exit $?"
whyslow run --budget soon -- /bin/true; echo "exit $?"
printf 'exit 0\n' >script; chmod +x script
whyslow run -- ./script; echo "exit $?"
printf '#!/no/interpreter\n' >script
whyslow run -- ./script; echo "exit $?"
touch file; whyslow run --out file/x -- /bin/true; echo "exit $?"
