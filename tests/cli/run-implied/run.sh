# `whyslow PROGRAM …` is `whyslow run PROGRAM …`; options end at the program.
whyslow /bin/echo --runs 7 'it'\''s "quoted"' 2>/dev/null | grep '^command'
grep -c output_sha256 whyslow-out/latest/baseline.json
