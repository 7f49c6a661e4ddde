# Puts the lines of standard input into /etc/hosts as Croft's own block, in
# place of the one before. The file stays the same one: it may be mounted.
block=$(cat)
rest=$(sed '/^# begin croft$/,/^# end croft$/d' /etc/hosts 2>/dev/null)
{
	[ -z "$rest" ] || printf '%s\n' "$rest"
	if [ -n "$block" ]; then
		printf '# begin croft\n%s\n# end croft\n' "$block"
	fi
} > /etc/hosts
