# `io` sets uprobes on libsqlite3.so for everybody who has it mapped: whyslow, which writes a row for each call, must not
# be among them.
readelf -d "$(readlink -f "$(command -v whyslow)")" | grep -c 'NEEDED.*libsqlite3' || true
