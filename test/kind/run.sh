#!/usr/bin/env bash
# Runs the chart on a cluster of its own, by kind, with a database by CloudNativePG: installs
# it, works jobs while a pod of each kind and the primary are deleted, upgrades it, and compares
# the jobs that were accepted with those that succeeded. Needs docker, kind, kubectl, helm, jq, openssl
# and curl, 8 GB of memory, and the network. KEEP=1 keeps the cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=holdfast-test
operator=https://raw.githubusercontent.com/cloudnative-pg/cloudnative-pg/release-1.28/releases/cnpg-1.28.1.yaml
work=$(mktemp -d)
forward=

for program in docker kind kubectl helm jq openssl curl; do
	command -v "$program" >/dev/null || { echo "test/kind/run.sh needs $program" >&2; exit 1; }
done

finish() {
	code=$?
	[ -z "$forward" ] || kill "$forward" 2>/dev/null || true
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
kubectl exec deploy/holdfast-api -- orchestrator doctor

# ask PATH [CURL-OPTION...]: calls the API, through a tunnel that is made anew if its pod is gone.
ask() {
	local path=$1
	shift
	if [ -z "$forward" ] || ! kill -0 "$forward" 2>/dev/null; then
		kubectl port-forward service/holdfast-api 18080:80 >/dev/null 2>&1 &
		forward=$!
	fi
	curl --silent --show-error --fail --retry 60 --retry-delay 1 --retry-all-errors --max-time 20 --user "admin:$password" \
		--header 'Content-Type: application/json' "http://127.0.0.1:18080$path" "$@"
}

# The keys make a submission that is sent again the same job.
submit() {
	for i in $(seq "$1" "$2"); do
		ask /jobs --header "Idempotency-Key: kind-$i" --data '{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}' | jq -r .jobId >>"$work/accepted" || return 1
	done
}

step "Work while pods are deleted"
submit 1 300 &
submitting=$!
for victim in app.kubernetes.io/component=worker-builtin app.kubernetes.io/component=api cnpg.io/instanceRole=primary; do
	kubectl wait pod -l "$victim" --for=condition=Ready --timeout=5m
	kubectl delete "$(kubectl get pod -l "$victim" -o name | head -n 1)" --wait=false
	kubectl wait cluster/holdfast-db --for=condition=Ready --timeout=10m
done
wait "$submitting"
forward=

step "Upgrade, while jobs are worked"
submit 301 400 &
submitting=$!
deploy --set podAnnotations.again=yes
wait "$submitting"
forward=

step "Drain a node"
node=$(kubectl get pod -l app.kubernetes.io/component=api -o jsonpath='{.items[0].spec.nodeName}')
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout=10m
kubectl uncordon "$node"

step "Compare what was accepted with what succeeded"
[ "$(sort -u "$work/accepted" | wc -l)" = 400 ] || { echo "400 keys did not make 400 jobs" >&2; exit 1; }
while read -r id; do
	for _ in $(seq 120); do
		status=$(ask "/jobs/$id" | jq -r .status)
		case $status in COMPLETED | FAILED | CANCELED) break ;; esac
		sleep 1
	done
	[ "$status" = COMPLETED ] || { echo "job $id: $status" >&2; exit 1; }
done < <(sort -u "$work/accepted")
kubectl exec deploy/holdfast-api -- orchestrator doctor

step "Remove the chart"
helm uninstall holdfast --wait
[ -z "$(kubectl get pods -l app.kubernetes.io/name=holdfast -o name)" ] || { echo "pods are left" >&2; exit 1; }
echo "400 of 400 jobs succeeded, once each"
