whyslow import --list
whyslow import --list --json
