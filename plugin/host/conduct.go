package host

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/watch"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// orders are what a conductor is to do, one after the other.
type orders struct {
	mu      sync.Mutex
	waiting []func()
	closed  bool
}

// order has the conductor do something; false when it takes no more orders.
func (f *fleet) order(do func()) bool {
	f.orders.mu.Lock()
	defer f.orders.mu.Unlock()
	if f.orders.closed {
		return false
	}
	f.orders.waiting = append(f.orders.waiting, do)
	select {
	case f.ordered <- struct{}{}:
	default:
	}
	return true
}

// takeOrders returns what waits. At last, nothing is taken any more.
func (f *fleet) takeOrders(last bool) []func() {
	f.orders.mu.Lock()
	defer f.orders.mu.Unlock()
	waiting := f.orders.waiting
	f.orders.waiting, f.orders.closed = nil, last
	return waiting
}

// conduct starts the fleet, and carries out what operators order and what
// follows from a changed file, until the fleet is to go. It returns when nothing
// of the fleet is left.
func (f *fleet) conduct() {
	f.current.start()
	looks := time.NewTicker(f.settings.WatchPeriod)
	defer looks.Stop()
	for f.quitting.Err() == nil {
		select {
		case <-f.quitting.Done():
		case <-f.ordered:
			f.carryOut(f.takeOrders(false))
		case <-looks.C:
			f.look()
			f.endProbation()
		}
	}
	f.before.forget()
	// They fail by themselves by now, and somebody may wait for them.
	f.carryOut(f.takeOrders(true))
	f.mu.Lock()
	if f.current.role == serving {
		f.retire(f.current, retired)
	}
	f.mu.Unlock()
	f.generations.Wait()
	f.quit()
}

func (f *fleet) carryOut(orders []func()) {
	for _, do := range orders {
		do()
	}
}

// look begins a swap when the file of the binary is another than the one that
// serves, and than the one that has failed.
func (f *fleet) look() {
	f.mu.Lock()
	config, idle := f.config, f.disabled
	serves := f.current.binary.Digest
	f.mu.Unlock()
	now := time.Now()
	if idle || !config.Watch || now.Before(f.lookAfter) || !f.watched.Changed(now, f.settings.WatchStill) {
		return
	}
	seen := f.watched.Seen()
	digest, err := child.Digest(config.Path)
	switch {
	case err != nil:
		return
	case digest == serves:
		f.spurned = ""
	case digest != f.spurned:
		f.swap(plan{trigger: job.SwapByFile, config: config})
		return
	}
	f.watched.Know(seen)
}

// reconfigure makes the configuration the plugin's. A version with another
// environment, other limits and so on takes the place of the one that serves, and
// so does another file.
func (f *fleet) reconfigure(config Config) {
	f.mu.Lock()
	f.config = config
	g, disabled := f.current, f.disabled
	f.mu.Unlock()
	if g.config.Path != config.Path {
		f.watched = watch.New(config.Path, nil)
	}
	if disabled {
		return
	}
	digest, err := child.Digest(config.Path)
	if g.config.launchesLike(config) && (err != nil || digest == g.binary.Digest || digest == f.spurned) {
		return
	}
	f.swap(plan{trigger: job.SwapByConfig, config: config})
}

// restart is the plan to replace the version that serves by itself.
func (f *fleet) restart() plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.current
	p := plan{trigger: job.SwapByRestart, config: g.config}
	if g.role == serving {
		p.binary = g.binary.Share()
	}
	return p
}

// disable stops the plugin. Its conductor does it.
func (f *fleet) disable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled = true
	if f.current.role != serving {
		return
	}
	f.retire(f.current, retired)
	f.log.Info("plugin disabled")
	f.host.signal()
}

// enable starts what stands under the configured path now. Its conductor does it.
func (f *fleet) enable() error {
	f.mu.Lock()
	config, serves := f.config, f.current.role == serving
	f.mu.Unlock()
	if serves {
		return nil
	}
	binary, err := child.Pin(config.Path)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", f.name, err)
	}
	f.watched, f.spurned = watch.New(config.Path, binary.Info()), ""
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled = false
	f.current = f.newGeneration(config, binary, serving)
	f.current.start()
	f.log.Info("plugin enabled", "digest", binary.Digest)
	f.host.signal()
	return nil
}
