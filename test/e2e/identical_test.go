package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// A hundred clients send each submission at the same time to three servers. If they get
// no answer, they try another server. One server is killed meanwhile.
func TestIdenticalSubmissionsToSeveralServersMakeOneJob(t *testing.T) {
	const keys, racers, killAfter = 20, 100, 400
	url := pgtest.URL(t)
	servers := []*rig.Orchestrator{
		orchestrator(t, url, plugin(0, "builtin", "handlers")...), orchestrator(t, url), orchestrator(t, url),
	}
	for _, server := range servers {
		rigtest.Start(t, server)
	}

	var answered, unanswered atomic.Int32
	killNow := sync.OnceFunc(func() { require.NoError(t, servers[2].Kill()) })
	var mu sync.Mutex
	ids := make(map[string]map[string]int) // key, id, answers
	all, ctx := errgroup.WithContext(t.Context())
	for racer := range racers {
		all.Go(func() error {
			for k := range keys {
				key := fmt.Sprintf("key-%d", k)
				id, missed, err := submitSomewhere(ctx, servers, racer+k, rig.Submission{
					JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1}, IdempotencyKey: key,
				})
				if err != nil {
					return err
				}
				unanswered.Add(int32(missed))
				mu.Lock()
				if ids[key] == nil {
					ids[key] = make(map[string]int)
				}
				ids[key][id]++
				mu.Unlock()
				if answered.Add(1) == killAfter {
					killNow()
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())

	require.Len(t, ids, keys)
	for key, answers := range ids {
		require.Len(t, answers, 1, "one id for %s", key)
		for _, count := range answers {
			require.Equal(t, racers, count)
		}
	}
	require.NotZero(t, unanswered.Load(), "the kill hit somebody")
	require.Equal(t, keys, count(t, pool(t, url), "select count(*) from jobs"))
}

// submitSomewhere submits to one server after another until one answers. It returns how
// many did not answer.
func submitSomewhere(ctx context.Context, servers []*rig.Orchestrator, first int, s rig.Submission) (id string, missed int, err error) {
	for i := range 2 * len(servers) {
		id, err = servers[(first+i)%len(servers)].Submit(ctx, s)
		if err == nil {
			return id, i, nil
		}
	}
	return "", 2 * len(servers), err
}
