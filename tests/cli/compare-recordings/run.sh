# Two recordings are compared function by function, as report --diff does.
make-recording plain a.whyslow
make-recording after b.whyslow
whyslow compare a.whyslow b.whyslow >compared
echo "exit $?"
whyslow report a.whyslow --diff b.whyslow | cmp - compared && head -12 compared
whyslow compare --json a.whyslow b.whyslow >compared
whyslow report a.whyslow --diff b.whyslow --json | cmp - compared && echo same
whyslow compare a.whyslow true
echo "exit $?"
