# engine.sh is sourced by scripts that need a Docker engine, in the root of the checkout.
# If none answers, it starts one, which ends with the script.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

start_engine() {
	[ "$(id -u)" = 0 ] || {
		echo "no Docker engine answers: start one (sudo systemctl start docker), or run this as root" >&2
		exit 1
	}
	scripts/need.sh docker
	engine=$(mktemp -d /tmp/holdfast-docker-XXXXXX)
	[ -e /sys/class/net/docker0 ] || bridge=docker0
	# Published ports use Docker's proxy, so the machine's packet filter and routing
	# stay unchanged.
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

# Scripts can redefine before_exit to clean up before the engine stops.
before_exit() { :; }

clean_up() {
	status=$?
	before_exit || true
	stop_dockerd
	[ -z "$bridge" ] || ip link delete "$bridge" 2>/dev/null || true
	if [ -n "$engine" ]; then
		umount "$engine/data" "$engine"/exec/netns/* 2>/dev/null || true # the engine may have left them mounted
		rm -rf "$engine"
	fi
	exit $status
}

engine='' dockerd='' bridge=''
trap clean_up EXIT
trap 'exit 130' INT TERM
docker info >/dev/null 2>&1 || start_engine
