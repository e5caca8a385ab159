#!/usr/bin/env bash
# jaeger.sh [COMMAND...]: runs a Jaeger for as long as the command takes, which
# has its addresses in HOLDFAST_JAEGER_URL and HOLDFAST_JAEGER_OTLP, or until it
# is interrupted. It is for machines without Docker. HOLDFAST_JAEGER_PROGRAM is the
# Jaeger to run, such as that of the 2.20.0 release, which Compose has as an image:
# it has the pages for people too. Without it, Jaeger is built from its Go module the
# first time, which takes minutes. That is 2.13, the last release with a version that
# Go accepts for the module, and it answers queries only.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${HOLDFAST_JAEGER_PROGRAM:-$root/bin/tools/jaeger}

if [ -z "${HOLDFAST_JAEGER_PROGRAM:-}" ] && [ "$root/tools/jaeger/go.mod" -nt "$program" ]; then
	echo "building Jaeger 2.13, once; this takes minutes. HOLDFAST_JAEGER_PROGRAM may name another one" >&2
	CGO_ENABLED=0 go build -C "$root/tools/jaeger" -trimpath -ldflags='-s -w' -o "$program" \
		github.com/jaegertracing/jaeger/cmd/jaeger
	touch "$program"
fi

export HOLDFAST_JAEGER_URL=http://127.0.0.1:16686 HOLDFAST_JAEGER_OTLP=http://127.0.0.1:4317
answers() { : <>/dev/tcp/127.0.0.1/16686; } 2>/dev/null
! answers || {
	echo "something is on port 16686 already; if it is a Jaeger, set HOLDFAST_JAEGER_URL=$HOLDFAST_JAEGER_URL" >&2
	exit 1
}

# Its warnings are for whoever runs Jaeger in earnest.
log=$(mktemp)
"$program" --config "$root/tools/jaeger/config.yaml" >"$log" 2>&1 </dev/null &
jaeger=$!
stop() {
	status=$?
	kill $jaeger 2>/dev/null || true
	wait $jaeger || true
	rm -f "$log"
	exit $status
}
trap stop EXIT
trap 'exit 130' INT TERM
until answers; do
	kill -0 $jaeger 2>/dev/null || {
		echo "Jaeger does not start:" >&2
		tail -n 20 "$log" >&2
		exit 1
	}
	sleep 0.2
done
if [ $# -gt 0 ]; then
	"$@"
else
	echo "spans go to $HOLDFAST_JAEGER_OTLP, $HOLDFAST_JAEGER_URL/api/v3/… has the traces; Ctrl-C ends it"
	wait $jaeger
fi
