package host

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// jobsThere is a ledger with jobs.
type jobsThere struct {
	unfinished map[string]int64
	payloads   map[string][]Payload
	err        error
}

func (l jobsThere) Unfinished(_ context.Context, jobType string) (int64, error) {
	return l.unfinished[jobType], l.err
}

func (l jobsThere) Waiting(_ context.Context, jobType string) ([]Payload, error) {
	return l.payloads[jobType], l.err
}

func (l jobsThere) OwnTypes(context.Context, string, []string, []string) error { return nil }

func TestAVersionThatCannotRunAcceptedJobsIsRefusedUnlessForced(t *testing.T) {
	fits, refused := Payload{JobID: job.ID{1}, JSON: []byte(`{"to":"x"}`)}, Payload{JobID: job.ID{2}, JSON: []byte(`{}`)}
	for name, c := range map[string]struct {
		ledger Ledger
		flags  []string
		result job.SwapResult
		reason string
	}{
		"a type without jobs is dropped": {
			ledger: jobsThere{}, flags: []string{"-types", "TEST"}, result: job.SwapPromoted,
		},
		"a type with jobs is dropped": {
			ledger: jobsThere{unfinished: map[string]int64{"OTHER": 3}},
			flags:  []string{"-types", "TEST"}, result: job.SwapRefused,
			reason: "it drops the job type OTHER, but 3 such jobs wait or run",
		},
		"a schema takes what waits": {
			ledger: jobsThere{payloads: map[string][]Payload{"TEST": {fits}}},
			flags:  []string{"-types", "TEST,OTHER", "-schema", `{"required":["to"]}`}, result: job.SwapPromoted,
		},
		"a schema refuses what waits": {
			ledger: jobsThere{payloads: map[string][]Payload{"TEST": {fits, refused}}},
			flags:  []string{"-types", "TEST,OTHER", "-schema", `{"required":["to"]}`}, result: job.SwapRefused,
			reason: "its schema of the job type TEST refuses the payload of job " + refused.JobID.String(),
		},
		"nobody can tell": {
			ledger: jobsThere{err: errors.New("no database")},
			flags:  []string{"-types", "TEST"}, result: job.SwapAbandoned, reason: "no database",
		},
		"nobody is asked": {flags: []string{"-types", "TEST"}, result: job.SwapPromoted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVersioned(t)
			v.install("-version", "1", "-types", "TEST,OTHER")
			config := v.config()
			config.Watch, config.Canary.Period = false, 0
			h := startHost(t, func(s *Settings) { s.Ledger = c.ledger }, config)
			h.awaitUp("plugin", 1)
			v.install(append(c.flags, "-version", "2")...)
			swap := h.swap(false)
			require.Equal(t, c.result, swap.Result, swap.Reason)
			require.Contains(t, swap.Reason, c.reason)
			if c.result == job.SwapPromoted {
				return
			}
			require.Equal(t, "1", h.status("plugin").Version)
			require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
			require.Equal(t, job.SwapPromoted, h.swap(true).Result)
			require.Equal(t, "2", h.status("plugin").Version)
		})
	}
}

func TestOtherPluginsCannotTakeTheTypesOfACandidate(t *testing.T) {
	v := newVersioned(t)
	v.install("-version", "1", "-types", "TEST")
	config := v.config()
	config.Watch = false
	h := startHost(t, nil, config, misbehaving("neighbour", "-types", "OTHER"))
	h.awaitUp("plugin", 1)
	h.awaitUp("neighbour", 1)
	v.install("-version", "2", "-types", "TEST,OTHER")
	swap := h.swap(true)
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Contains(t, swap.Reason, "job type OTHER is already served by plugin neighbour")

	v.install("-version", "3", "-types", "TEST,NEW")
	require.Equal(t, job.SwapPromoted, h.swap(false).Result)
	require.Equal(t, []string{"TEST", "NEW"}, h.status("plugin").JobTypes)
	a, r := assignment(`{}`), newReport()
	a.Type = "NEW"
	_, err := h.Start("plugin", a, r)
	require.NoError(t, err)
	require.Equal(t, job.Success, h.outcome(r).Kind)
}
