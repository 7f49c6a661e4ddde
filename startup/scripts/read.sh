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
touch outputs output
head -c 65536 outputs > read.outputs
size=$(wc -c < output)
left=0
if [ -e head ]; then
	head -c $half head > read.head
	tail -c $half output > read.tail
	while read -r n; do left=$((left + n)); done < left
	left=$((left + size - half * 2))
elif [ "$size" -gt $((half * 2)) ]; then
	head -c $half output > read.head
	tail -c $half output > read.tail
	left=$((size - half * 2))
else
	head -c $((half * 2)) output > read.head
	: > read.tail
fi
echo $status $life $(wc -c < read.outputs) $(wc -c < read.head) $(wc -c < read.tail) $left
cat read.outputs read.head read.tail
