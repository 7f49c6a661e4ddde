# Starts an attempt of a step, unless it has been started, and waits for its
# end. Arguments: directory of the attempt, account, mode, the text of
# supervise.sh, the length of the command. Standard input is the command to run.
# Says "started".
dir=$1 account=$2 mode=$3 supervise=$4 length=$5
umask 066
mkdir -p "$dir" && cd "$dir" || exit 1
if [ ! -d claim ]; then
	# Of a manager that is killed meanwhile, not all arrives.
	cat > command.$$ && [ $(wc -c < command.$$) -eq "$length" ] && mv command.$$ command || {
		rm -f command.$$
		echo "the command did not arrive whole" >&2
		exit 1
	}
	export CROFT_STEP_DIR="$dir/"
	if command -v setsid >/dev/null; then
		setsid /bin/sh -c "$supervise" croft-step "$dir" "$account" "$mode" 3>&1 >/dev/null 2>&1 </dev/null &
	else
		/bin/sh -c "$supervise" croft-step "$dir" "$account" "$mode" 3>&1 >/dev/null 2>&1 </dev/null &
	fi
	wait $!
fi
# Also when somebody else was quicker.
grace=5
said=
while [ ! -e status ]; do
	if read -r pid start < claim/pid; then
		[ "$said" ] || echo started
		said=1
		read -r line < "/proc/$pid/stat" || break
		set -- ${line##*) }
		[ "${20}" = "$start" ] || break
	else
		grace=$((grace - 1))
		[ $grace -gt 0 ] || break
	fi 2>/dev/null
	sleep 1
done
exit 0
