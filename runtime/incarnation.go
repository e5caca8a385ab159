package runtime

import (
	"crypto/rand"
	"os"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// NewWorker makes an identity for this process under the configured name. Two
// calls never return the same: a restart is a worker of its own.
func NewWorker(name string) job.Worker {
	worker := job.Worker{ID: name + "/" + rand.Text()[:12], Host: host(), PID: os.Getpid()}
	started, known := startOf(worker.PID)
	if !known {
		worker.Host = unknownHost
	}
	worker.PIDStarted = started
	return worker
}

// processGone reports whether it is certain that the worker's process has
// ended. It is only ever asked about workers with our own Host, whose process
// ids mean the same to us as to them.
func processGone(worker job.Worker) bool {
	started, known := startOf(worker.PID)
	return worker.Host != unknownHost && known && started != worker.PIDStarted
}

// unknownHost is the Host of a worker that nobody can look at from outside.
const unknownHost = "unknown"
