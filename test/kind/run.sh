#!/usr/bin/env bash
# Runs the chart on a cluster of its own, by kind, with a database by CloudNativePG: installs
# it, submits jobs while a worker, an API pod and the primary are deleted and while it is
# upgraded, and compares what was accepted with what succeeded. Needs docker, kind (0.24 or
# newer, which enforces network policies), kubectl, helm, jq and openssl, 8 GB of memory, and
# the network. KEEP=1 keeps the cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=holdfast-test
operator=https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-1.28/releases/cnpg-1.28.1.yaml
work=$(mktemp -d)

for program in docker kind kubectl helm jq openssl; do
	command -v "$program" >/dev/null || { echo "test/kind/run.sh needs $program" >&2; exit 1; }
done

finish() {
	code=$?
	if [ "$code" -ne 0 ]; then
		echo "FAILED; what the cluster says:" >&2
		kubectl get pods --all-namespaces >&2 || true
		kubectl -n jobs logs -l app.kubernetes.io/name=holdfast --all-containers --tail=30 --prefix >&2 || true
	fi
	[ -n "${KEEP:-}" ] || kind delete cluster --name "$name"
	rm -rf "$work"
	exit "$code"
}

step() { printf '\n== %s\n' "$*"; }

kind create cluster --name "$name" --config test/kind/cluster.yaml --kubeconfig "$work/kubeconfig" --wait 3m
trap finish EXIT
# Never the cluster that the user works with.
export KUBECONFIG=$work/kubeconfig

step "Build the image"
docker build --file deploy/Dockerfile --build-arg VERSION=v0.0.0-kind --tag holdfast:v0.0.0-kind .
kind load docker-image holdfast:v0.0.0-kind --name "$name"

step "Make the database"
kubectl apply --server-side -f "$operator"
kubectl -n cnpg-system rollout status deployment/cnpg-controller-manager --timeout=5m
kubectl create namespace jobs
kubectl config set-context --current --namespace=jobs
# As in deploy, with what a laptop has.
sed -e 's/size: .*Gi/size: 2Gi/' -e 's/memory: 4Gi/memory: 1Gi/' -e 's/cpu: "2"/cpu: 100m/' -e 's/shared_buffers: 1GB/shared_buffers: 128MB/' \
	-e 's/max_wal_size: 8GB/max_wal_size: 1GB/' deploy/helm/cloudnativepg/cluster.yaml | kubectl apply -f -
kubectl wait cluster/holdfast-db --for=condition=Ready --timeout=10m

step "Install the chart"
password=$(openssl rand -hex 16)
kubectl create secret generic holdfast-operator --from-literal=password="$password"
deploy() {
	helm upgrade --install holdfast deploy/helm/holdfast -f deploy/helm/examples/cloudnativepg.yaml -f test/kind/values.yaml --wait --timeout 10m "$@"
}
deploy
kubectl exec deployment/holdfast-api -- orchestrator doctor

# The client is a pod, so that it calls the Service as programs in a cluster do.
step "Submit jobs while pods are deleted"
kubectl run client --image=curlimages/curl:8.16.0 --env=PASSWORD="$password" --restart=Never --command -- sleep infinity
kubectl wait pod/client --for=condition=Ready --timeout=5m
# shellcheck disable=SC2016 # the client's shell knows the password
call='curl --silent --show-error --fail --retry 120 --retry-delay 1 --retry-all-errors --max-time 20 --user admin:$PASSWORD --write-out "\n"'

# submit FROM TO: a submission that is sent again makes no second job, because of its key.
submit() {
	kubectl exec client -- sh -euc "for i in \$(seq $1 $2); do $call --header \"Idempotency-Key: kind-\$i\" --header 'Content-Type: application/json' \
		--data '{\"jobType\": \"SLEEP_JOB\", \"payload\": {\"sleepSeconds\": 1}}' http://holdfast-api/jobs; done" | jq -r .jobId >>"$work/accepted"
}

submit 1 600 &
submitting=$!
for victim in app.kubernetes.io/component=worker-builtin app.kubernetes.io/component=api cnpg.io/instanceRole=primary; do
	kubectl delete "$(kubectl get pod -l "$victim" -o name | sed -n 1p)"
	sleep 10
done
wait "$submitting"
kubectl wait cluster/holdfast-db --for=condition=Ready --timeout=10m

step "Upgrade while jobs are submitted"
submit 601 800 &
submitting=$!
deploy --set podAnnotations.again=yes
wait "$submitting"

step "Drain a node"
node=$(kubectl get pod -l app.kubernetes.io/component=api -o jsonpath='{.items[0].spec.nodeName}')
kubectl drain "$node" --pod-selector=app.kubernetes.io/name=holdfast --delete-emptydir-data --timeout=10m
kubectl uncordon "$node"

step "Compare what was accepted with what succeeded"
[ "$(sort -u "$work/accepted" | wc -l)" = 800 ] || { echo "800 keys did not make 800 jobs" >&2; exit 1; }
while read -r id; do
	status=$(kubectl exec client -- sh -euc "$call 'http://holdfast-api/jobs/$id?wait=15s'" </dev/null | jq -r .status)
	[ "$status" = COMPLETED ] || { echo "job $id: $status" >&2; exit 1; }
done < <(sort -u "$work/accepted")
kubectl exec deployment/holdfast-api -- orchestrator doctor

step "Call the API from where the network policy refuses it"
if kubectl --namespace default run stranger --image=curlimages/curl:8.16.0 --rm --attach --restart=Never -- --fail --max-time 5 http://holdfast-api.jobs/healthz; then
	echo "a pod of another namespace reached the API" >&2
	exit 1
fi

step "Remove the chart"
helm uninstall holdfast --wait
[ -z "$(kubectl get pods -l app.kubernetes.io/name=holdfast -o name)" ] || { echo "pods are left" >&2; exit 1; }
echo "800 of 800 jobs succeeded"
