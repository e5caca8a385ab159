package host

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fleet is one plugin: the generation that serves, at most one that is to
// follow, and those that drain. What changes which is which, its conductor does.
type fleet struct {
	host     *Host
	name     string
	settings Settings
	home     string
	log      *slog.Logger

	// quitting ends when the plugin is to go, or the host.
	quitting context.Context
	quit     context.CancelFunc
	// generations are those that have not gone.
	generations sync.WaitGroup

	// orders wait for the conductor, ordered tells it.
	orders  orders
	ordered chan struct{}
	// watched is the conductor's; it is not looked at before lookAfter.
	watched   *binary.Watch
	lookAfter time.Time
	// spurned is the digest of the version that was last rolled back or
	// refused, spurnedMode the mode of its file, and spurnedAs how it was
	// configured; the conductor's.
	spurned     string
	spurnedMode os.FileMode
	spurnedAs   Config
	// before is what served before, until its successor, promoted or enabled, has
	// passed its probation; the conductor's.
	before *predecessor
	// rested is what served when the plugin was disabled, until it is enabled;
	// the conductor's.
	rested *predecessor

	mu sync.Mutex
	// config is what the plugin is configured to be; a generation has what it
	// was when that was made.
	config Config
	// current serves, or did before the plugin was disabled. It is never nil.
	current *generation
	// next is the candidate; nil while there is none.
	next *generation
	// old are those that drain.
	old []*generation
	// disabled says that the plugin is not to serve. Until its conductor comes
	// to that, current still does.
	disabled bool
	// manifest is the one of the version that serves, or served last.
	manifest *message.Manifest
	// onTrial says that the candidate has a share of the starts, and due how
	// many it is to be given now.
	onTrial    bool
	share, due float64
	// breakOff ends the swap that is under way.
	breakOff  context.CancelCauseFunc
	lastSwap  *job.PluginSwap
	restarts  int
	crashes   int
	lastError string
	// unusable says why the file cannot be what is to serve, and leftOut why
	// it does not though it could; empty for neither.
	unusable, leftOut string
}

// newFleet pins the binary. Its error is that of a binary that cannot be read.
func newFleet(h *Host, settings Settings, config Config) (*fleet, error) {
	pinned, err := binary.Pin(config.Path)
	if err != nil {
		return nil, err
	}
	f := &fleet{
		host: h, name: config.Name, settings: settings, home: h.home.Path, config: config,
		log:     settings.Log.With("plugin", config.Name),
		ordered: make(chan struct{}, 1),
		watched: binary.NewWatch(config.Path, pinned.Info()),
	}
	f.quitting, f.quit = context.WithCancel(h.draining)
	f.current = f.newGeneration(config, pinned, serving)
	return f, nil
}

// reserve takes a slot for an attempt of the type, of the process that has the
// fewest; nil when none is free. While a candidate is on trial, it gets its share
// of the starts.
func (f *fleet) reserve(jobType string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var chosen *process
	if f.onTrial && f.due >= 1 && slices.Contains(f.next.manifest.Types, jobType) {
		if chosen = f.next.leastLoaded(jobType); chosen != nil {
			f.due--
		}
	}
	if chosen == nil && f.current.role == serving {
		chosen = f.current.leastLoaded(jobType)
	}
	if chosen != nil {
		chosen.take(jobType)
		f.due = min(f.due+f.share, 1)
	}
	return chosen
}

// release frees a slot that was reserved and not used.
func (f *fleet) release(p *process, jobType string) {
	f.mu.Lock()
	p.free(jobType)
	f.mu.Unlock()
	f.host.signal()
}

// configured is what the plugin is configured to be now.
func (f *fleet) configured() Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config
}

// pool is the room of the version that serves, for the job types that the
// configuration leaves it by now; false when there is none, or none whose manifest is
// known yet. What a candidate on trial takes of it is not known to
// those who claim.
func (f *fleet) pool() (job.Pool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	if g.role != serving || g.manifest == nil {
		return job.Pool{}, false
	}
	left := g.manifest.Without(f.config.leavesOut).Types
	if len(left) == 0 {
		return job.Pool{}, false
	}
	pool := job.Pool{
		Plugin: f.name, Version: g.manifest.Version, Types: left,
		Down: len(g.live) == 0, FreeIsolated: g.freeAlone(),
	}
	for _, p := range g.live {
		p.addRoom(&pool)
	}
	for jobType, most := range boundsOf(g.manifest).most {
		if pool.RoomIsolated == nil {
			pool.RoomIsolated = make(map[string]int)
		}
		pool.RoomIsolated[jobType] = g.freeAloneOf(jobType, most)
	}
	return pool, true
}

// declared is the manifest of the version that serves, or served last, but for what
// the configuration has given to other plugins since; nil before the first was up.
func (f *fleet) declared() *message.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manifestLocked()
}

func (f *fleet) manifestLocked() *message.Manifest {
	if f.manifest == nil {
		return nil
	}
	return f.manifest.Without(f.config.leavesOut)
}

// serves lists the job types that the fleet stands for: also those of a
// candidate, so that no other plugin takes them meanwhile. The fleet is locked.
func (f *fleet) serves() []string {
	var types []string
	if m := f.manifestLocked(); m != nil {
		types = append(types, m.Types...)
	}
	if f.next != nil && f.next.manifest != nil {
		types = append(types, f.next.manifest.Types...)
	}
	return types
}

// retire has a generation finish what it has, for as long as it may, and then
// frees what it holds. The fleet is locked.
func (f *fleet) retire(g *generation, as role) {
	g.role = as
	f.old = append(f.old, g)
	g.drain()
	f.generations.Go(func() {
		defer g.kill()
		if f.host.draining.Err() == nil { // else the host says how long
			patience, cancel := context.WithTimeout(context.Background(), f.settings.DrainTimeout)
			defer cancel()
			defer context.AfterFunc(patience, g.kill)()
		}
		g.slots.Wait()
		g.binary.Close()
		f.mu.Lock()
		f.old = slices.DeleteFunc(f.old, func(other *generation) bool { return other == g })
		f.mu.Unlock()
		g.log.Info("plugin version stopped")
		f.host.signal()
	})
}
