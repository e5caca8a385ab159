package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery is how often the positions of the primary and the replica are compared. What the
	// replica shows is up to that much younger than we can prove.
	lookEvery = time.Second
	// lookWithin limits one comparison, and startWithin the first.
	lookWithin  = 3 * time.Second
	startWithin = ConnectTimeout
	// examineTries limits how often a diagnosis compares positions until it knows the lag.
	examineTries = 10
	examinePause = 100 * time.Millisecond
)

// ReplicaConfig says where reads may go that may be a little old.
type ReplicaConfig struct {
	// URL leads to one or several standbys of the primary; empty for none.
	URL string
	// MaxLag is how old the answer to such a read may be at most.
	MaxLag time.Duration
	// Log gets a line when reads go to the primary, and when they go to the replica again. It
	// may be nil.
	Log *slog.Logger
}

// ErrForeignReplica says that the replica belongs to another database than the primary.
var ErrForeignReplica = errors.New("the replica belongs to another database")

// Why else reads do not go to the replica.
var (
	errNotStandby = errors.New("the replica is no standby of the primary")
	errBehind     = errors.New("the replica is behind")
	errNoLook     = errors.New("the replica has not been looked at yet")
)

// ByReplica is the result of a read that the replica has answered.
const ByReplica = "replica"

// These are results of reads that the primary has answered, because the replica
const (
	replicaDown   = "down"     // does not answer
	replicaBehind = "behind"   // is behind by more than MaxLag, or cannot be proven not to be
	replicaOther  = "foreign"  // is no standby of the primary
	readConflict  = "conflict" // canceled the read to go on with the log
	readFailed    = "failed"   // answered with another error
	readFresh     = "fresh"    // was not to be asked
)

// readResults are the results of reads that may be a little old.
func readResults() []string {
	return []string{ByReplica, replicaDown, replicaBehind, replicaOther, readConflict, readFailed, readFresh}
}

// Replica is a standby, or several behind one address, that answers reads which may be a
// little old. It is safe for concurrent use.
//
// How old an answer is, is measured and not guessed: see trail. Each read looks at the position of
// the very server that answers it, in the same transaction, so that it does not matter how
// many there are. Beside the reads, a loop leaves the marks of the primary, and decides whether
// reads try the replica at all. While it cannot see the primary or the replica, the age that it can
// prove grows, and reads go to the primary in the end.
type Replica struct {
	pool    *Pool
	primary *Pool
	maxLag  time.Duration
	log     *slog.Logger

	looking sync.Mutex // one at a time
	stop    context.CancelFunc
	loop    sync.WaitGroup

	mu    sync.Mutex
	trail trail
	// why says why reads go to the primary; nil if they go to the replica.
	why error
	// seen is the last position of the replica, if it was seen at all.
	seen  *Position
	reads map[string]int64
}

func newReplica(pool, primary *Pool, cfg ReplicaConfig) *Replica {
	reads := make(map[string]int64)
	for _, result := range readResults() {
		reads[result] = 0
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Replica{
		pool: pool, primary: primary, maxLag: cfg.MaxLag, log: log, stop: func() {}, why: errNoLook, reads: reads,
	}
}

// Start looks at the replica for the first time, and goes on until Close. Before it, all reads
// go to the primary. The error is about a replica that belongs to another database, which is a
// mistake; one that cannot be reached now may come back.
func (r *Replica) Start(ctx context.Context) error {
	first, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if first := r.examine(first); errors.Is(first.Why, ErrForeignReplica) {
		return first.Why
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.loop.Go(func() {
		for tick := time.NewTicker(lookEvery); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				bounded, cancel := context.WithTimeout(ctx, lookWithin)
				r.look(bounded)
				cancel()
			}
		}
	})
	return nil
}

func (r *Replica) close() {
	r.stop()
	r.loop.Wait()
}

