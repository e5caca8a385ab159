package store

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func specs() []job.TypeSpec {
	return []job.TypeSpec{
		{
			Type: "ECHO", Plugin: "echo", Version: "v1", Schema: json.RawMessage(`{ "type": "object" }`),
			MaxAttempts: 4, Timeout: 30 * time.Second, Retry: job.DefaultRetryPolicy(),
			Description: "Says it again.", Concurrency: 3,
			Terms: &job.TypeTerms{
				ConcurrencyKey: "/customer", KeyClass: "customer", ConcurrencyLimit: 2, OnConflict: job.ConflictCancelOldest, FairnessKey: "/region",
			},
		},
		{
			Type: "A \"quoted\" {TYPE}", Plugin: "odd", Version: "", MaxAttempts: 1, Timeout: 36 * time.Hour,
			Retry: job.RetryPolicy{Backoff: job.Immediate, ImmediateAfterTimeout: true},
		},
	}
}

func TestDeclaredTypesAreReadBackAsTheyWere(t *testing.T) {
	s := open(t)
	require.NoError(t, s.DeclareTypes(t.Context(), specs()))
	found, err := s.Types(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, specs(), found)
}

func TestTheLastDeclarationCountsAndAnEqualOneIsNotWritten(t *testing.T) {
	s := open(t)
	require.NoError(t, s.DeclareTypes(t.Context(), specs()))
	versions := func() []string {
		return ask[[]string](t, s, "select array_agg(xmin::text order by job_type) from job_types")
	}
	before := versions()
	require.NoError(t, s.DeclareTypes(t.Context(), specs()))
	require.Equal(t, before, versions())

	changed := specs()
	changed[0].Schema = nil
	require.NoError(t, s.DeclareTypes(t.Context(), changed))
	require.Equal(t, before[0], versions()[0])
	require.NotEqual(t, before[1], versions()[1])
	found, err := s.Types(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, changed, found)

	for _, change := range []func(*job.TypeSpec){
		func(spec *job.TypeSpec) { spec.Description = "Says it twice." },
		func(spec *job.TypeSpec) { spec.Concurrency = 0 },
		func(spec *job.TypeSpec) { spec.Terms = &job.TypeTerms{FairnessKey: "/region"} },
		func(spec *job.TypeSpec) { spec.Terms = nil },
	} {
		change(&changed[0])
		require.NoError(t, s.DeclareTypes(t.Context(), changed))
		found, err = s.Types(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, changed, found)
	}
}

func TestDeclaringNothingOrNonsense(t *testing.T) {
	s := open(t)
	require.NoError(t, s.DeclareTypes(t.Context(), nil))
	bad := specs()
	bad[0].Schema = json.RawMessage(`{`)
	require.ErrorIs(t, s.DeclareTypes(t.Context(), bad), job.ErrBadData)
	found, err := s.Types(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestOrchestratorsDeclareTheSameTypesAtOnce(t *testing.T) {
	s := open(t)
	var all sync.WaitGroup
	for i := range 6 {
		list := specs()
		if i%2 == 1 {
			list[0], list[1] = list[1], list[0]
			list[0].Version = "v2"
		}
		all.Go(func() {
			for range 10 {
				if err := s.DeclareTypes(t.Context(), list); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	found, err := s.Types(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 2)
}
