#!/usr/bin/env bash
# test-containers.sh [PACKAGE...]: runs the tests of the store, or of the given
# packages, on PostgreSQL in containers. Where no Docker engine answers it
# starts one of its own, and stops it in the end. Where the usual image is
# out of reach it makes one from the PostgreSQL installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
[ $# -gt 0 ] || set -- ./store/...

usual=postgres:17-alpine
own=holdfast-test/postgres

start_engine() {
	[ "$(id -u)" = 0 ] || {
		echo "no Docker engine answers: start one (sudo systemctl start docker), or run this as root" >&2
		exit 1
	}
	scripts/need.sh docker
	engine=$(mktemp -d /tmp/holdfast-docker-XXXXXX)
	[ -e /sys/class/net/docker0 ] || bridge=docker0
	# Published ports go through Docker's proxy, so the machine's packet filter
	# and routing stay as they are. The engine ends with this script.
	for driver in overlay2 vfs; do
		setpriv --pdeathsig TERM dockerd --host "unix://$engine/docker.sock" --storage-driver $driver \
			--data-root "$engine/data" --exec-root "$engine/exec" --pidfile "$engine/pid" \
			--iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
			>"$engine/log" 2>&1 </dev/null &
		dockerd=$!
		export DOCKER_HOST=unix://$engine/docker.sock
		for _ in $(seq 150); do
			! docker info >/dev/null 2>&1 || return 0
			kill -0 $dockerd 2>/dev/null || break
			sleep 0.2
		done
		stop_dockerd
	done
	echo "the Docker engine does not start:" >&2
	tail -n 20 "$engine/log" >&2
	exit 1
}

stop_dockerd() {
	[ -n "$dockerd" ] || return 0
	kill "$dockerd" 2>/dev/null || true
	wait "$dockerd" || true
	dockerd=
}

clean_up() {
	status=$?
	stop_dockerd
	[ -z "$bridge" ] || ip link delete "$bridge" 2>/dev/null || true
	if [ -n "$engine" ]; then
		umount "$engine/data" 2>/dev/null || true # the engine may leave it mounted
		rm -rf "$engine"
	fi
	exit $status
}

engine='' dockerd='' bridge=''
trap clean_up EXIT
trap 'exit 130' INT TERM
docker info >/dev/null 2>&1 || start_engine

image=${HOLDFAST_TEST_POSTGRES_IMAGE:-$usual}
if docker image inspect "$image" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$image" >/dev/null 2>&1; then
	echo "testing on $image"
else
	echo "$image is out of reach; making $own from the installed PostgreSQL"
	scripts/need.sh postgres
	image=$own
	scripts/postgres-image.sh $own
	# Testcontainers' janitor is an image from the same registry.
	export TESTCONTAINERS_RYUK_DISABLED=true
fi

export HOLDFAST_TEST_POSTGRES=containers HOLDFAST_TEST_POSTGRES_IMAGE=$image
export TESTCONTAINERS_HOST_OVERRIDE=${TESTCONTAINERS_HOST_OVERRIDE:-127.0.0.1}
go test -count=1 -timeout 8m "$@"
