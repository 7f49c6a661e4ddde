# Ends what an attempt has started: first asks, then makes it. Argument: the
# directory of the attempt.
dir=$1
cd "$dir" 2>/dev/null || exit 0
members() {
	grep -lsaF "CROFT_STEP_DIR=$dir/" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do echo "$pid"; done
}
if [ -e claim/pid ] && [ ! -e status ] && read -r pid start < claim/pid && read -r line 2>/dev/null < "/proc/$pid/stat"; then
	set -- ${line##*) }
	[ "${20}" != "$start" ] || kill -KILL "$pid"
fi
list=$(members)
[ -z "$list" ] || kill -TERM $list 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	list=$(members)
	[ -n "$list" ] || exit 0
	[ $try -le 8 ] || kill -KILL $list 2>/dev/null
	sleep 0.25 2>/dev/null || sleep 1
done
