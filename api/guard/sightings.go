package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// sightedFor is how long the answer of the database about a session is used: a page that
	// polls costs one lookup in that time, and a logout is effective everywhere after it.
	sightedFor = 2 * time.Second
	// lookWithin bounds the wait for the database.
	lookWithin = time.Second
	// sightedWithout is how long a session that the database has confirmed is honoured while
	// the database does not answer. Then pages show the last figures, and nothing can be done.
	sightedWithout = time.Hour
	// maxSighted bounds the answers that are kept, if clients make up cookies.
	maxSighted = 10_000
)

// sightings are what the database has said about sessions of late.
type sightings struct {
	logins Logins

	mu   sync.Mutex
	last map[Digest]*sighting
}

// sighting is what it said about one.
type sighting struct {
	// asking is held by the request that asks the database. Others wait for it.
	asking sync.Mutex
	// asked is when the database was last asked, and said when it answered.
	asked, said time.Time
	login       job.Login
	// ends is when the session ends; zero for no session.
	ends time.Time
	// err is why the database did not answer, if it was asked and did not.
	err error
}

func newSightings(logins Logins) sightings {
	return sightings{logins: logins, last: map[Digest]*sighting{}}
}

// look returns the session, or job.ErrNoLogin. It asks the database if the last answer is too
// old, and if mayAsk returns nil.
func (s *sightings) look(ctx context.Context, digest Digest, mayAsk func(context.Context) error) (job.Login, error) {
	one := s.of(digest)
	one.asking.Lock()
	defer one.asking.Unlock()
	if time.Since(one.asked) >= sightedFor {
		if err := mayAsk(ctx); err != nil {
			return job.Login{}, err
		}
		one.ask(ctx, s.logins, digest)
	}
	switch now := time.Now(); {
	case one.err != nil && (one.said.IsZero() || now.Sub(one.said) >= sightedWithout):
		return job.Login{}, one.err
	case now.Before(one.ends):
		return one.login, nil
	}
	return job.Login{}, job.ErrNoLogin
}

func (o *sighting) ask(ctx context.Context, logins Logins, digest Digest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	login, err := logins.Session(ctx, digest)
	o.asked, o.err = time.Now(), nil
	switch {
	case err == nil:
		o.said, o.login, o.ends = o.asked, login, o.asked.Add(login.Lasts)
	case errors.Is(err, job.ErrNoLogin):
		o.said, o.login, o.ends = o.asked, job.Login{}, time.Time{}
	default:
		o.err = err
	}
}

// of returns the place for a session, and makes room for it.
func (s *sightings) of(digest Digest) *sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.last[digest]; one != nil {
		return one
	}
	if len(s.last) >= maxSighted {
		clear(s.last) // Each costs a lookup again.
	}
	one := &sighting{}
	s.last[digest] = one
	return one
}

// forget is for a session that has ended.
func (s *sightings) forget(digest Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, digest)
}
