package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAClaimAsksForAboutAsManyAsThereAreLikelyToBe(t *testing.T) {
	pool := share{pool: job.Pool{Plugin: "p"}}
	for brought, asked := range map[int]int{0: 100, 1: leastBite, 20: 40, 49: 98, 50: 100, 500: 100} {
		c := claimer{bites: map[string]int{"p": 2 * brought, "other": 2}}
		require.Equal(t, asked, c.bite(pool, 100), "after a claim that has brought %d", brought)
	}
	c := claimer{bites: map[string]int{"p": 2}}
	require.Equal(t, 3, c.bite(pool, 3), "never more than there is room for")
}
