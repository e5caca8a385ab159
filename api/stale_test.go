package api_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// replicated lets what the ledger answers be so old, unless it must be fresh.
func replicated(l *ledger, age time.Duration) {
	l.looking = func(ctx context.Context) error {
		if asked := job.StalenessOf(ctx); !asked.Fresh {
			asked.Note(age)
		}
		return nil
	}
}

const ageHeader = "X-Holdfast-Age"

func TestAnswersFromAReplicaSayHowOldTheyAre(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	stale := []string{"/debug/queues", "/debug/workers/summary", "/debug/series", "/metrics"}
	for _, path := range stale {
		require.NotContains(t, send(h, "GET", path, "").Header(), ageHeader, path)
	}
	replicated(l, 1234*time.Millisecond)
	for _, path := range stale {
		answer := send(h, "GET", path, "")
		require.Equal(t, 200, answer.Code)
		require.Equal(t, "1.3", answer.Header().Get(ageHeader), "%s: rounded up", path)
		answer = send(h, "GET", path, "", "Cache-Control: max-age=0, No-Cache")
		require.NotContains(t, answer.Header(), ageHeader, path)
	}
	require.NotContains(t, send(h, "GET", "/debug/workers", "").Header(), ageHeader, "these are current")
}

func TestRequestsThatShareAnAnswerShareItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		computing, calls := make(chan struct{}), 0
		l.looking = func(ctx context.Context) error {
			calls++
			<-computing
			job.StalenessOf(ctx).Note(time.Second)
			return nil
		}
		h := newAPI(t, l)
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 3)
		for i := range answers {
			all.Go(func() { answers[i] = send(h, "GET", "/metrics", "") })
		}
		synctest.Wait()
		close(computing)
		all.Wait()
		require.Equal(t, 1, calls)
		for _, answer := range answers {
			require.Equal(t, "1.0", answer.Header().Get(ageHeader))
		}
	})
}

func TestOperatorsSeeHowTheReplicaIsUsed(t *testing.T) {
	l := newLedger()
	l.replica = v1.Replica{Configured: true, Reason: "it is behind", LagSeconds: new(12.5), MaxLagSeconds: 10}
	require.JSONEq(t, `{"configured": true, "used": false, "reason": "it is behind", "lagSeconds": 12.5, "maxLagSeconds": 10}`,
		send(newAPI(t, l), "GET", "/debug/replica", "").Body.String())
}
