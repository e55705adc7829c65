whyslow export --list
whyslow export --list --json
