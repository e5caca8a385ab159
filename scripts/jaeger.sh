#!/usr/bin/env bash
# jaeger.sh [COMMAND...]: runs a Jaeger while the command runs, or until you interrupt it.
# The command gets its addresses in HOLDFAST_JAEGER_URL and HOLDFAST_JAEGER_OTLP. It is
# for machines without Docker. HOLDFAST_JAEGER_PROGRAM is the Jaeger to run, such as the
# 2.20.0 release, which has web pages. Without it, the script builds Jaeger from its Go
# module the first time, which takes minutes. That is 2.13, the last release whose module
# has a version that Go accepts. It answers queries and has no web pages.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${HOLDFAST_JAEGER_PROGRAM:-$root/bin/tools/jaeger}

if [ -z "${HOLDFAST_JAEGER_PROGRAM:-}" ] && [ "$root/tools/jaeger/go.mod" -nt "$program" ]; then
	echo "building Jaeger 2.13, once, which takes minutes; or set HOLDFAST_JAEGER_PROGRAM" >&2
	CGO_ENABLED=0 go build -C "$root/tools/jaeger" -trimpath -ldflags='-s -w' -o "$program" \
		github.com/jaegertracing/jaeger/cmd/jaeger
	touch "$program"
fi

export HOLDFAST_JAEGER_URL=http://127.0.0.1:16686 HOLDFAST_JAEGER_OTLP=http://127.0.0.1:4317
answers() { : <>/dev/tcp/127.0.0.1/16686; } 2>/dev/null
! answers || {
	echo "port 16686 is in use; if that is a Jaeger, set HOLDFAST_JAEGER_URL=$HOLDFAST_JAEGER_URL" >&2
	exit 1
}

# Its warnings matter only in production.
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
	echo "send spans to $HOLDFAST_JAEGER_OTLP; the traces are at $HOLDFAST_JAEGER_URL/api/v3/…; Ctrl-C ends it"
	wait $jaeger
fi
