package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

const (
	// maxSessions and maxLinks bound those of one caller: the oldest make room.
	maxSessions, maxLinks = 100, 10
	// seenEvery is how often it is written down that a session is used.
	seenEvery = 5 * time.Minute
)

// loginRow is a session or a link.
type loginRow struct {
	Caller  string
	Binding []byte
	Lasts   pgtype.Interval
}

func loginOf(operation string, digest [32]byte, found []loginRow, err error) (job.Login, error) {
	switch {
	case err != nil:
		return job.Login{}, err
	case len(found) == 0:
		return job.Login{}, fmt.Errorf("%s: %w", operation, job.ErrNoLogin)
	}
	return job.Login{Digest: digest, Caller: found[0].Caller, Binding: found[0].Binding, Lasts: postgres.Duration(found[0].Lasts)}, nil
}

// BeginSession keeps the session of a browser for as long as it lasts.
func (s *Store) BeginSession(ctx context.Context, l job.Login) error {
	return s.db.Submissions.Do(ctx, "begin_session", l.Digest[:], l.Caller, l.Binding, postgres.Interval(l.Lasts), maxSessions)
}

// Session returns a session by the digest of its cookie, or job.ErrNoLogin.
func (s *Store) Session(ctx context.Context, digest [32]byte) (job.Login, error) {
	found, err := postgres.Change(ctx, s.db.Submissions, "see_session", pgx.RowToStructByName[loginRow], digest[:], postgres.Interval(seenEvery))
	return loginOf("session", digest, found, err)
}

// EndSession ends a session, if there is one with that digest.
func (s *Store) EndSession(ctx context.Context, digest [32]byte) error {
	return s.db.Submissions.Do(ctx, "end_session", digest[:])
}

// MakeLink keeps a link that begins a session, for as long as it lasts.
func (s *Store) MakeLink(ctx context.Context, l job.Login) error {
	return s.db.Submissions.Do(ctx, "make_link", l.Digest[:], l.Caller, l.Binding, postgres.Interval(l.Lasts), maxLinks)
}

// TakeLink returns a link by the digest of its code, once: after that, and if there is none,
// the error is job.ErrNoLogin.
func (s *Store) TakeLink(ctx context.Context, digest [32]byte) (job.Login, error) {
	found, err := postgres.Change(ctx, s.db.Submissions, "take_link", pgx.RowToStructByName[loginRow], digest[:])
	return loginOf("link", digest, found, err)
}

// ForgetLogins deletes sessions and links whose time is over.
func (s *Store) ForgetLogins(ctx context.Context) (deleted int, err error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "forget_logins")
}
