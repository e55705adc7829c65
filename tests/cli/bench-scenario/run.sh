# What `run` writes, `bench` reads; what is malformed is refused with its line.
whyslow run --runs 2 --out out -- printf 'a "b" \ c' >/dev/null 2>&1
grep -v -e run_id -e folder out/latest/scenario.toml
whyslow bench --scenario out/latest/scenario.toml --json >result; echo "exit $?"
python3 -c '
import json
r = json.load(open("result"))["results"][0]
print(r["command"], r["n"], r["warmup"], r["runs"][0]["output_bytes"])'
sed -i 's/^golden.*/golden = "sha256:0000000000000000000000000000000000000000000000000000000000000000"/' out/latest/scenario.toml
whyslow bench --scenario out/latest/scenario.toml; echo "exit $?"
mkdir sub; echo data >sub/input
printf 'command = "wc -c"\nfolder = "."\ninput = "input"\nwarmup = 0\nruns = 9\n' >sub/scenario.toml
whyslow bench --scenario sub/scenario.toml -r 3 --export-json here.json --style none; echo "exit $?"
python3 -c '
import json
r = json.load(open("here.json"))["results"][0]
print(r["command"], r["n"], r["runs"][0]["output_bytes"])'
try() { printf "$1" >bad.toml; whyslow bench --scenario bad.toml; echo "exit $?"; }
try 'runs = 3\n'
try 'command = 3\n'
try 'command = "true"\nspeed = 9\n'
try 'command = "true"\nruns = -1\n'
try 'command = "true"\nbudget_s = "long"\n'
try 'command = "true\n'
try '[scenario]\n'
try 'command = []\n'
try 'command = "true"\nfolder = "/no/such/folder"\n'
