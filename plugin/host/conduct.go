package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// conductor is the one goroutine that changes which generation of a fleet serves. It
// carries out orders one after another, and watches the plugin's file.
type conductor struct {
	*fleet
	watch *binary.Watch
	// watchAgain is when to look at the file again, after a swap that was abandoned.
	watchAgain time.Time
	// rejected is the version that was last rolled back or refused.
	rejected version
	// predecessor serves again if the serving version keeps failing before
	// probationEnds; nil for none.
	predecessor   *keptVersion
	probationEnds time.Time
	// lastServed is the version that served when the plugin was disabled; nil while it
	// is enabled.
	lastServed *keptVersion
}

// version is a version of a plugin that does not serve.
type version struct {
	config Config
	digest string
	mode   os.FileMode
}

// is reports whether a file with that digest, under that configuration, is this
// version.
func (v version) is(digest string, config Config) bool {
	return v.digest == digest && v.config.launchesLike(config)
}

// keptVersion is a version that has served and may serve again. A nil *keptVersion
// means that there is none.
type keptVersion struct {
	version
	binary *binary.File
}

func (k *keptVersion) is(digest string, config Config) bool {
	return k != nil && k.version.is(digest, config)
}

func (k *keptVersion) close() {
	if k != nil {
		k.binary.Close()
	}
}

// usable says why the version cannot serve again; nil if it can.
func (k *keptVersion) usable() error {
	if k == nil {
		return errors.New("no version has served before")
	}
	if _, err := k.binary.ToExecute(""); err != nil {
		return fmt.Errorf("the version that served before cannot be launched: %w", err)
	}
	return nil
}

// order is a task for the conductor. It can be withdrawn before its turn.
type order struct {
	do func(*conductor)
	// decided is set when the conductor begins the order, or the order is withdrawn.
	decided atomic.Bool
	// done is closed after the order's turn.
	done chan struct{}
}

// withdraw withdraws the order. It returns false if the conductor has already begun it.
func (o *order) withdraw() bool { return o.decided.CompareAndSwap(false, true) }

func (o *order) carryOut(c *conductor) {
	if o.decided.CompareAndSwap(false, true) {
		o.do(c)
	}
	close(o.done)
}

// orders is the queue of the conductor.
type orders struct {
	// arrived is raised after a new order.
	arrived loop.Signal

	mu      sync.Mutex
	waiting []*order
	closed  bool
}

// order queues an order. It returns nil if the conductor takes no more.
func (f *fleet) order(do func(*conductor)) *order {
	f.orders.mu.Lock()
	defer f.orders.mu.Unlock()
	if f.orders.closed {
		return nil
	}
	o := &order{do: do, done: make(chan struct{})}
	f.orders.waiting = append(f.orders.waiting, o)
	f.orders.arrived.Raise()
	return o
}

// carryOutOrders carries out all waiting orders. If last is set, the queue takes no
// more.
func (c *conductor) carryOutOrders(last bool) {
	c.orders.mu.Lock()
	waiting := c.orders.waiting
	c.orders.waiting, c.orders.closed = nil, last
	c.orders.mu.Unlock()
	for _, o := range waiting {
		o.carryOut(c)
	}
}

// conduct starts the fleet, and then carries out orders and reacts to changes of the
// file until the fleet must stop. It returns when all of the fleet's processes are
// gone.
func (f *fleet) conduct() {
	c := &conductor{fleet: f, watch: binary.NewWatch(f.config.Path, f.current.binary.Info())}
	f.current.start()
	looks := time.NewTicker(f.settings.WatchPeriod)
	defer looks.Stop()
	for f.quitting.Err() == nil {
		select {
		case <-f.quitting.Done():
		case <-f.orders.arrived:
			c.carryOutOrders(false)
		case <-looks.C:
			c.lookAtFile()
			c.endProbation()
		}
	}
	// Callers may be waiting for these orders, and the orders may need the kept
	// versions. Swaps among them fail, since the plugin is stopping.
	c.carryOutOrders(true)
	c.predecessor.close()
	c.lastServed.close()
	f.mu.Lock()
	if f.deploy.serves() {
		f.retire(f.current, retired)
	}
	c.expect(f.deploy.fire(eventClose))
	f.mu.Unlock()
	f.generations.Wait()
	f.quit()
}

