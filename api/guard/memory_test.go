package guard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestMemoryKeepsLoginsForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := guard.NewMemory()
		login := job.Login{Digest: guard.DigestOf("x"), Caller: "admin", Lasts: time.Minute}
		require.NoError(t, m.MakeLink(t.Context(), login))
		_, err := m.Session(t.Context(), login.Digest)
		require.ErrorIs(t, err, job.ErrNoLogin, "a link is no session")
		taken, err := m.TakeLink(t.Context(), login.Digest)
		require.NoError(t, err)
		require.Equal(t, login, taken)
		_, err = m.TakeLink(t.Context(), login.Digest)
		require.ErrorIs(t, err, job.ErrNoLogin, "it is taken once")

		require.NoError(t, m.BeginSession(t.Context(), login))
		time.Sleep(time.Minute - time.Second)
		found, err := m.Session(t.Context(), login.Digest)
		require.NoError(t, err)
		require.Equal(t, time.Second, found.Lasts)
		time.Sleep(time.Second)
		_, err = m.Session(t.Context(), login.Digest)
		require.ErrorIs(t, err, job.ErrNoLogin)

		require.NoError(t, m.BeginSession(t.Context(), login))
		require.NoError(t, m.EndSession(t.Context(), login.Digest))
		_, err = m.Session(t.Context(), login.Digest)
		require.ErrorIs(t, err, job.ErrNoLogin)
	})
}
