# The overview of a captured machine as text and as Markdown; checks have their own tests.
whyslow doctor --root "$SRC/tests/captures/laptop-intel" | sed '/^Before measuring/,$d'
whyslow doctor --root "$SRC/tests/captures/laptop-intel" | sed -n '/^What can/,$p' | sed '/^Summary/,$d'
whyslow doctor --markdown --root "$SRC/tests/captures/container-v2" | sed '/Before measuring/,$d'
