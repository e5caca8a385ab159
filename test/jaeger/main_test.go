// Package jaeger runs jobs and reads their traces back from a real Jaeger, as its users
// see them.
//
// HOLDFAST_JAEGER_URL is where Jaeger 2 answers queries, and HOLDFAST_JAEGER_OTLP is where
// it accepts spans by gRPC (default http://127.0.0.1:4317). Without the first, all tests
// are skipped; make test-jaeger requires it.
package jaeger

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	// patience bounds every wait for something that should happen soon.
	patience = rigtest.Patience
	// glance is the pause between two queries.
	glance = 100 * time.Millisecond
)

var (
	// queries is where Jaeger answers queries, taker where it accepts spans.
	queries = strings.TrimSuffix(os.Getenv("HOLDFAST_JAEGER_URL"), "/")
	taker   = cmp.Or(os.Getenv("HOLDFAST_JAEGER_OTLP"), "http://127.0.0.1:4317")
	// bin is where the programs are.
	bin string
)

func TestMain(m *testing.M) {
	if queries != "" {
		var err error
		if bin, err = rigtest.Build("../../bin/jaeger",
			"../../cmd/orchestrator", "../../cmd/handlers", "../demo", "../e2e/testhandlers"); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			os.Exit(1)
		}
	}
	pgtest.Main(m)
}

// need skips the test if there is no Jaeger.
func need(t *testing.T) {
	t.Helper()
	if queries == "" {
		missing, _ := exec.CommandContext(t.Context(), "../../scripts/need.sh", "jaeger").CombinedOutput()
		t.Skip(strings.TrimSpace(string(missing)))
	}
}

// orchestrator starts an orchestrator whose spans, and those of its handlers, go to Jaeger.
func orchestrator(t *testing.T, settings ...string) *rig.Orchestrator {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
		"database.url=" + pgtest.URL(t),
		"worker.id=teller",
		"worker.kill_grace=300ms",
		"worker.crash_policy=release",
		"jobs.default.retry.backoff=fixed",
		"plugins.0.name=shop",
		"plugins.0.path=" + filepath.Join(bin, "testhandlers"),
		"plugins.0.env.SPANS_TO=" + taker,
		"tracing.endpoint=" + taker,
		"tracing.trace_url_template=" + queries + "/trace/{trace_id}",
	}, settings...)...)
	rigtest.Start(t, o)
	return o
}
