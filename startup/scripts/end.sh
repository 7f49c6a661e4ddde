# Ends what an attempt has started: first asks, then makes it. Argument: the
# directory of the attempt.
dir=$1
cd "$dir" 2>/dev/null || exit 0
members() {
	for p in /proc/[0-9]*; do
		if tr '\0' '\n' 2>/dev/null < "$p/environ" | grep -qxF "CROFT_STEP_DIR=$dir"; then
			echo "${p#/proc/}"
		fi
	done
}
if [ -e claim/pid ] && [ ! -e status ] && read -r pid start < claim/pid && read -r line 2>/dev/null < "/proc/$pid/stat"; then
	set -- ${line##*) }
	[ "${20}" != "$start" ] || kill -KILL "$pid"
fi
list=$(members)
[ -z "$list" ] || kill -TERM $list 2>/dev/null
for _ in 1 2 3 4 5 6 7 8; do
	list=$(members)
	[ -n "$list" ] || break
	sleep 0.25 2>/dev/null || sleep 1
done
[ -z "$list" ] || kill -KILL $list 2>/dev/null
exit 0
