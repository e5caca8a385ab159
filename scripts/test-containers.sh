#!/usr/bin/env bash
# test-containers.sh [ARGUMENT...]: runs go test on PostgreSQL in containers, with the
# given arguments or on the store. If no Docker engine answers, it starts one and stops
# it at the end. If the usual image cannot be pulled, it makes one from the PostgreSQL
# installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- ./store/...

usual=postgres:17-alpine
own=holdfast-test/postgres

. scripts/engine.sh

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
go test -count=1 -timeout 40m "$@"
