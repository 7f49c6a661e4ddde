# Writes the output of an attempt as it grows, until the attempt ends.
# Argument: its directory.
cd "$1" 2>/dev/null || exit 0
[ ! -e head ] || cat head
tail -c +1 -f output &
tail=$!
while [ ! -e status ]; do
	read -r pid start < claim/pid || break
	read -r line 2>/dev/null < "/proc/$pid/stat" || break
	set -- ${line##*) }
	[ "${20}" = "$start" ] || break
	sleep 1
done
sleep 1 # tail looks once a second
kill $tail
