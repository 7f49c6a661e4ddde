# Tells how an attempt went. Argument: its directory. A first line has the
# status ("-" for none), whether it lives ("alive", "gone"), and the lengths of
# what follows: outputs, beginning and end of the output, and what is left out
# between them.
cd "$1" 2>/dev/null || { echo "- none 0 0 0 0"; exit 0; }
umask 077
status=- life=gone
[ ! -e status ] || read -r status < status
if [ -e claim/pid ] && read -r pid start < claim/pid && read -r line 2>/dev/null < "/proc/$pid/stat"; then
	set -- ${line##*) }
	[ "${20}" != "$start" ] || life=alive
fi
[ -d claim ] || life=none
half=32768
# Several may read at once.
my=read.$$
trap 'rm -f "$my".*' EXIT
touch outputs output
head -c 65536 outputs > "$my.outputs"
size=$(wc -c < output)
left=0
if [ -e head ]; then
	head -c $half head > "$my.head"
	tail -c $half output > "$my.tail"
	while read -r n; do left=$((left + n)); done < left
	left=$((left + size - half * 2))
elif [ "$size" -gt $((half * 2)) ]; then
	head -c $half output > "$my.head"
	tail -c $half output > "$my.tail"
	left=$((size - half * 2))
else
	head -c $((half * 2)) output > "$my.head"
	: > "$my.tail"
fi
echo $status $life $(wc -c < "$my.outputs") $(wc -c < "$my.head") $(wc -c < "$my.tail") $left
cat "$my.outputs" "$my.head" "$my.tail"
