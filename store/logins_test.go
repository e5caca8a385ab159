package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// loginOfCaller is a login with its own secret.
func loginOfCaller(caller, secret string) job.Login {
	return job.Login{Digest: sha256.Sum256([]byte(secret)), Caller: caller, Binding: []byte("binding of " + secret), Lasts: time.Hour}
}

func TestASessionIsFoundUntilItEnds(t *testing.T) {
	s := open(t)
	mine, others := loginOfCaller("admin", "a"), loginOfCaller("token ops", "b")
	require.NoError(t, s.BeginSession(t.Context(), mine))
	require.NoError(t, s.BeginSession(t.Context(), others))
	found, err := s.Session(t.Context(), mine.Digest)
	require.NoError(t, err)
	require.InDelta(t, time.Hour, found.Lasts, float64(time.Minute))
	found.Lasts = time.Hour
	require.Equal(t, mine, found)

	require.NoError(t, s.EndSession(t.Context(), mine.Digest))
	_, err = s.Session(t.Context(), mine.Digest)
	require.ErrorIs(t, err, job.ErrNoLogin)
	_, err = s.Session(t.Context(), others.Digest)
	require.NoError(t, err)
	require.NoError(t, s.EndSession(t.Context(), mine.Digest), "it has ended already")

	exec(t, s, "update ui_sessions set expires_at = now()")
	_, err = s.Session(t.Context(), others.Digest)
	require.ErrorIs(t, err, job.ErrNoLogin)
}

func TestTheUseOfASessionIsWrittenDownNowAndThen(t *testing.T) {
	s := open(t)
	l := loginOfCaller("admin", "a")
	require.NoError(t, s.BeginSession(t.Context(), l))
	seen := func() time.Time { return ask[time.Time](t, s, "select seen_at from ui_sessions") }
	for age, wanted := range map[string]bool{"4 minutes": false, "6 minutes": true} {
		exec(t, s, "update ui_sessions set seen_at = now() - $1::interval", age)
		before := seen()
		_, err := s.Session(t.Context(), l.Digest)
		require.NoError(t, err)
		require.Equal(t, wanted, seen().After(before), age)
	}
}

func TestALinkIsTakenOnce(t *testing.T) {
	s := open(t)
	for n := range 20 {
		l := loginOfCaller("admin", fmt.Sprint(n))
		require.NoError(t, s.MakeLink(t.Context(), l))
		const browsers = 8
		taken, errs := make([]job.Login, browsers), make([]error, browsers)
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range browsers {
			all.Go(func() {
				<-start
				taken[i], errs[i] = s.TakeLink(context.Background(), l.Digest)
			})
		}
		close(start)
		all.Wait()
		got := 0
		for i, err := range errs {
			if err == nil {
				require.Equal(t, l.Binding, taken[i].Binding)
				got++
				continue
			}
			require.ErrorIs(t, err, job.ErrNoLogin)
		}
		require.Equal(t, 1, got)
	}
	late := loginOfCaller("admin", "late")
	require.NoError(t, s.MakeLink(t.Context(), late))
	exec(t, s, "update ui_links set expires_at = now()")
	_, err := s.TakeLink(t.Context(), late.Digest)
	require.ErrorIs(t, err, job.ErrNoLogin)
}

func TestOneCallerHasSoManyLoginsAndNoMore(t *testing.T) {
	s := open(t)
	others := loginOfCaller("token ops", "other")
	require.NoError(t, s.BeginSession(t.Context(), others))
	require.NoError(t, s.MakeLink(t.Context(), others))
	for n := range maxSessions + 3 {
		require.NoError(t, s.BeginSession(t.Context(), loginOfCaller("admin", fmt.Sprint(n))))
	}
	for n := range maxLinks + 3 {
		require.NoError(t, s.MakeLink(t.Context(), loginOfCaller("admin", fmt.Sprint(n))))
	}
	require.Equal(t, maxSessions, ask[int](t, s, "select count(*) from ui_sessions where caller = 'admin'"))
	require.Equal(t, maxLinks, ask[int](t, s, "select count(*) from ui_links where caller = 'admin'"))
	_, err := s.Session(t.Context(), loginOfCaller("admin", "2").Digest)
	require.ErrorIs(t, err, job.ErrNoLogin, "the oldest make room")
	_, err = s.Session(t.Context(), loginOfCaller("admin", "3").Digest)
	require.NoError(t, err)
	_, err = s.Session(t.Context(), others.Digest)
	require.NoError(t, err)
	_, err = s.TakeLink(t.Context(), others.Digest)
	require.NoError(t, err)
}

func TestLoginsWhoseTimeIsOverAreDeleted(t *testing.T) {
	s := open(t)
	for _, secret := range []string{"old", "young"} {
		require.NoError(t, s.BeginSession(t.Context(), loginOfCaller("admin", secret)))
		require.NoError(t, s.MakeLink(t.Context(), loginOfCaller("admin", secret)))
	}
	old := loginOfCaller("admin", "old").Digest
	exec(t, s, "update ui_sessions set expires_at = now() where digest = $1", old[:])
	exec(t, s, "update ui_links set expires_at = now() where digest = $1", old[:])
	deleted, err := s.ForgetLogins(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, deleted)
	_, err = s.Session(t.Context(), loginOfCaller("admin", "young").Digest)
	require.NoError(t, err)
	_, err = s.TakeLink(t.Context(), loginOfCaller("admin", "young").Digest)
	require.NoError(t, err)
}
