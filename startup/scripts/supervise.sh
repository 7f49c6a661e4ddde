# Runs one attempt of a step and notes how it goes; outlives the manager.
# Arguments: directory of the attempt, account, "once" or "again" (a service
# that is started anew whenever it ends). File descriptor 3 is told "started".
# CROFT_STEP_DIR, in the environment of all that comes of it, tells whose it is.
dir=$1 account=$2 mode=$3
cd "$dir" || exit
umask 066
mkdir claim 2>/dev/null || exit 0
read -r line < /proc/$$/stat
set -- ${line##*) }
echo "$$ ${20}" > claim/new && mv claim/new claim/pid

finish() {
	echo "$1" > status.new && mv status.new status
	exit
}

exec >> output 2>&1 < /dev/null
uid=
while IFS=: read -r name _ user group _ home shell; do
	if [ "$name" = "$account" ]; then
		uid=$user gid=$group
		break
	fi
done < /etc/passwd
if [ -z "$uid" ]; then
	echo "started" >&3
	echo "croft: the node has no account $account"
	finish 126
fi
: > outputs
chown "$uid:$gid" output outputs command
export HOME="$home" USER="$account" LOGNAME="$account" SHELL="${shell:-/bin/sh}"
export CROFT_OUTPUTS="$dir/outputs"
echo "started" >&3
exec 3>&-

# A step may write without end: of a long output the beginning and the end are
# kept.
bound() {
	while sleep 20; do
		[ ! -e status ] && size=$(wc -c < output) || return
		[ "$size" -gt 1048576 ] || continue
		[ -e head ] || head -c 65536 output > head
		tail -c 262144 output > tail
		: > output
		cat tail >> output
		echo "$((size - 262144))" >> left
	done
}
bound &
bounder=$!

run() {
	if [ "$uid" = 0 ]; then
		/bin/sh "$dir/command"
	elif setpriv --reuid="$uid" --regid="$gid" --init-groups true 2>/dev/null; then
		setpriv --reuid="$uid" --regid="$gid" --init-groups /bin/sh "$dir/command"
	elif command -v runuser >/dev/null; then
		runuser -u "$account" -- /bin/sh "$dir/command"
	else
		su -s /bin/sh "$account" -c "exec /bin/sh '$dir/command'"
	fi
}

pause=1
while :; do
	began=$(date +%s)
	run
	status=$?
	[ "$mode" = again ] || break
	[ $(($(date +%s) - began)) -lt 60 ] || pause=1
	echo "croft: ended with status $status; it is started again in $pause s"
	sleep $pause
	[ $pause -ge 30 ] || pause=$((pause * 2))
done
kill $bounder
finish $status