// look decides where reads go from now on.
func (r *Replica) look(ctx context.Context) {
	r.looking.Lock()
	defer r.looking.Unlock()
	why := r.compare(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(ctx.Err(), context.Canceled) { // somebody wants to know
		r.decide(why)
	}
}

// compare compares the positions, and returns why reads cannot go to the replica. The primary
// is asked first: what it has by then, the replica may have when it is asked.
func (r *Replica) compare(ctx context.Context) error {
	asked := time.Now()
	primary, err := positionOf(ctx, r.primary)
	ahead := err == nil && r.leaveMark(asked, primary)
	replica, err := positionOf(ctx, r.pool)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = &replica
	_, err = r.judge(replica, r.enough())
	if ahead && errors.Is(err, errBehind) {
		err = fmt.Errorf("%w: it has replayed more of the log than the primary has written", errNotStandby)
	}
	return err
}

// leaveMark records where the primary is, and reports whether the replica was ahead of it
// before. A standby receives nothing that the primary has not flushed, so this one has another
// past: its primary was another one, which has lost a part of its log in a failover.
func (r *Replica) leaveMark(asked time.Time, primary Position) (ahead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if primary.Timeline == 0 {
		return false // it is a standby itself by now
	}
	if r.seen != nil && r.seen.of(primary) && r.seen.Timeline == 0 && r.seen.Position > primary.Position {
		r.trail = trail{}
		return true
	}
	r.trail.add(asked, primary)
	return false
}

// enough is how much lag reads put up with now: to get reads back, the replica must have
// caught up by half, so that they do not go to and fro.
func (r *Replica) enough() time.Duration {
	if errors.Is(r.why, errBehind) {
		return r.maxLag / 2
	}
	return r.maxLag
}

// judge returns how old what a server at the position shows is at most, or why reads cannot
// go there.
func (r *Replica) judge(p Position, most time.Duration) (time.Duration, error) {
	switch {
	case !r.trail.known():
		return 0, fmt.Errorf("%w: how far the primary is, is not known", errBehind)
	case !p.of(r.trail.last):
		return 0, fmt.Errorf("%w: it has cluster %d, database %d; the primary has cluster %d, database %d",
			ErrForeignReplica, p.Cluster, p.Database, r.trail.last.Cluster, r.trail.last.Database)
	case p.Timeline != 0:
		return 0, fmt.Errorf("%w: it takes writes, on timeline %d", errNotStandby, p.Timeline)
	}
	lag, known := r.lag(p)
	if !known || lag > most {
		return 0, fmt.Errorf("%w by %s, and %s are allowed", errBehind, lag.Round(time.Millisecond), r.maxLag)
	}
	return lag, nil
}

// lag is how old what a server at the position shows is at most. If the server is behind all
// marks, that is not known: then it is older than the trail, and an estimate is how long ago the
// last commit was made that the server has replayed.
func (r *Replica) lag(p Position) (lag time.Duration, known bool) {
	if asOf, ok := r.trail.asOf(p.Position); ok {
		return time.Since(asOf), true
	}
	if r.trail.known() {
		lag = time.Since(r.trail.marks[0].at)
	}
	if p.Since != nil {
		lag = max(lag, *p.Since)
	}
	return lag, false
}

// decide sets where reads go from now on, and says so if that changes, or if the reason
// becomes one that waiting does not mend.
func (r *Replica) decide(why error) {
	mistake := resultOf(why) == replicaOther && resultOf(r.why) != replicaOther
	switch {
	case why != nil && (r.why == nil || errors.Is(r.why, errNoLook) || mistake):
		r.log.Warn("lists and figures come from the primary, not from the replica", "error", why)
	case why == nil && r.why != nil:
		r.log.Info("lists and figures come from the replica")
	}
	r.why = why
}

// resultOf is the result of a read that the replica has not answered.
func resultOf(err error) string {
	switch {
	case errors.Is(err, errBehind):
		return replicaBehind
	case errors.Is(err, errNotStandby), errors.Is(err, ErrForeignReplica):
		return replicaOther
	case conflicts(err):
		return readConflict
	case errors.Is(err, errNoLook), errors.Is(err, context.DeadlineExceeded), Unavailable(err):
		return replicaDown
	}
	return readFailed
}

// usable reports whether a read may try the replica. Otherwise it counts the read.
func (r *Replica) usable(fresh bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case fresh:
		r.reads[readFresh]++
	case r.why != nil:
		r.reads[resultOf(r.why)]++
	default:
		return true
	}
	return false
}

// admit lets a read go on that the server at the position answers, and says how old the answer
// is at most, or returns why not.
func (r *Replica) admit(p Position) (age time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judge(p, r.maxLag)
}

// answered counts a read that the replica has answered.
func (r *Replica) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[ByReplica]++
}

// failed counts a read that it has not. If it is down, others do not try it until it was seen
// again.
func (r *Replica) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := resultOf(err)
	r.reads[result]++
	if result == replicaDown {
		r.decide(err)
	}
}

// ReplicaStatus is how a replica is used.
type ReplicaStatus struct {
	// Why is why reads that may be a little old go to the primary; nil if they go to the replica.
	Why error
	// Lag is how old they are at most, or at least if it is behind by more than is known. It is
	// nil if the replica has not been seen yet.
	Lag    *time.Duration
	MaxLag time.Duration
	// Reads counts such reads by their result, zeros included. The replica has answered those of
	// ByReplica, and the primary all others.
	Reads map[string]int64
}

// Status says how the replica is used. It does not query the database.
func (r *Replica) Status() ReplicaStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := ReplicaStatus{Why: r.why, MaxLag: r.maxLag, Reads: maps.Clone(r.reads)}
	if r.seen != nil && r.trail.known() && r.seen.of(r.trail.last) && r.seen.Timeline == 0 {
		lag, _ := r.lag(*r.seen)
		status.Lag = &lag
	}
	return status
}

// Examine looks at the replica now, and says how it is used or could be. It works before
// Start too. The error is that of the context.
func (r *Replica) Examine(ctx context.Context) (ReplicaStatus, error) {
	return r.examine(ctx), ctx.Err()
}

// examine compares positions until the lag is known, or does not become so in a moment: even
// a replica that follows closely has not replayed the first mark when it is seen first.
func (r *Replica) examine(ctx context.Context) ReplicaStatus {
	r.looking.Lock()
	defer r.looking.Unlock()
	var why error
	for range examineTries {
		bounded, cancel := context.WithTimeout(ctx, lookWithin)
		why = r.compare(bounded)
		cancel()
		if !errors.Is(why, errBehind) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(examinePause):
		}
	}
	r.mu.Lock()
	r.decide(why)
	r.mu.Unlock()
	return r.Status()
}

func positionOf(ctx context.Context, from Reader) (Position, error) {
	found, err := Read(ctx, from, "position", pgx.RowToStructByName[Position])
	if err != nil || len(found) == 0 {
		return Position{}, cmp.Or(err, Translate("position", pgx.ErrNoRows))
	}
	return found[0], nil
}
