try() { whyslow bench "$@" >out 2>err; echo "exit $?: $(tr '\n' ';' <err)"; grep -q . out && echo "stdout is not empty"; }
try
try ''
try no-such-program
try './no-such-file x'
try -N 'cat x | wc -l'
try --shell none 'echo $HOME'
try "echo 'abc"
try 'true \'
try --runs 0 true
try --runs many true
try --warmup -1 true
try -m 10 -M 5 true
try --metric speed true
try --metric wal true
try --golden /no/such/file true
try --golden sha256:123 true
try --golden sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 --output null true
try --input /no/such/file true
try --show-output --output null true
try -P n 1 true
try -P n 5 1 'echo {n}'
try -P n a b 'echo {n}'
try -P n 1 9 -D 0 'echo {n}'
try -P n 1 1000000 'echo {n}'
try -L n 1,2 -L n 3 'echo {n}'
try -D 2 true
try -n a -n b true
try -p a -p b -p c 'true' 'true'
try --shell no-such-shell 'a | b'
try --shell '' true
try --shell sh -- true
try --time-unit fortnight true
try --scenario /no/such/scenario.toml
try --timeout soon true
