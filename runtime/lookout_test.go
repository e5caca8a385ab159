package runtime_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The clock is that of a bubble, in which sleeps take no time.

func TestALookWakesTheLoopThatHasSomethingToDo(t *testing.T) {
	t.Parallel()
	verbs := []string{"follow", "admit", "promote", "nextExpiry", "nextTick", "operateNext"}
	for verb, seen := range map[string]job.Outlook{
		"":            {},
		"follow":      {Following: true},
		"admit":       {Admitting: true},
		"promote":     {Due: new(100 * time.Millisecond)},
		"nextExpiry":  {Expiry: new(100 * time.Millisecond)},
		"nextTick":    {Tick: new(-time.Second)},
		"operateNext": {Operation: new(time.Duration)},
	} {
		t.Run(verb, func(t *testing.T) {
			s := newIdleStore(1, true)
			synctest.Test(t, func(t *testing.T) {
				launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
				time.Sleep(70 * time.Second) // between two tries, 30 s apart, of the follower to redeliver
				s.forget()
				s.see(seen, nil)
				time.Sleep(3 * time.Second)
				counts, _ := s.counted(1)
				for _, one := range verbs {
					if one == verb {
						require.NotZero(t, counts[one], one)
					} else {
						require.Zero(t, counts[one], one)
					}
				}
			})
		})
	}
}

func TestALookThatFailsIsTriedAgainAndTheLoopsLookForThemselves(t *testing.T) {
	t.Parallel()
	s := newIdleStore(1, true)
	synctest.Test(t, func(t *testing.T) {
		launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
		time.Sleep(70 * time.Second)
		s.forget()
		s.see(job.Outlook{}, errors.New("the database is away"))
		time.Sleep(10 * time.Second)
		counts, _ := s.counted(1)
		for _, verb := range []string{"outlook", "follow", "admit", "promote", "nextExpiry", "nextTick", "operateNext"} {
			require.GreaterOrEqual(t, counts[verb], 5.0, verb)
		}
		s.see(job.Outlook{}, nil)
		time.Sleep(2 * time.Second)
		s.forget()
		time.Sleep(10 * time.Second)
		counts, _ = s.counted(1)
		require.Zero(t, counts["admit"])
	})
}
