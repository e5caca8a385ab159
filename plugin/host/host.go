package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ErrNoSlot says that no live process of the plugin has a free slot. Nothing was
// started.
var ErrNoSlot = errors.New("no handler process has a free slot")

// Host keeps the processes of all plugins up and gives them attempts. Its methods
// may be called from any goroutine.
type Host struct {
	home *child.Home
	// cgroups is where processes get their own; nil for none.
	cgroups *cgroup.Tree
	// warden outlives us; nil for none.
	warden   *child.Warden
	settings Settings
	changed  chan struct{}
	// roster has the plugins; it is replaced as a whole.
	roster atomic.Pointer[roster]

	// draining ends when Close is called, killing when it runs out of
	// patience.
	draining context.Context
	drain    context.CancelFunc
	killing  context.Context
	kill     context.CancelFunc
	slots    sync.WaitGroup
	// closed ends when everything is gone; closeErr is valid from then on.
	closed   chan struct{}
	closeErr error

	// mu guards the closing against new attempts, and the owners.
	mu      sync.Mutex
	closing bool
	// owners says which plugin serves a job type.
	owners map[string]*fleet
	// refused counts the reports of attempts that never began.
	refused sync.WaitGroup
}

// roster is the plugins in the order of configuration, and by name.
type roster struct {
	fleets []*fleet
	byName map[string]*fleet
}

func (r *roster) add(f *fleet) {
	r.fleets = append(r.fleets, f)
	r.byName[f.name] = f
}

// Start sweeps what killed hosts left in the socket directory and begins to
// launch the plugins. It does not wait for them: Changed tells when one comes up,
// and one that does not is launched again with backoff. Its errors are about
// configuration that cannot mean anything. The context bounds the start only.
func Start(ctx context.Context, settings Settings, plugins []Config) (*Host, error) {
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	if err := validateAll(plugins); err != nil {
		return nil, err
	}
	if swept := child.Sweep(settings.SocketDir); swept > 0 {
		settings.Log.Info("removed what killed hosts left behind", "directories", swept)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	home, err := child.MakeHome(settings.SocketDir)
	if err != nil {
		return nil, fmt.Errorf("plugin host: socket directory: %w", err)
	}
	h := &Host{
		home: home, settings: settings,
		changed: make(chan struct{}, 1),
		closed:  make(chan struct{}),
		owners:  make(map[string]*fleet),
	}
	if err := h.secure(settings); err != nil {
		h.loosen()
		return nil, err
	}
	h.roster.Store(&roster{byName: make(map[string]*fleet)})
	h.draining, h.drain = context.WithCancel(context.Background())
	h.killing, h.kill = context.WithCancel(context.Background())
	if err := h.Reload(plugins); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

// Pools returns the plugins that serve, with their free slots, in the order of
// configuration. One is among them since its first process was up, and is Down while
// none is.
func (h *Host) Pools() []job.Pool {
	if h.draining.Err() != nil {
		return nil
	}
	var pools []job.Pool
	for _, f := range h.roster.Load().fleets {
		if pool, up := f.pool(); up {
			pools = append(pools, pool)
		}
	}
	return pools
}

// Changed signals that Pools, Types or Status may have new answers. Signals that
// nobody has received yet are one.
func (h *Host) Changed() <-chan struct{} { return h.changed }

func (h *Host) signal() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Types returns what the plugins have declared, those included that are down now
// but were up before. What a manifest leaves open is zero, for the caller to lay
// defaults under.
func (h *Host) Types() []job.TypeSpec {
	var specs []job.TypeSpec
	seen := make(map[string]bool)
	for _, f := range h.roster.Load().fleets {
		m := f.declared()
		if m == nil {
			continue
		}
		for _, spec := range m.Specs {
			if !seen[spec.Type] { // while it moves, two plugins have it
				seen[spec.Type] = true
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// Start gives an attempt to the least loaded process of the plugin, or to one
// that is launched for it when it must be alone. It returns ErrNoSlot when there
// is no slot; then the reporter is not called. An attempt that is too large for any message is taken and reported as a
// permanent failure.
func (h *Host) Start(plugin string, a job.Assignment, r job.Reporter) (job.Run, error) {
	f := h.roster.Load().byName[plugin]
	if f == nil {
		return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
	}
	start := message.WriteStart(&a)
	if bytes := message.StartBytes(start); bytes > wire.MaxMessageBytes {
		return h.refuse(plugin, r, message.TooLarge(bytes, wire.MaxMessageBytes))
	}
	if a.Isolated {
		return f.startAlone(start, &a, r)
	}
	for h.draining.Err() == nil {
		p := f.reserve(a.Type)
		if p == nil {
			break
		}
		if run := p.begin(start, &a, r); run != nil {
			return run, nil
		}
		// It has ended since, and gives way to another.
		f.release(p, a.Type)
	}
	return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
}

// refuse reports from a goroutine of its own: the caller of Start may hold a lock
// that the reporter takes.
func (h *Host) refuse(plugin string, r job.Reporter, outcome job.Outcome) (job.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
	}
	h.refused.Go(func() { r.Finished(outcome) })
	return finished{}, nil
}

// Close asks every process to finish what it has and leave, and kills those that
// still run when the context ends; their attempts are reported as given back. It
// returns when every process is gone and everything is reported, or with an error
// when that is not so closeWithin after the context's end: whatever holds it up
// cannot be ended by us. Closing again waits for the same end. Any other error says
// that the socket directory is still there.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	first := !h.closing
	h.closing = true
	h.mu.Unlock()
	if first {
		h.drain()
		go h.finishClosing()
	}
	stop := context.AfterFunc(ctx, h.kill)
	defer stop()
	select {
	case <-h.closed:
		return h.closeErr
	case <-ctx.Done():
	}
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-h.closed:
		return h.closeErr
	case <-late.C:
		return fmt.Errorf("not everything of the plugins is gone %s after it was killed", closeWithin)
	}
}

// closeWithin is how long Close waits for what it has killed: for a process that
// the kernel cannot interrupt, and a little for the reports.
const closeWithin = reapPatience + 2*time.Second

func (h *Host) finishClosing() {
	h.slots.Wait()
	h.refused.Wait()
	h.kill()
	h.loosen()
	close(h.closed)
}
