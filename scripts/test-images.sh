#!/usr/bin/env bash
# test-images.sh [Dockerfile...]: builds both images of deploy, or the given ones, and
# runs jobs in them, with a PostgreSQL. Base images that cannot be pulled are replaced
# with images made from the programs installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- deploy/Dockerfile deploy/Dockerfile.slim
. scripts/engine.sh
docker buildx version >/dev/null 2>&1 || export DOCKER_BUILDKIT=0

name=holdfast-test-$$
password=test-$RANDOM$RANDOM
options=()
# Our own engine has no network.
[ -z "$engine" ] || options+=(--network host)

before_exit() { docker rm --force --volumes "$name-postgres" "$name" >/dev/null 2>&1; }

# base KIND IMAGE: sets base to the image, or to its replacement.
base() {
	base=$2
	docker image inspect "$2" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$2" >/dev/null 2>&1 || {
		base=holdfast-test/$1
		echo "$2 is out of reach; making $base from what is installed" >&2
		docker image inspect "$base" >/dev/null 2>&1 || case $1 in
		postgres) scripts/postgres-image.sh "$base" ;;
		*) scripts/base-image.sh "$1" "$base" ;;
		esac
	}
}

default() { sed -n "s/^ARG $1=//p" "$2"; }

scripts/need.sh postgres
base postgres postgres:17.6-alpine3.22
docker run --detach --name "$name-postgres" --env POSTGRES_USER=holdfast --env "POSTGRES_PASSWORD=$password" "$base" >/dev/null

# in_it COMMAND...: runs an orchestrator command in the container, as its operator.
in_it() {
	docker exec --env HOLDFAST_USER=admin --env "HOLDFAST_PASSWORD=$password" "$name" /usr/local/bin/orchestrator "$@"
}

await_health() {
	for _ in $(seq 120); do
		health=$(docker inspect --format '{{.State.Status}} {{.State.Health.Status}}' "$name")
		[ "$health" != "running healthy" ] || return 0
		[ "${health%% *}" = running ] || break
		sleep 0.5
	done
	echo "not healthy: $health" >&2
	docker logs "$name" 2>&1 | tail -n 30 >&2
	exit 1
}

for file; do
	echo "== $file"
	case $file in *.slim) kind=debian ;; *) kind=static ;; esac
	base go "$(default BUILD "$file")" && build=$base
	base $kind "$(default BASE "$file")"
	docker build --quiet "${options[@]}" --file "$file" --build-arg "BUILD=$build" --build-arg "BASE=$base" \
		--build-arg VERSION=v0.0.0-test --tag "holdfast-test:$kind" . >/dev/null

	handlers=() types=()
	if [ $kind = debian ]; then
		handlers+=(--env HOLDFAST_PLUGINS__1__NAME=python --env HOLDFAST_PLUGINS__1__PATH=/usr/bin/python3
			--env HOLDFAST_PLUGINS__1__ARGS=/examples/handlers/python/main.py)
		types+=(PY_ECHO)
		# The directory of the packages that npm ci has installed.
		if [ -e examples/handlers/node/node_modules ]; then
			handlers+=(--env HOLDFAST_PLUGINS__2__NAME=node --env HOLDFAST_PLUGINS__2__PATH=/examples/handlers/node/main.js)
			types+=(NODE_ECHO)
		fi
	fi
	# The default interval of the health check would be too long for a test.
	docker run --detach --name "$name" --network "container:$name-postgres" --read-only --tmpfs /tmp --cap-drop ALL \
		--security-opt no-new-privileges:true --health-interval 1s --volume "$PWD/examples:/examples:ro" \
		--env "HOLDFAST_DATABASE__URL=postgres://holdfast:$password@127.0.0.1:5432/holdfast?sslmode=disable" \
		--env "HOLDFAST_SECURITY__PASSWORD=$password" "${handlers[@]}" "holdfast-test:$kind" >/dev/null
	await_health
	in_it version
	in_it version | grep -q v0.0.0-test
	docker cp "$name:/usr/share/doc/holdfast" - | tar -tf - | grep -c LICENSE >/dev/null
	in_it licenses | grep -c '^github.com/' >/dev/null
	in_it submit SLEEP_JOB --payload '{"sleepSeconds": 1}' --wait
	for type in "${types[@]}"; do
		in_it submit "$type" --payload '{"text": "hello"}' --wait
	done
	docker stop -t 45 "$name" >/dev/null
	code=$(docker inspect --format '{{.State.ExitCode}}' "$name")
	[ "$code" = 0 ] || {
		echo "it exited with $code after docker stop" >&2
		docker logs "$name" 2>&1 | tail -n 30 >&2
		exit 1
	}
	docker rm --volumes "$name" >/dev/null
done
echo "the images work"
