package host

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
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
	// They fail by themselves by now, and somebody may wait for them. They may need
	// the versions that are kept.
	f.carryOut(f.takeOrders(true))
	f.before.forget()
	f.rested.forget()
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
	g := f.current
	f.mu.Unlock()
	now := time.Now()
	if idle || !config.Watch {
		f.passOver(nil)
		return
	}
	if now.Before(f.lookAfter) {
		return
	}
	changed, err := f.watched.Changed(now, f.settings.WatchStable)
	digest := ""
	if changed {
		digest, err = binary.Digest(config.Path)
	}
	f.passOver(err)
	if !changed || err != nil {
		return
	}
	seen := f.watched.Seen()
	serves := digest == g.binary.Digest && g.launchesLike(config)
	switch {
	case digest == f.spurned && seen.Mode() == f.spurnedMode && !serves:
	case serves:
		f.spurned = ""
		f.leaveOut("")
	default:
		f.swap(plan{trigger: job.SwapByFile, config: config})
		return
	}
	f.watched.Know(seen)
}

// passOver says why the file cannot be what is to serve, once for each reason; nil
// when it can.
func (f *fleet) passOver(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.mu.Lock()
	changed := f.unusable != text
	f.unusable = text
	f.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		f.log.Warn("plugin file passed over; what serves stays", "error", err)
	}
	f.host.signal()
}

// leaveOut says why the file does not serve though it could.
func (f *fleet) leaveOut(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leftOut = why
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
		f.watched = binary.NewWatch(config.Path, nil)
	}
	if disabled {
		return
	}
	digest, err := binary.Digest(config.Path)
	if g.launchesLike(config) && (err != nil || digest == g.binary.Digest || digest == f.spurned) {
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
