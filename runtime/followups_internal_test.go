package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// accepting makes jobs of follow-ups by the function, which gets their text.
func accepting(accept func(text string) error) func(*Config) {
	made := byte(0)
	return func(cfg *Config) {
		cfg.Accept = func(_ context.Context, _ *jobs.Service, text []byte, tenant string, _ job.Trace) (job.Submission, error) {
			made++
			return job.Submission{ID: job.ID{0: 0xff, 15: made}, Tenant: tenant, Payload: text}, accept(string(text))
		}
	}
}

// bearing is a success with follow-ups.
func bearing(texts ...string) job.Outcome {
	success := job.Outcome{Kind: job.Success}
	for _, text := range texts {
		success.FollowUps = append(success.FollowUps, []byte(text))
	}
	return success
}

// written carries what was settled.
type written chan job.Settlement

func (e written) settle(batch []job.Settlement) ([]job.SettleResult, error) {
	results := make([]job.SettleResult, len(batch))
	for i, one := range batch {
		e <- one
		results[i] = job.Settled
	}
	return results, nil
}

func TestFollowUpsAreAcceptedBeforeTheirSuccessIsSettled(t *testing.T) {
	settled := make(chan job.Settlement, 10)
	p := settling(t, &ledger{follow: func(batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
		settled <- batch[0]
		return []job.SettleResult{job.Settled}, make([][]job.Submitted, 1), nil
	}}, accepting(func(string) error { return nil }))
	a := begun(p, 1)
	a.claimed.Tenant = "acme"
	a.Finished(bearing(`{"n":1}`, `{"n":2}`))
	one := <-settled
	require.Equal(t, job.Succeeded, one.To)
	require.Len(t, one.FollowUps, 2)
	for _, child := range one.FollowUps {
		require.Equal(t, a.claimed.JobID, child.Parent)
		require.Equal(t, "acme", child.Tenant)
	}
}

func TestARefusedFollowUpFailsTheAttempt(t *testing.T) {
	mistake := v1.Mistake{Location: "#/payload/n", Message: "must be at least 1"}
	for name, c := range map[string]struct {
		err     error
		kind    job.OutcomeKind
		message string
	}{
		"invalid":      {v1.Invalid(mistake), job.PermanentFailure, "#/followUps/1/payload/n must be at least 1"},
		"other tenant": {v1.NewProblem(403, "not allowed for this tenant"), job.PermanentFailure, "#/followUps/1: not allowed for this tenant"},
		"unknown type": {errors.Join(v1.Invalid(v1.Mistake{Location: "#/jobType", Message: "is new"}), job.ErrUnknownType), job.Failure, "#/followUps/1/jobType is new"},
		"many mistakes": {
			v1.Invalid(mistake, mistake, mistake, mistake, mistake, mistake), job.PermanentFailure,
			"#/followUps/1/payload/n must be at least 1; #/followUps/1/payload/n must be at least 1; #/followUps/1/payload/n must be at least 1; " +
				"#/followUps/1/payload/n must be at least 1; #/followUps/1/payload/n must be at least 1; and 1 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			settled := make(written, 10)
			p := settling(t, &ledger{settle: settled.settle}, accepting(func(text string) error {
				if text == "bad" {
					return c.err
				}
				return nil
			}))
			begun(p, 1).Finished(bearing("good", "bad", "good"))
			one := <-settled
			require.Equal(t, c.kind, one.Kind)
			require.Equal(t, job.CodeFollowUpsRefused, one.Code)
			require.Equal(t, c.message, one.Error)
			require.Empty(t, one.FollowUps)
		})
	}
}

// The database, or the room for slow checks, is away when the follow-ups are looked at.
func TestFollowUpsThatCannotBeCheckedYetAreCheckedAgain(t *testing.T) {
	for name, problem := range map[string]error{"database": job.ErrUnavailable, "checks": v1.Unavailable("too many slow checks")} {
		t.Run(name, func(t *testing.T) {
			others := make(written, 10)
			parents := make(chan job.Settlement, 10)
			away := make(chan struct{})
			p := settling(t, &ledger{settle: others.settle, follow: func(batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
				for _, one := range batch {
					parents <- one
				}
				return make([]job.SettleResult, len(batch)), make([][]job.Submitted, len(batch)), nil
			}}, accepting(func(text string) error {
				select {
				case <-away:
				default:
					if text == "later" {
						return problem
					}
				}
				return nil
			}))
			p.parents.drain()
			begun(p, 1).Finished(bearing("now", "later"))
			begun(p, 2).Finished(bearing("now"))
			begun(p, 3).Finished(job.Outcome{Kind: job.Success})
			require.Equal(t, job.ID{3}, (<-others).JobID, "an ending without follow-ups waits for none")
			close(away)
			seen := map[job.ID]int{}
			for len(seen) < 2 {
				one := <-parents
				seen[one.JobID] = len(one.FollowUps)
			}
			require.Equal(t, map[job.ID]int{{1}: 2, {2}: 1}, seen)
		})
	}
}

// The ids of the follow-ups stay the same, so that a lost answer never makes a second set.
func TestASettlementThatIsTriedAgainHasTheSameFollowUps(t *testing.T) {
	tries := make(chan []job.Submission, 10)
	p := settling(t, &ledger{follow: func(batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
		tries <- batch[0].FollowUps
		switch len(tries) {
		case 1:
			return nil, nil, job.ErrUnavailable
		case 2:
			return []job.SettleResult{job.Canceling}, make([][]job.Submitted, 1), nil
		}
		return []job.SettleResult{job.Settled}, make([][]job.Submitted, 1), nil
	}}, accepting(func(string) error { return nil }))
	begun(p, 1).Finished(bearing("a", "b"))
	require.Eventually(t, func() bool { return len(tries) == 3 }, patience, time.Millisecond)
	first := <-tries
	require.Equal(t, first, <-tries)
	require.Equal(t, first, <-tries)
}

func TestAFollowUpWhoseKeyIsReusedFailsTheAttempt(t *testing.T) {
	settled := make(written, 10)
	p := settling(t, &ledger{settle: settled.settle, follow: func([]job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
		return []job.SettleResult{job.Refused}, [][]job.Submitted{{{}, {Err: job.ErrKeyReused}}}, nil
	}}, accepting(func(string) error { return nil }))
	begun(p, 1).Finished(bearing("a", "b"))
	one := <-settled
	require.Equal(t, job.PermanentFailure, one.Kind)
	require.Equal(t, job.CodeFollowUpsRefused, one.Code)
	require.Equal(t, "#/followUps/1/idempotencyKey was used for a different job type or payload", one.Error)
}
