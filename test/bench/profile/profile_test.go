package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASampleBelongsToTheFirstPartThatMatches(t *testing.T) {
	for _, c := range []struct {
		process, want string
		stack         []string // as in a profile, the innermost function first
	}{
		{"orchestrator", "garbage collection", []string{"runtime.scanobject", "runtime.gcBgMarkWorker"}},
		{"orchestrator", "scheduler, timers and network poller of Go", []string{"runtime.futex", "runtime.findRunnable", "runtime.schedule", "runtime.mcall"}},
		{"orchestrator", "metrics", []string{
			"go.opentelemetry.io/otel/metric.NewRecordConfig", "github.com/holdfast-jobs/holdfast/runtime/metrics.(*Metrics).Ran",
			"github.com/holdfast-jobs/holdfast/runtime.(*path).finish", "github.com/holdfast-jobs/holdfast/plugin/host/internal/connection.(*Process).finish",
		}},
		{"orchestrator", "claim: decoding rows", []string{
			"runtime.mallocgc", "github.com/holdfast-jobs/holdfast/store.claimShares.func1", "github.com/holdfast-jobs/holdfast/store.(*Store).claimInOrder.func1",
		}},
		{"orchestrator", "start: encoding, sending", []string{
			"google.golang.org/protobuf/proto.MarshalOptions.size", "google.golang.org/grpc.(*clientStream).SendMsg",
			"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection.(*Process).send",
		}},
		{"orchestrator", "start: message", []string{
			"strings.ToValidUTF8", "github.com/holdfast-jobs/holdfast/plugin/host/internal/message.(*starts).add",
			"github.com/holdfast-jobs/holdfast/plugin/host/internal/message.(*Queue).Start", "github.com/holdfast-jobs/holdfast/plugin/host/internal/connection.(*Process).Begin",
		}},
		{"orchestrator", "timers and contexts", []string{
			"github.com/holdfast-jobs/holdfast/runtime.(*timeLimits).end", "github.com/holdfast-jobs/holdfast/runtime.(*attempt).Finished",
		}},
		{"orchestrator", "everything else", []string{"main.main"}},
		{"orchestrator", "claim: statement, lease ids", []string{
			"github.com/jackc/pgx/v5.(*Conn).Query", "github.com/holdfast-jobs/holdfast/store.claimShares", "github.com/holdfast-jobs/holdfast/store.(*Store).claimInOrder.func1",
		}},
		{"handlers", "start: decoding", []string{
			"runtime.newobject", "github.com/holdfast-jobs/holdfast/plugin.readStart", "github.com/holdfast-jobs/holdfast/plugin.codec.Unmarshal",
		}},
		{"handlers", "outcome: encoding", []string{
			"runtime.makeslice", "github.com/holdfast-jobs/holdfast/plugin.writeSuccesses", "github.com/holdfast-jobs/holdfast/plugin.codec.Marshal",
		}},
		{"handlers", "start: session's table, goroutine", []string{"sync.(*Cond).Signal", "github.com/holdfast-jobs/holdfast/plugin.(*pool).send"}},
		{"handlers", "contexts", []string{
			"runtime.newobject", "context.WithCancelCause", "github.com/holdfast-jobs/holdfast/plugin.(*session).begin",
		}},
		{"handlers", "stream: TLS, HTTP/2, sockets", []string{"crypto/tls.(*Conn).Write", "google.golang.org/grpc/internal/transport.(*loopyWriter).run"}},
	} {
		rules := processes[c.process]
		require.Equal(t, c.want, rules[partOf(c.stack, rules)].name, c.stack)
	}
}

func TestStatementsAreKnownByTheirFirstLine(t *testing.T) {
	t.Chdir("../../..")
	byLine, err := names()
	require.NoError(t, err)
	require.Equal(t, "claim", byLine["-- Claim up to $6 jobs for worker $7: queued -> running."])
}

func TestThePageShowsWhatMatters(t *testing.T) {
	c := costs{
		measurement: measurement{runs: 2, jobs: 1000},
		processes: map[string]parts{
			"orchestrator": {{name: "cheap", objects: 3}, {name: "free"}, {name: "dear", microseconds: 2.25, bytes: 64}},
		},
		statements: []statement{{name: "claim", calls: 4, rows: 500, microseconds: 6}, {name: "renew", calls: 1}},
	}
	page := string(c.page())
	require.Regexp(t, regexp.MustCompile(`(?s)\| dear \| 2.25 \| 0.00 \| 64 \|\n\| cheap \| 0.00 \| 3.00 \| 0 \|\n\| all \| 2.25 \| 3.00 \| 64 \|`), page)
	require.Contains(t, page, "| `claim` | 4 | 500.0 | 6.00 |")
	require.NotContains(t, page, "free")
	require.NotContains(t, page, "renew")
}
