package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheBatchHintFollowsTheLastClaim(t *testing.T) {
	pool := claimPlan{pool: job.Pool{Plugin: "p"}}
	for brought, asked := range map[int]int{0: 100, 1: minHint, 20: 40, 49: 98, 50: 100, 500: 100} {
		c := claimer{batches: map[string]int{"p": 2 * brought, "other": 2}}
		require.Equal(t, asked, c.batchHint(pool, 100), "after a claim that has brought %d", brought)
	}
	c := claimer{batches: map[string]int{"p": 2}}
	require.Equal(t, 3, c.batchHint(pool, 3), "never more than there is room for")
}

func TestWhatIsKnownOfAPluginEndsWithIt(t *testing.T) {
	p := claimPlan{pool: job.Pool{Plugin: "p", Types: []string{"A"}}, types: []string{"A"}}
	q := claimPlan{pool: job.Pool{Plugin: "q", Types: []string{"B"}}, types: []string{"B"}}
	c := claimer{exhausted: make(map[string]string), expected: make(map[string]bool), again: make(map[string]bool)}
	c.exhaust(p, 0)
	c.exhaust(q, 0)
	require.Empty(t, c.due(p).types)
	require.Empty(t, c.due(q).types)

	c.expect([]string{"A", "B"})
	c.forget([]claimPlan{p})
	require.Equal(t, map[string]bool{"A": true}, c.expected)
	c.exhaust(p, 0)
	require.Empty(t, c.due(p).types)
	require.Equal(t, []string{"B"}, c.due(q).types, "the hint came while it was away")
}
