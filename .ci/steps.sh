# steps.sh is sourced by the scripts beside it. It defines step, which runs a command and
# notes how long it took, and prints all of that at the end.
exec </dev/null
export HOME=${HOME:-/root}
# A clone may belong to somebody else than the user that runs this.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD

took=()
step() {
	printf '\n== %s (after %d s)\n' "$*" $SECONDS
	local began=$SECONDS status=0
	"$@" || status=$?
	took+=("$((SECONDS - began)) s $*")
	return $status
}

report() {
	printf '\n%s: %d s' "$0" $SECONDS
	[ ${#took[@]} -eq 0 ] || printf '; %s' "${took[@]}"
	echo
}
trap report EXIT
