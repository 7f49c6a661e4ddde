# Runs a command on a machine: exec.sh MARK USER [NAME=VALUE…] COMMAND…
# The mark on standard output, and the mark and the status on standard error,
# say that the command has ended: what it leaves in the background may hold both
# open for long.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mark=$1 user=$2
shift 2
done_with() {
  rm -f "/run/croft/$mark"
  printf '\1%s\n' "$mark"
  printf '\1%s %s\n' "$mark" "$1" >&2
  exit 0
}
[ "$(cat /var/lib/croft/running 2>/dev/null)" = "$(cat /proc/sys/kernel/random/boot_id)" ] || done_with stopped
mkdir -p /run/croft && chmod 700 /run/croft
# The session that sshd began for this command: to end it is to end them all.
session() { printf '%s\n' "$4"; }
read -r stat <"/proc/$$/stat"
session ${stat##*) } >"/run/croft/$mark"
entry=$(getent passwd "${user:-root}") || {
  echo "the machine has no account $user" >&2
  done_with 126
}
uid=$(printf '%s' "$entry" | cut -d: -f3) gid=$(printf '%s' "$entry" | cut -d: -f4)
home=$(printf '%s' "$entry" | cut -d: -f6) shell=$(printf '%s' "$entry" | cut -d: -f7)
# Otherwise the account could not open /dev/stdout and /dev/stderr anew.
[ "$uid" = 0 ] || chown "$uid" /proc/self/fd/1 /proc/self/fd/2 2>/dev/null
cd "$home" 2>/dev/null || cd /
umask 022
set -- HOME="$home" USER="${user:-root}" LOGNAME="${user:-root}" SHELL="${shell:-/bin/sh}" PATH="$PATH" LANG=C.UTF-8 "$@"
if [ "$uid" = 0 ]; then
  env -i "$@"
else
  setpriv --reuid="$uid" --regid="$gid" --init-groups --inh-caps=-all env -i "$@"
fi
done_with $?
