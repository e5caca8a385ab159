package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// leaseFor is the length of the orchestrator's leases. It is short, so that the demo can
// wait for the end of one.
const leaseFor = 2 * time.Second

// stage is what the demo needs: an orchestrator, a mailbox, and a web server that jobs
// call.
type stage struct {
	*rig.Orchestrator
	dataDir string
	mailbox *rig.Mailbox
	web     *httptest.Server
	calls   chan call
	log     *os.File
}

// call is a request that an HTTP_REQUEST job has made.
type call struct {
	path string
	at   time.Time
}

func newStage(ctx context.Context, bin, dir string) (*stage, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	s := &stage{dataDir: filepath.Join(dir, "postgres"), calls: make(chan call, 1000)}
	if s.log, err = os.Create(filepath.Join(dir, "orchestrator.log")); err != nil {
		return nil, err
	}
	if s.mailbox, err = rig.OpenMailbox(ctx); err != nil {
		return nil, err
	}
	s.web = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.calls <- call{path: r.URL.Path, at: time.Now()}
	}))
	settings := []string{
		"embedded.data_dir=" + s.dataDir,
		"worker.id=demo",
		"worker.lease=" + leaseFor.String(),
		"worker.drain_timeout=10s",
		"worker.crash_policy=release",
		"worker.kill_grace=500ms",
		"jobs.types.FAIL_JOB.retry.backoff=fixed",
		"jobs.types.FAIL_JOB.retry.initial_delay=300ms",
		"jobs.types.SLEEP_JOB.retry.backoff=fixed",
		"jobs.types.SLEEP_JOB.retry.initial_delay=500ms",
		"plugins.0.name=builtin",
		"plugins.0.path=" + filepath.Join(bin, "handlers"),
		"plugins.0.concurrency=50",
		"plugins.0.env.HTTP_REQUEST_ALLOW_PRIVATE=true",
	}
	for _, variable := range s.mailbox.Environment() {
		settings = append(settings, "plugins.0.env."+variable)
	}
	s.Orchestrator, err = rig.New(ctx, filepath.Join(bin, "orchestrator"), dir, s.log, settings...)
	return s, err
}

// close ends everything that still runs.
func (s *stage) close() error {
	var err error
	if s.Running() {
		err = s.Kill()
	}
	s.web.Close()
	return errors.Join(err, s.mailbox.Close(), s.log.Close())
}

// handler returns the plugin process.
func (s *stage) handler() (rig.Process, error) {
	running := s.Handlers("handlers")
	if len(running) == 0 {
		return rig.Process{}, errors.New("no handler process is running")
	}
	return running[0], nil
}
