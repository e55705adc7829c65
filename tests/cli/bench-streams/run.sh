# Input, output, names, parameters and helper commands reach the command as they should.
printf 'in' >in
b() { whyslow bench -r 2 -w 0 --style none "$@"; echo "exit $?"; }
b --input in --output out cat; cat out; echo
b --show-output 'echo seen'
b --output null --export-json r.json 'echo unseen'
python3 -c 'import json; r = json.load(open("r.json"))["results"][0]; print(r["outputs"], "|", r["runs"][0]["output_sha256"])'
b --setup 'echo setup {n} >>log' --prepare 'echo prepare {n} >>log' --cleanup 'echo cleanup {n} >>log' \
    -L n 1,2 "sh -c 'echo run {n} >>log'"
cat log
b -n first -n second --export-csv - true 'echo a' >/dev/null; cut -d, -f1 ./-
b -P x 0.5 1.5 -D 0.5 -L y 'a\,b,c' --export-json r.json 'echo {x} {y}'
python3 -c 'import json; [print(x["command"], x["parameters"]) for x in json.load(open("r.json"))["results"]]'
b --export-json r.json -L n '1,2' -- echo '{n} $x|'
python3 -c 'import json; [print(x["command"], x["runs"][0]["output_bytes"]) for x in json.load(open("r.json"))["results"]]'
