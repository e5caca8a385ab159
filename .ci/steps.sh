# steps.sh is sourced by the scripts beside it. step runs a command, and together runs
# several side by side. How long each took is printed at the end.
exec </dev/null
export HOME=${HOME:-/root}
# The clone may belong to a different user.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD

took=()
step() {
	printf '\n== %s (after %d s)\n' "$*" $SECONDS
	local began=$SECONDS status=0
	"$@" || status=$?
	took+=("$((SECONDS - began)) s $*")
	return $status
}

# together COMMAND...: each command is one argument. Its output follows when all have ended.
together() {
	printf '\n== side by side (after %d s)\n' $SECONDS
	printf '%s\n' "$@"
	local began=$SECONDS failed=0 command logs i=0
	logs=$(mktemp -d)
	for command; do
		i=$((i + 1))
		{
			status=0
			$command >"$logs/$i" 2>&1 || status=$?
			echo "$((SECONDS - began)) $status" >"$logs/$i.end"
		} &
	done
	wait
	i=0
	for command; do
		i=$((i + 1))
		read -r seconds status <"$logs/$i.end"
		printf '\n== %s: %d s\n' "$command" "$seconds"
		cat "$logs/$i"
		took+=("$seconds s $command")
		[ "$status" = 0 ] || {
			echo "failed: $command" >&2
			failed=1
		}
	done
	rm -rf "$logs"
	return $failed
}

report() {
	printf '\n%s: %d s' "$0" $SECONDS
	[ ${#took[@]} -eq 0 ] || printf '; %s' "${took[@]}"
	echo
}
trap report EXIT
