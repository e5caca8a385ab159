package plugin

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// types are the names of the job types, sorted.
func (b binary) types() []string { return slices.Sorted(maps.Keys(b.handlers)) }

// manifest describes the binary to the orchestrator.
func (b binary) manifest() *handlerv1.DescribeResponse {
	m := &handlerv1.DescribeResponse{Version: b.version, Concurrency: uint32(b.concurrency)}
	for _, jobType := range b.types() {
		h := b.handlers[jobType]
		declared := &handlerv1.JobType{
			Name: jobType, Schema: h.schema, MaxAttempts: uint32(h.maxAttempts), TimeoutMs: millis(h.timeout),
			Description: h.description, Concurrency: uint32(h.concurrency),
		}
		if h.retry != nil {
			declared.Retry = h.retry.wire()
		}
		if h.terms != nil {
			declared.Terms = h.terms.wire()
		}
		m.JobTypes = append(m.JobTypes, declared)
	}
	return m
}

// introduce says what the binary is, to someone who ran it by hand.
func (b binary) introduce(w io.Writer) {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	fmt.Fprintf(w, "This is a Holdfast plugin, version %s. It has handlers for the job types\n\n", b.version)
	for _, jobType := range b.types() {
		fmt.Fprintf(w, "  %s\n", strings.TrimSpace(jobType+"  "+b.handlers[jobType].description))
	}
	fmt.Fprintf(w, `
An orchestrator starts it; you do not run it by hand. Add it to config.yaml:

  plugins:
    - name: %s
      path: %s

Start the orchestrator with "orchestrator serve --config config.yaml". Then submit
a job:

  curl localhost:8080/jobs -H 'Content-Type: application/json' \
    -d '{"jobType": %q, "payload": {}}'
`, filepath.Base(path), path, b.types()[0])
}
