package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var errDisabling = errors.New("the plugin was disabled")

// Swap puts what stands under the plugin's path in the place of the version that
// serves, as when the file has changed; with force, whatever the manifest says.
// It returns how that went. When ctx ends before, it returns ctx's error: with the
// swap as far as it has come, if it has begun, and it goes on; with an empty one if
// it was waiting behind another, and nothing comes of it. A name that no plugin has
// is job.ErrNoPlugin, here and below.
func (h *Host) Swap(ctx context.Context, name string, force bool) (job.PluginSwap, error) {
	return h.ordered(ctx, name, func(f *fleet) plan {
		f.mu.Lock()
		defer f.mu.Unlock()
		return plan{trigger: job.SwapByRequest, config: f.config, force: force}
	})
}

// Restart replaces the processes of the plugin by others of the same version, one
// set beside the other, and returns how that went, as Swap does.
func (h *Host) Restart(ctx context.Context, name string) (job.PluginSwap, error) {
	return h.ordered(ctx, name, (*fleet).restart)
}

// ordered has the conductor make a plan and carry it out, unless ctx ends before it
// comes to that.
func (h *Host) ordered(ctx context.Context, name string, design func(*fleet) plan) (job.PluginSwap, error) {
	begun, done := make(chan job.PluginSwap, 1), make(chan job.PluginSwap, 1)
	var decided atomic.Bool // that it begins, or that it never does
	f := h.roster.Load().byName[name]
	if f == nil || !f.order(func() {
		if decided.CompareAndSwap(false, true) {
			p := design(f)
			p.begun = begun
			done <- f.swap(p)
		}
	}) {
		return job.PluginSwap{}, fmt.Errorf("plugin %s: %w", name, job.ErrNoPlugin)
	}
	select {
	case s := <-done:
		return s, nil
	case <-ctx.Done():
	}
	if decided.CompareAndSwap(false, true) {
		return job.PluginSwap{}, fmt.Errorf("plugin %s: another swap is under way: %w", name, ctx.Err())
	}
	return f.sinceBegun(<-begun), fmt.Errorf("plugin %s: the swap is still under way: %w", name, ctx.Err())
}

// sinceBegun is the swap as far as it has come, or as it began if another one has
// begun since.
func (f *fleet) sinceBegun(s job.PluginSwap) job.PluginSwap {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lastSwap.BegunAt.Equal(s.BegunAt) {
		return *f.lastSwap
	}
	return s
}

// Disable lets the plugin finish what it has and stops its processes. Nothing of
// it is started until it is enabled; its jobs stay queued. It returns when no more
// attempts are begun; when ctx ends before, with its error, and the plugin is
// disabled all the same. A plugin that is disabled stays so.
func (h *Host) Disable(ctx context.Context, name string) error {
	f := h.roster.Load().byName[name]
	if f != nil {
		f.markDisabled()
	}
	return h.obeyed(ctx, name, func(f *fleet) error { f.disable(); return nil })
}

// Enable starts a plugin that was disabled, with what stands under its path now.
// When that was rolled back or refused, and without force, the version serves that
// served before, and the status says so; it is an error when that one is not there
// any more. One that is not disabled is left as it is. When ctx ends before its
// turn has come, Enable returns ctx's error, and nothing comes of it.
func (h *Host) Enable(ctx context.Context, name string, force bool) error {
	var decided atomic.Bool // that it is done, or that it never is
	done := make(chan error, 1)
	err := h.obeyed(ctx, name, func(f *fleet) error {
		if decided.CompareAndSwap(false, true) {
			done <- f.enable(force)
		}
		return nil
	})
	if errors.Is(err, job.ErrNoPlugin) || errors.Is(err, errWaiting) && decided.CompareAndSwap(false, true) {
		return err
	}
	return <-done // It has begun: the file is read, and that is all that it waits for.
}

// errWaiting says that the conductor has not come to an order.
var errWaiting = errors.New("a swap is under way before")

func (h *Host) obeyed(ctx context.Context, name string, do func(*fleet) error) error {
	done := make(chan error, 1)
	f := h.roster.Load().byName[name]
	if f == nil || !f.order(func() { done <- do(f) }) {
		return fmt.Errorf("plugin %s: %w", name, job.ErrNoPlugin)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("plugin %s: %w: %w", name, errWaiting, ctx.Err())
	}
}

// markDisabled breaks off the swap that is under way, and those that wait before
// the conductor comes to disable the plugin.
func (f *fleet) markDisabled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled = true
	if f.breakOff != nil {
		f.breakOff(errDisabling)
	}
}

// Reload makes these the configured plugins. Those that are new are started,
// those that are missing finish what they have and stop, and where anything
// differs in what is launched, also the content of the binary, the new version
// takes the place of the old one as in a swap. It does not wait for any of that.
// When it returns an error, nothing has changed.
func (h *Host) Reload(plugins []Config) error {
	if err := validateAll(plugins); err != nil {
		return err
	}
	plugins = resolved(plugins)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return errors.New("the plugin host is closing")
	}
	present := h.roster.Load()
	next := &roster{byName: make(map[string]*fleet)}
	var added []*fleet
	for _, config := range plugins {
		f := present.byName[config.Name]
		if f == nil {
			var err error
			if f, err = newFleet(h, h.settings, config); err != nil {
				discard(added)
				return fmt.Errorf("plugin %s: %w", config.Name, err)
			}
			added = append(added, f)
		}
		next.add(f)
	}
	h.roster.Store(next)
	for _, f := range present.fleets {
		if next.byName[f.name] == nil {
			h.dismiss(f)
		}
	}
	for _, f := range added {
		h.slots.Go(f.conduct)
	}
	for _, config := range plugins {
		if f := present.byName[config.Name]; f != nil {
			f.order(func() { f.reconfigure(config) })
		}
	}
	h.signal()
	return nil
}

// discard drops plugins that were never started.
func discard(fleets []*fleet) {
	for _, f := range fleets {
		f.quit()
		f.current.binary.Close()
	}
}

// dismiss takes a plugin out of service. The host is locked.
func (h *Host) dismiss(f *fleet) {
	f.log.Info("plugin removed")
	f.quit()
	h.disown(f)
}
