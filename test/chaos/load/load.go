package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

const (
	// repeats bounds how often a client repeats a submission that got no answer.
	repeats = 8
	// remembered is how many of its last jobs a client acts on.
	remembered = 200
	// justNow is how many of these it submitted last.
	justNow = 3
	// MaxAttempts is what each type has by configuration, unless a submission asks for others.
	MaxAttempts = 6
)

// Config says how many clients there are and what they may submit.
type Config struct {
	Clients int
	// Rate is how many steps all clients take together in a second, at most. A step is one
	// act, which may need several calls.
	Rate    float64
	Seed    uint64
	Servers []Server
	// Brief says that slow jobs are to end soon: none of them fails for ever.
	Brief bool
	// Types are the job types that can be run.
	Types []string
	Now   func() history.Nanos
	Calls *history.Lines[history.Call]
}

// Load is running clients.
type Load struct {
	cfg  Config
	all  sync.WaitGroup
	stop context.CancelFunc

	accepted, unanswered atomic.Int64
	restrained           atomic.Bool

	mu      sync.Mutex
	problem error
	firsts  []*first
	crashes time.Time // when the next job may crash
}

// first waits for the first acceptance after a moment.
type first struct{ after, at history.Nanos }

// Start starts the clients.
func Start(ctx context.Context, cfg Config) *Load {
	ctx, stop := context.WithCancel(ctx)
	l := &Load{cfg: cfg, stop: stop}
	for n := range cfg.Clients {
		l.all.Go(func() { l.person(n).work(ctx) })
	}
	return l
}

// End stops the clients and returns when no call is in progress and every job that a
// client held is released.
func (l *Load) End() error {
	l.stop()
	l.all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.problem
}

// Accepted is how many submissions were answered with success.
func (l *Load) Accepted() int64 { return l.accepted.Load() }

// Unanswered is how many calls got no answer that says what came of them.
func (l *Load) Unanswered() int64 { return l.unanswered.Load() }

// Restrain lets clients submit nothing new while more than enough is open. They go on asking.
func (l *Load) Restrain(restrained bool) { l.restrained.Store(restrained) }

// mayCrash reports whether it is time for another job that crashes.
func (l *Load) mayCrash() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.crashes) {
		return false
	}
	l.crashes = time.Now().Add(betweenCrashes)
	return true
}

// FirstAccept returns a function that says when the first submission that began after this
// moment was accepted; 0 for never.
func (l *Load) FirstAccept(after time.Time) func() history.Nanos {
	f := &first{after: history.Nanos(after.UnixNano())}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.firsts = append(l.firsts, f)
	return func() history.Nanos { l.mu.Lock(); defer l.mu.Unlock(); return f.at }
}

func (l *Load) record(call history.Call) {
	err := l.cfg.Calls.Append(call)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.problem = err
	}
	if call.Outcome == history.Unknown {
		l.unanswered.Add(1)
	}
	if call.Outcome != history.OK || len(call.Submissions) == 0 {
		return
	}
	l.accepted.Add(int64(len(call.Submissions)))
	for _, f := range l.firsts {
		if f.at == 0 && call.Started >= f.after {
			f.at = call.Returned
		}
	}
}

// person is one client and what it remembers.
type person struct {
	client
	load   *Load
	random *rand.Rand
	number int
	marks  int
	recent []string // ids
	keyed  []item
	held   []string
}

func (l *Load) person(number int) *person {
	// One connection each: nothing that was sent is sent again on another one.
	transport := &http.Transport{MaxConnsPerHost: 1, DisableKeepAlives: number%4 == 0}
	return &person{
		client: client{name: fmt.Sprintf("c%d", number), http: &http.Client{Transport: transport}, now: l.cfg.Now, record: l.record, accepted: func() {}},
		load:   l, number: number, random: rand.New(rand.NewPCG(l.cfg.Seed, uint64(number)+1000)), //nolint:gosec // repeatable
	}
}

