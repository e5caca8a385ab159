package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// recording keeps what is submitted, and says that all of it is queued.
type recording struct {
	Store
	stored []job.Submission
}

func (r *recording) Submit(_ context.Context, batch []job.Submission) []job.Submitted {
	r.stored = append(r.stored, batch...)
	results := make([]job.Submitted, len(batch))
	for i, one := range batch {
		results[i].Receipt = job.Receipt{ID: one.ID, State: job.Queued}
	}
	return results
}

func (r *recording) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	return r.Submit(ctx, batch), nil
}

func (r *recording) Rules(context.Context) (*job.Rules, bool, error) {
	return job.NewRules([]job.Limit{{Scope: job.LimitType, Name: "ECHO", Concurrency: new(3)}}, nil), false, nil
}

func TestJobsGetTheGatesOfTheMoment(t *testing.T) {
	keyed := func(s *job.Submission) { s.Type, s.Terms.ConcurrencyKey = "OTHER", "customer:42" }
	for name, submit := range map[string]func(*Service, ...job.Submission){
		"one by one": func(s *Service, batch ...job.Submission) {
			for _, one := range batch {
				_, err := s.Submit(t.Context(), one)
				require.NoError(t, err)
			}
		},
		"each":        func(s *Service, batch ...job.Submission) { s.SubmitEach(t.Context(), batch) },
		"all or none": func(s *Service, batch ...job.Submission) { _, _ = s.SubmitAll(t.Context(), batch) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &recording{}
			s, err := New(Config{
				PollInterval: time.Second, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
				Resolve: func(spec job.TypeSpec) job.TypeSpec { return spec },
			}, store)
			require.NoError(t, err)

			submit(s, submission(t))
			require.Empty(t, store.stored[0].Gates, "no rule is known")
			raised(t, s.Hints.out[job.JobsReady].Woken())
			require.Empty(t, s.Hints.Heard(job.GatesChanged))

			require.NoError(t, s.LoadRules(t.Context()))
			own := submission(t, keyed)
			submit(s, submission(t), own, submission(t, keyed, held))
			require.Equal(t, []job.Gate{"type:ECHO"}, store.stored[1].Gates)
			require.Equal(t, []job.Gate{"key:default/customer:42"}, store.stored[2].Gates)
			require.Equal(t, store.stored[2].Gates, store.stored[3].Gates, "a job that is not due yet has its gates too")
			require.Empty(t, own.Gates, "the caller's own stays as it is")
			raised(t, s.Hints.Heard(job.GatesChanged))
			require.Empty(t, s.Hints.out[job.JobsReady].Woken(), "none of them is ready")
		})
	}
}

func raised(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	default:
		t.Fatal("the signal is not raised")
	}
}
