package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ErrNoSlot says that no live process of the plugin has a free slot. Nothing was
// started.
var ErrNoSlot = errors.New("no plugin process has a free slot")

// Host keeps the processes of all plugins up and gives them attempts. Any goroutine may
// call its methods.
type Host struct {
	home *osprocess.Home
	// cgroups is the parent of the cgroups of the processes; nil for none.
	cgroups  *cgroup.Tree
	settings Settings
	changed  loop.Signal
	// roster lists the plugins. Reload replaces it as a whole.
	roster atomic.Pointer[roster]

	// Close cancels draining at once, and killing when its own context ends.
	draining context.Context
	drain    context.CancelFunc
	killing  context.Context
	kill     context.CancelFunc
	// running counts the conductors, and the reports of attempts that never began.
	running sync.WaitGroup
	// closed is closed when everything is gone; closeErr is valid from then on.
	closed   chan struct{}
	closeErr error

	mu sync.Mutex
	// closing forbids new plugins and new attempts.
	closing bool
	// owners says which plugin serves a job type.
	owners map[string]*fleet
}

// roster lists the plugins, in the order of configuration and by name.
type roster struct {
	fleets []*fleet
	byName map[string]*fleet
}

// Start removes what killed hosts left in the socket directory and begins to launch the
// plugins. It does not wait for them: Changed signals when a plugin comes up, and
// failed launches are retried with backoff. Start returns an error if the configuration
// is invalid or the socket directory cannot be used. The context covers only this call.
func Start(ctx context.Context, settings Settings, plugins []Config) (*Host, error) {
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	if err := validateAll(plugins); err != nil {
		return nil, err
	}
	if swept := osprocess.Sweep(settings.SocketDir); swept > 0 {
		settings.Log.Info("removed what killed hosts left behind", "directories", swept)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("plugin host: %w", err)
	}
	home, err := osprocess.MakeHome(settings.SocketDir)
	if err != nil {
		return nil, fmt.Errorf("plugin host: socket directory: %w", err)
	}
	h := &Host{
		home: home, settings: settings,
		changed: loop.NewSignal(),
		closed:  make(chan struct{}),
		owners:  make(map[string]*fleet),
	}
	if err := h.setUp(settings); err != nil {
		h.cleanUp()
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
// configuration. A plugin appears when its first process is up. Later, while no process
// is up, it is Down.
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

// Changed signals that Pools, Types or Status may have new answers. Unreceived signals
// merge into one.
func (h *Host) Changed() <-chan struct{} { return h.changed }

// Types returns what the plugins have declared, including those that are down now but
// were up before. A zero value means that the manifest leaves the field to the
// defaults.
func (h *Host) Types() []job.TypeSpec {
	var specs []job.TypeSpec
	seen := make(map[string]bool)
	for _, f := range h.roster.Load().fleets {
		m := f.declared()
		if m == nil {
			continue
		}
		for _, spec := range m.Specs {
			if !seen[spec.Type] { // While a type moves, two plugins declare it.
				seen[spec.Type] = true
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// Status describes every configured plugin, in the order of configuration.
func (h *Host) Status() []v1.Plugin {
	fleets := h.roster.Load().fleets
	all := make([]v1.Plugin, 0, len(fleets))
	for _, f := range fleets {
		all = append(all, f.status())
	}
	return all
}

// Report is Status without what processes have printed, which may be secret.
func (h *Host) Report() []v1.Plugin {
	fleets := h.roster.Load().fleets
	all := make([]v1.Plugin, 0, len(fleets))
	for _, f := range fleets {
		all = append(all, f.report())
	}
	return all
}

// Start gives an attempt to the least loaded process of the plugin, or to a new process
// if it must be isolated. If there is no slot it returns ErrNoSlot and does not call
// the reporter. An attempt that is too large for a message is accepted, and then
// reported as a permanent failure.
func (h *Host) Start(plugin string, a job.Assignment, r job.Reporter) (job.Run, error) {
	f := h.roster.Load().byName[plugin]
	if f == nil {
		return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
	}
	if bytes := message.StartBytes(&a); bytes > protocol.MaxMessageBytes {
		return h.reject(plugin, r, message.TooLarge(bytes, protocol.MaxMessageBytes))
	}
	if a.Isolated {
		kept := a // so that others need not be on the heap
		return f.startIsolated(&kept, r)
	}
	for f.quitting.Err() == nil {
		i := f.reserve(a.Type)
		if i == nil {
			break
		}
		if run := i.Begin(&a, r); run != nil {
			return run, nil
		}
		f.release(i, a.Type) // The process has ended; try another.
	}
	return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
}

// reject reports from another goroutine, since the caller of Start may hold a lock that
// the reporter needs.
func (h *Host) reject(plugin string, r job.Reporter, outcome job.Outcome) (job.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, fmt.Errorf("plugin %s: %w", plugin, ErrNoSlot)
	}
	h.running.Go(func() { r.Finished(outcome) })
	return neverBegan{}, nil
}

// neverBegan is the run of an attempt that was rejected.
type neverBegan struct{}

func (neverBegan) Cancel(job.CancelReason) {}
func (neverBegan) Kill()                   {}
func (neverBegan) Extend(time.Duration)    {}

// Close asks every process to finish its attempts and exit. When the context ends,
// Close kills the remaining processes, and their attempts are reported as released. It
// returns when every process is gone and everything is reported. If a process is still
// there closeTimeout after the context's end, because the kernel cannot end it, Close
// returns an error. You may call Close again to wait longer. Any other error means that
// something was left on disk.
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
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	select {
	case <-h.closed:
		return h.closeErr
	case <-late.C:
		return fmt.Errorf("some plugin processes are still there %s after they were killed", closeTimeout)
	}
}

// closeTimeout is how long Close waits for the processes that it has killed, and a
// little longer for their reports.
const closeTimeout = connection.ReapTimeout + 2*time.Second

func (h *Host) finishClosing() {
	h.running.Wait()
	h.kill()
	h.cleanUp()
	close(h.closed)
}
