package conformance

// manifestCheck is the one that others build upon.
const manifestCheck = "manifest"

// schemaCheck is the one for payloads that a schema refuses.
const schemaCheck = "schema"

// checks are all rules, from the first contact to the last. The ones that
// collect what the others have seen come last.
func checks() []check {
	return []check{
		{
			name:     "by-hand",
			expected: "started without the orchestrator's cookie, it says what it is and ends, with an exit code other than 0",
			mend:     "compare the variable HOLDFAST_HANDLER before anything else; plugin.Serve does",
			run:      checkByHand,
		}, {
			name:     "handshake",
			expected: "it listens on a unix socket in PLUGIN_UNIX_SOCKET_DIR and prints 1|1|unix|<path>|grpc|<certificate> as a line of its own",
			mend:     "print the line, flushed, as soon as the server listens, with version 1 of the protocol; see docs/reference/protocol.md",
			run:      checkHandshake,
		}, {
			name:     manifestCheck,
			expected: "Describe answers with at least one job type, and with names, times and numbers within bounds",
			mend:     "declare what the message names; nothing is launched for a manifest that is refused",
			run:      checkManifest,
		}, {
			name:     schemaCheck,
			expected: "each schema is JSON Schema that the orchestrator can use, takes the payloads of these checks, and refuses others",
			mend:     "correct the schema at the place that is named; it must refer to nothing outside of itself",
			needs:    anything, run: checkSchema,
		}, {
			name:     "health",
			expected: "grpc.health.v1 answers SERVING for the service \"plugin\"",
			mend:     "register the health service and set the status of \"plugin\"",
			needs:    anything, run: checkHealth,
		}, {
			name:     "success",
			expected: "the job succeeds",
			mend:     "look at the message; or give a payload that succeeds with --payload",
			needs:    needsWork, run: checkSuccess,
		}, {
			name:     "failure",
			expected: "a job that fails is reported as failed, with a message, and the process goes on",
			mend:     "report errors and panics of a handler as Failed; the process must outlive them",
			needs:    needsFailure, run: checkFailure,
		}, {
			name:     "unknown-type",
			expected: "a job of a type that it does not serve fails with a message, and the process goes on",
			mend:     "answer Failed for a type without a handler, not permanently: another version may serve it",
			needs:    anything, run: checkUnknownType,
		}, {
			name:     "duplicate",
			expected: "the same job with the same fence, started twice, is answered for each handle",
			mend:     "keep attempts apart by their handle, which is never used again, not by the job's id",
			needs:    needsWork, run: checkDuplicate,
		}, {
			name:     "large-payload",
			expected: "a message with a payload of 5 MiB is taken like any other",
			mend:     "raise gRPC's limits for messages, in both directions, to 64 MiB",
			needs:    anything, run: checkLargePayload,
		}, {
			name:     "cancel",
			expected: "a job that is canceled, timed out or shut down stops in time, and says so",
			mend:     "tell the handler's function when a Cancel comes, and report Canceled (or Failed, for a timeout) when it returns",
			needs:    needsSlow, run: checkCancel,
		}, {
			name:     "deadline",
			expected: "an attempt with a second to run stops then, by itself or when it is told, and fails with the code \"timeout\"",
			mend:     "tell the handler's function when timeout_ms have passed or a Cancel comes, and report Failed with that code",
			needs:    needsSlow, run: checkDeadline,
		}, {
			name:     "lease-lost",
			expected: "an attempt whose lease is not extended has stopped, or its process ended, when the lease is over",
			mend:     "stop the attempt when a sixth of lease_ms is left, and exit when it still runs at the end: somebody else may run the job then",
			needs:    needsSlow, run: checkLeaseLost,
		}, {
			name:     "lease-extended",
			expected: "an attempt whose lease is extended in time goes on",
			mend:     "count the lease anew from each Extension that names the handle",
			needs:    needsSlow, run: checkLeaseExtended,
		}, {
			name:     "busy-health",
			expected: "with as many jobs as it wants at once, its health answers within 2 s",
			mend:     "answer health on a thread that no job can occupy",
			needs:    needsSlow, run: checkBusyHealth,
		}, {
			name:     "signals",
			expected: "SIGINT and SIGTERM do not end it: the orchestrator decides",
			mend:     "take the signals and do nothing; a terminal sends them to everybody",
			needs:    anything, run: checkSignals,
		}, {
			name:     "drain",
			expected: "told to drain, it finishes what it has, ends the stream, and exits 0",
			mend:     "after drain, wait for the attempts, send their outcomes, end the Work call, and exit 0 when standard input ends",
			needs:    anything, run: checkDrain,
		}, {
			name:     "stdin",
			expected: "when its standard input ends, it ends at once, whatever it does: the orchestrator is gone",
			mend:     "read standard input in the background and exit when it ends",
			needs:    anything, run: checkStdin,
		}, {
			name:     "sigkill",
			expected: "killed in the middle of a job, with its process group, it leaves nothing behind",
			mend:     "let every program that a handler starts stay in the process group: no setsid, no setpgid, no daemon",
			needs:    anything, run: checkKill,
		}, {
			name:     "noise",
			expected: "it prints fewer lines than the orchestrator logs, which is 100 a second",
			mend:     "log through the stream, and print nothing in a loop",
			needs:    anything, run: checkNoise,
		}, {
			name:     "outcomes",
			expected: "in all of these checks, one outcome for each start, before it progress and checkpoints in JSON, and nothing for other handles",
			mend:     "send the outcome once, as the last message about its handle",
			needs:    anything, run: checkOutcomes,
		}, {
			name:     "leftovers",
			expected: "in all of these checks, nothing outlived its process",
			mend:     "let every program that a handler starts stay in the process group: no setsid, no setpgid, no daemon",
			needs:    anything, run: checkLeftovers,
		},
	}
}