func (p *person) work(ctx context.Context) {
	defer p.http.CloseIdleConnections()
	pace := time.Duration(float64(p.load.cfg.Clients) / p.load.cfg.Rate * float64(time.Second))
	for ctx.Err() == nil {
		began := time.Now()
		p.step(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(pace - time.Since(began)):
		}
	}
	p.releaseAll()
}

// step does one act.
func (p *person) step(ctx context.Context) {
	to := p.server()
	switch n := p.random.IntN(1000); {
	case n < 790 && p.load.restrained.Load():
	case n < 640:
		p.submitUntilAnswered(ctx, p.items(1, true))
	case n < 720:
		p.submit(ctx, to, p.items(1, false))
	case n < 775:
		p.submitUntilAnswered(ctx, p.items(2+p.random.IntN(25), true))
	case n < 790:
		p.submitWorkflowUntilAnswered(ctx)
	case n < 850:
		p.act(ctx, to, history.Get)
	case n < 890 && len(p.keyed) > 0:
		one := p.keyed[p.random.IntN(len(p.keyed))]
		p.lookUp(ctx, to, one.sent.Tenant, one.recorded.Key)
	case n < 930 && len(p.keyed) > 0: // the same submission again
		p.submit(ctx, to, []item{p.keyed[p.random.IntN(len(p.keyed))]})
	case n < 960:
		p.act(ctx, to, history.Cancel)
	case n < 980:
		p.act(ctx, to, history.Requeue)
	case n < 994:
		if id := p.act(ctx, to, history.Hold); id != "" {
			p.held = append(p.held, id)
		}
		if len(p.held) > 2 {
			p.release(ctx, to)
		}
	case n < 997:
		p.redrive(ctx, to, 1+p.random.IntN(20))
	}
}

func (p *person) server() Server {
	return p.load.cfg.Servers[p.random.IntN(len(p.load.cfg.Servers))]
}

// act makes a call about a recent job, and returns the job's id unless the call was
// refused.
func (p *person) act(ctx context.Context, to Server, verb history.Verb) string {
	if len(p.recent) == 0 {
		return ""
	}
	// A cancel that comes at once finds the job running.
	among := p.recent
	if verb == history.Cancel && p.random.IntN(2) == 0 {
		among = among[max(0, len(among)-justNow):]
	}
	id := among[p.random.IntN(len(among))]
	if p.about(ctx, to, verb, id).Outcome == history.Refused {
		return ""
	}
	return id
}

func (p *person) release(ctx context.Context, to Server) {
	id := p.held[0]
	p.held = p.held[1:]
	if p.about(ctx, to, history.Release, id).Outcome == history.Unknown {
		p.held = append(p.held, id)
	}
}

// releaseAll releases what is held, so that it can end. It gives up after a while: what
// remains is then found in the record.
func (p *person) releaseAll() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for len(p.held) > 0 && ctx.Err() == nil {
		if p.release(ctx, p.server()); len(p.held) > 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// submitUntilAnswered repeats a submission with keys until an answer comes.
func (p *person) submitUntilAnswered(ctx context.Context, items []item) {
	for range repeats {
		call := p.submit(ctx, p.server(), items)
		if call.Outcome == history.OK {
			for i, s := range call.Submissions {
				p.recent, p.keyed = append(p.recent, s.JobID), append(p.keyed, items[i])
			}
			p.recent = p.recent[max(0, len(p.recent)-remembered):]
			p.keyed = slices.Clone(p.keyed[max(0, len(p.keyed)-remembered):])
		}
		if call.Outcome != history.Unknown || !p.mayRepeat(ctx) {
			return
		}
	}
}

// submitWorkflowUntilAnswered repeats a workflow until an answer comes.
func (p *person) submitWorkflowUntilAnswered(ctx context.Context) {
	tenant, key, items := p.workflow()
	for range repeats {
		if p.submitWorkflow(ctx, p.server(), tenant, key, items).Outcome != history.Unknown || !p.mayRepeat(ctx) {
			return
		}
	}
}

// mayRepeat waits a little, and reports whether the load goes on.
func (p *person) mayRepeat(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(50+p.random.IntN(200)) * time.Millisecond):
		return true
	}
}
