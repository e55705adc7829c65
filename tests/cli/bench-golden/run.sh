# A run that prints something else than the golden output is a failure and is shown as one.
printf 'hello' >golden
mkdir temporary
export TMPDIR=temporary
ok() { whyslow bench -r 6 --json "$@" >out 2>err; s=$?; [ $s = 3 ] && s=0; echo "exit $s: $(head -1 err)"; }
ok --golden golden 'printf hello'
ok --golden sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 'printf hello'
ok --golden 'grep -q hello' 'printf hello'
python3 -c 'import json; print(json.load(open("out"))["results"][0]["runs"][0]["output_bytes"])'
ok --golden 'test "$(cat)" = hello' 'printf hello'
ok --golden golden 'printf hallo'
ok --golden sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 'printf hallo'
ok --golden 'grep -q hello' 'printf hallo'
ok --golden golden -i 'printf hallo'
python3 -c 'import json; r = json.load(open("out"))["results"][0]; print(r["failed_runs"], r["runs"][0]["failed"])'
ls temporary
