package runtime

import (
	"crypto/rand"
	"os"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// NewWorker returns a new identity for this process, under the configured name and with
// these roles. No two calls return the same one: after a restart, a process is a different worker.
func NewWorker(name string, roles job.Roles) job.Worker {
	worker := job.Worker{ID: name + "/" + rand.Text()[:12], Host: host(), PID: os.Getpid(), Roles: roles}
	started, known := startOf(worker.PID)
	if !known {
		worker.Host = unknownHost
	}
	worker.PIDStarted = started
	return worker
}

// processGone reports whether the worker's process has certainly ended. Call it only for
// workers with this process's Host, where process ids have the same meaning.
func processGone(worker job.Worker) bool {
	started, known := startOf(worker.PID)
	return worker.Host != unknownHost && known && started != worker.PIDStarted
}

// unknownHost is the Host of a worker whose process no other worker can check.
const unknownHost = "unknown"