// expect logs an event that the state of the plugin should have allowed.
func (c *conductor) expect(err error) {
	if err != nil {
		c.log.Error("plugin deploy went wrong", "error", err)
	}
}

// lookAtFile begins a swap if the file is neither the serving nor the rejected version.
func (c *conductor) lookAtFile() {
	c.mu.Lock()
	config, disabled, g := c.config, c.deploy.isDisabled(), c.current
	c.mu.Unlock()
	now := time.Now()
	if disabled || !config.Watch {
		c.setUnusable(nil)
		return
	}
	if now.Before(c.watchAgain) {
		return
	}
	changed, err := c.watch.Changed(now, c.settings.WatchStable)
	digest := ""
	if changed {
		digest, err = binary.Digest(config.Path)
	}
	c.setUnusable(err)
	if !changed || err != nil {
		return
	}
	seen := c.watch.Seen()
	serves := digest == g.binary.Digest && g.launchesLike(config)
	switch {
	case c.wasRejected(digest, seen.Mode()) && !serves:
	case serves:
		// What serves may be what was rejected, if its predecessor could not return.
		if !c.rejected.is(digest, config) {
			c.rejected = version{}
		}
		c.mu.Lock()
		c.skipReason = ""
		c.mu.Unlock()
	default:
		c.swap(plan{trigger: job.SwapByFile, config: config})
		return
	}
	c.watch.Know(seen)
}

// wasRejected reports whether the file is what was last rolled back or refused.
func (c *conductor) wasRejected(digest string, mode os.FileMode) bool {
	return digest == c.rejected.digest && mode == c.rejected.mode
}

// setUnusable records why the file cannot serve; nil if it can. It logs each reason
// once.
func (c *conductor) setUnusable(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	c.mu.Lock()
	changed := c.unusable != reason
	c.unusable = reason
	c.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		c.log.Warn("plugin file skipped; the serving version stays", "error", err)
		c.record(job.PluginEvent{Event: job.PluginFileSkipped, Reason: reason}, nil)
	}
	c.host.changed.Raise()
}

// reconfigure makes this the configuration. It begins a swap if the serving processes
// were launched under a different one, or if the file has changed.
func (c *conductor) reconfigure(config Config) {
	c.mu.Lock()
	c.config = config
	g, disabled := c.current, c.deploy.isDisabled()
	c.mu.Unlock()
	if c.watch.Path != config.Path {
		c.watch = binary.NewWatch(config.Path, nil)
	}
	if disabled {
		return
	}
	digest, err := binary.Digest(config.Path)
	if g.launchesLike(config) && (err != nil || digest == g.binary.Digest || digest == c.rejected.digest) {
		return
	}
	c.swap(plan{trigger: job.SwapByConfig, config: config})
}

// keepCurrent returns the serving version, which the caller must close; nil if it was
// never up. The fleet is locked.
func (c *conductor) keepCurrent() *keptVersion {
	g := c.current
	if g.manifest == nil {
		return nil
	}
	return &keptVersion{g.identity(), g.binary.Share()}
}

func (g *generation) identity() version {
	return version{config: g.config, digest: g.binary.Digest, mode: g.binary.Info().Mode()}
}

// endProbation forgets the predecessor when the probation is over.
func (c *conductor) endProbation() {
	if c.predecessor == nil || time.Now().Before(c.probationEnds) {
		return
	}
	c.predecessor.close()
	c.predecessor = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deploy.state == stateProbation { // Otherwise the plugin is disabled.
		c.expect(c.deploy.fire(eventSettle))
	}
}

