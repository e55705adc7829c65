# A report of what was read, what was skipped and why, in text and JSON; from a file and a pipe.
printf 'main;a 3\nnonsense\nmain;b 0\nmain;b 4\n' > a.folded
whyslow import a.folded -o a.whyslow
whyslow import - -o b.whyslow --unit ns --json < a.folded
whyslow query b.whyslow "SELECT name, unit, about FROM series"
whyslow query b.whyslow "SELECT name, value FROM counter"
whyslow query b.whyslow "SELECT stack_text(stack) AS stack, count, weight FROM total"
whyslow query b.whyslow "SELECT json FROM document WHERE name = 'import'"
