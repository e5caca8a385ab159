package conformance

// manifestCheck is the check that others depend on.
const manifestCheck = "manifest"

// schemaCheck is the check for payloads that a schema refuses.
const schemaCheck = "schema"

// checks are all rules, from the first contact to the last. Those that report what
// all others have seen come last.
func checks() []check {
	return []check{
		{
			name:     "by-hand",
			expected: "started without the orchestrator's cookie, it says what it is and ends, with an exit code other than 0",
			fix:      "compare the variable HOLDFAST_HANDLER before anything else, as plugin.Serve does",
			runAlone: checkByHand,
		}, {
			name:     "handshake",
			expected: "it listens on a unix socket in PLUGIN_UNIX_SOCKET_DIR and prints 1|1|unix|<path>|grpc|<certificate> on a line of its own",
			fix:      "print and flush the line as soon as the server listens, with version 1 of the protocol; see docs/reference/protocol.md",
			run:      checkHandshake,
		}, {
			name:     manifestCheck,
			expected: "Describe answers with at least one job type, and with names, times and numbers within bounds",
			fix:      "declare what the message names; an orchestrator does not use a plugin whose manifest it refuses",
			run:      checkManifest,
		}, {
			name:     schemaCheck,
			expected: "each schema is valid JSON Schema, accepts the payloads of these checks, and refuses others",
			fix:      "correct the schema where the message says; it must not refer to anything outside of itself",
			needs:    anything, runAlone: checkSchema,
		}, {
			name:     "health",
			expected: "grpc.health.v1 answers SERVING for the service \"plugin\"",
			fix:      "register the health service and set the status of \"plugin\"",
			needs:    anything, run: checkHealth,
		}, {
			name:     "success",
			expected: "the job succeeds",
			fix:      "read the message, or give a payload that succeeds with --payload",
			needs:    needsWork, run: checkSuccess,
		}, {
			name:     "failure",
			expected: "a job that fails is reported as failed, with a message, and the process continues",
			fix:      "report errors and panics of a handler as Failed; the process must survive them",
			needs:    needsFailure, runAlone: checkFailure,
		}, {
			name:     "unknown-type",
			expected: "a job of a type without a handler fails with a message, and the process continues",
			fix:      "report Failed, not permanent, for a type without a handler: another version may have one",
			needs:    anything, run: checkUnknownType,
		}, {
			name:     "duplicate",
			expected: "the same job with the same fence, started twice, has an outcome for each handle",
			fix:      "identify attempts by their handle, which is never reused, and not by the job's id",
			needs:    needsWork, run: checkDuplicate,
		}, {
			name:     "large-payload",
			expected: "a message with a payload of 5 MiB is accepted like any other",
			fix:      "raise gRPC's message limits to 64 MiB in both directions",
			needs:    anything, run: checkLargePayload,
		}, {
			name:     "cancel",
			expected: "a job that is canceled, timed out or shut down stops in time and reports it",
			fix:      "stop the handler's function on Cancel, and report Canceled (or Failed, for a timeout) when it returns",
			needs:    needsSlow, run: checkCancel,
		}, {
			name:     "deadline",
			expected: "an attempt with a timeout of one second stops then, by itself or on Cancel, and fails with the code \"timeout\"",
			fix:      "stop the handler's function after timeout_ms or on Cancel, and report Failed with that code",
			needs:    needsSlow, run: checkDeadline,
		}, {
			name:     "lease-lost",
			expected: "an attempt whose lease is not extended has stopped, or its process has exited, when the lease ends",
			fix:      "stop the attempt when a sixth of lease_ms is left, and exit if it still runs at the end: another worker may run the job then",
			needs:    needsSlow, run: checkLeaseLost,
		}, {
			name:     "lease-extended",
			expected: "an attempt whose lease is extended in time continues",
			fix:      "restart the lease with each Extension that names the handle",
			needs:    needsSlow, runAlone: checkLeaseExtended,
		}, {
			name:     "busy-health",
			expected: "with as many jobs as it accepts at once, its health check answers within 2 s",
			fix:      "answer health checks on a thread that no job can occupy",
			needs:    needsSlow, run: checkBusyHealth,
		}, {
			name:     "signals",
			expected: "SIGINT and SIGTERM do not end it: the orchestrator decides when it ends",
			fix:      "receive the signals and do nothing; a terminal sends them to every process",
			needs:    anything, run: checkSignals,
		}, {
			name:     "drain",
			expected: "after drain it finishes its attempts, ends the stream, and exits 0",
			fix:      "wait for the attempts, send their outcomes, end the Work call, and exit 0 when standard input ends",
			needs:    anything, run: checkDrain,
		}, {
			name:     "stdin",
			expected: "when its standard input ends, it exits at once, even with jobs: the orchestrator is gone",
			fix:      "read standard input in the background, and exit when it ends",
			needs:    anything, run: checkStdin,
		}, {
			name:     "sigkill",
			expected: "killed in the middle of a job, with its process group, it leaves no process behind",
			fix:      "keep every program that a handler starts in the process group: no setsid, no setpgid, no daemon",
			needs:    needsOrphans, run: checkKill,
		}, {
			name:     "noise",
			expected: "it prints at most 100 lines a second, which is what the orchestrator logs",
			fix:      "log through the stream, and do not print in a loop",
			needs:    anything, run: checkNoise,
		}, {
			name:     "outcomes",
			expected: "in all checks, it sends one outcome for each start, progress and checkpoints in JSON before it, and nothing for other handles",
			fix:      "send the outcome once, as the last message for its handle",
			needs:    anything, runAlone: checkOutcomes,
		}, {
			name:     "leftovers",
			expected: "in all checks, no program outlives its process",
			fix:      "keep every program that a handler starts in the process group: no setsid, no setpgid, no daemon",
			needs:    anything, runAlone: checkLeftovers,
		},
	}
}
