package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Gates are keys of indexes, whose rows have at most 2,704 bytes.
func TestTheLongestNamesFitIntoGates(t *testing.T) {
	s := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	// longest has characters of four bytes, which hardly compress.
	longest := func() string {
		text := make([]rune, job.MaxKeyChars)
		for i := range text {
			text[i] = 0x20000 + random.Int32N(0xa000)
		}
		return string(text)
	}
	rules := limitedBy(concurrency(job.LimitTenant, job.EveryName, 1), concurrency(job.LimitType, job.EveryName, 1))
	terms := job.Terms{
		ConcurrencyKey: longest(), ConcurrencyLimit: 1, OnConflict: job.ConflictCancelOldest, FairnessKey: longest(),
	}
	tenant, jobType := longest(), longest()
	parks(t, s, rules, terms, func(one *job.Submission) { one.Tenant, one.Type = tenant, jobType })
	require.Equal(t, 1, admitAll(t, s, rules))
}
