# Each view is whole; several may be asked for; --limit counts rows.
make-heap plain rec.whyslow
view() {
    echo "--- $*"
    whyslow heap rec.whyslow "$@" | sed '1,/^mapped /d'
}
view --functions --limit 0
view --peak
view --leaks
view --leaks --limit 2
view --churn --limit 3
view --temporary-sites
view --growth
view --threads
view --images
view --sizes
view --timeline --limit 4
view --at 2
view --at 3 --limit 1
view --peak --images --limit 1
echo "--- markdown"
whyslow heap rec.whyslow --leaks --limit 2 --markdown | sed '1,/^| mapped/d'
echo "--- sampled: every figure that is an estimate says so"
rm rec.whyslow
make-heap sampled rec.whyslow
view --leaks --limit 2
view --growth --limit 2
view --threads --limit 2
view --sizes | head -12
view --timeline --limit 4
view --at 2 --limit 2