// rollBack returns to the predecessor if the serving version keeps failing. A trial
// with few jobs does not show all faults.
func (c *conductor) rollBack() {
	c.endProbation()
	c.mu.Lock()
	g := c.current
	failing := g.keepsFailing()
	version, lastError, plainError := g.version(), c.lastError, c.plainError
	since := "it was enabled"
	if g.promoted {
		since = "its promotion"
	}
	c.mu.Unlock()
	if c.predecessor == nil || !failing {
		return
	}
	reason := fmt.Sprintf("%s kept failing soon after %s: ", nameOf(version), since)
	c.swap(plan{
		trigger: job.SwapByFailure, config: c.predecessor.config, binary: c.predecessor.binary.Share(), force: true,
		reason: reason + lastError, plainReason: reason + plainError,
	})
	c.rejected = g.identity()
}

// nameOf names a version, by its digest if it was never up.
func nameOf(v v1.PluginVersion) string {
	if v.Version == "" {
		return fmt.Sprintf("the version with the SHA-256 %.12s…", v.SHA256)
	}
	return fmt.Sprintf("version %q", v.Version)
}

// disable retires the serving version and remembers it in lastServed.
func (c *conductor) disable(actor string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.deploy.fire(eventDisable); err != nil || c.deploy.state == stateDisabled {
		return err
	}
	if c.lastServed = c.keepCurrent(); c.lastServed == nil { // It was never up, so its predecessor served last.
		c.lastServed, c.predecessor = c.predecessor, nil
	}
	c.retire(c.current, retired)
	c.log.Info("plugin disabled")
	c.current.happenedLocked(job.PluginEvent{Event: job.PluginWasDisabled, Actor: actor}, nil)
	c.host.changed.Raise()
	return c.deploy.fire(eventRetire)
}

const rejectedFile = "the version that was rolled back or refused"

// enable starts the version in the file. If that version was rejected, enable starts
// the version that served last instead, unless force is set. If the file is the version
// that served last, it starts even if it was rejected. Any other version starts on
// probation. enable does nothing if the plugin is not disabled.
func (c *conductor) enable(force bool, actor string) error {
	c.mu.Lock()
	config, serves := c.config, c.deploy.serves()
	c.mu.Unlock()
	if serves {
		return nil
	}
	file, err := binary.Pin(config.Path)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", c.name, err)
	}
	c.setUnusable(nil)
	watch, rejected, skipReason := binary.NewWatch(config.Path, file.Info()), version{}, ""
	if c.rejected.is(file.Digest, config) && !force && !c.lastServed.is(file.Digest, config) {
		file.Close()
		if err := c.lastServed.usable(); err != nil {
			return fmt.Errorf("plugin %s: its file is %s, and %w; use force to enable it anyway", c.name, rejectedFile, err)
		}
		config, file = c.lastServed.config, c.lastServed.binary.Share()
		rejected, skipReason = c.rejected, "it is "+rejectedFile
		c.log.Warn("plugin file skipped; enabling the version that served before", "error", skipReason)
	}
	c.watch, c.rejected = watch, rejected
	if c.lastServed != nil && !c.lastServed.is(file.Digest, config) {
		c.predecessor, c.lastServed = c.lastServed, c.predecessor
		c.probationEnds = time.Now().Add(c.settings.Probation)
	}
	c.lastServed.close()
	c.lastServed = nil
	event := eventEnable
	if c.predecessor != nil {
		event = eventEnableOnProbation
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.deploy.fire(event); err != nil {
		file.Close()
		return err
	}
	c.skipReason = skipReason
	c.current = c.newGeneration(config, file, serving)
	c.current.start()
	c.log.Info("plugin enabled", "digest", file.Digest)
	c.current.happenedLocked(job.PluginEvent{Event: job.PluginWasEnabled, Actor: actor, Reason: skipReason}, nil)
	c.host.changed.Raise()
	return nil
}
