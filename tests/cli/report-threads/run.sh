# CPU time by group of threads and by thread, and what each did most.
make-recording plain rec.whyslow
whyslow report rec.whyslow --threads
whyslow report rec.whyslow --threads --json --limit 1 | sed -n '/"thread_groups"/,$p'
