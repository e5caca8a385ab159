package host

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// errWaiting means that the context ended before the order's turn.
var errWaiting = errors.New("another swap is under way")

// order sends an order to the plugin's conductor. The error is job.ErrNoPlugin if
// there is no such plugin.
func (h *Host) order(name string, do func(*conductor)) (*fleet, *order, error) {
	if f := h.roster.Load().byName[name]; f != nil {
		if o := f.order(do); o != nil {
			return f, o, nil
		}
	}
	return nil, nil, fmt.Errorf("plugin %s: %w", name, job.ErrNoPlugin)
}

// Swap replaces the serving version with the file that is now at the plugin's path, as
// if the file had just changed. With force, it does not compare the manifests. Swap
// returns the result. If ctx ends first, it returns ctx's error. If the swap has begun
// by then, it continues, and Swap also returns what is known of it. If it is still
// waiting for another swap, it never begins, and Swap returns an empty result. For an
// unknown name, Swap and the methods below return job.ErrNoPlugin.
func (h *Host) Swap(ctx context.Context, name string, force bool) (v1.PluginSwap, error) {
	return h.swap(ctx, name, func(c *conductor) plan {
		return plan{trigger: job.SwapByRequest, config: c.configured(), force: force, actor: job.Actor(ctx)}
	})
}

// Restart replaces the plugin's processes with new ones of the same version, which
// start beside the old ones. It returns what Swap returns.
func (h *Host) Restart(ctx context.Context, name string) (v1.PluginSwap, error) {
	return h.swap(ctx, name, func(c *conductor) plan {
		c.mu.Lock()
		defer c.mu.Unlock()
		p := plan{trigger: job.SwapByRestart, config: c.current.config, actor: job.Actor(ctx)}
		if c.deploy.serves() {
			p.binary = c.current.binary.Share()
		}
		return p
	})
}

func (h *Host) swap(ctx context.Context, name string, design func(*conductor) plan) (v1.PluginSwap, error) {
	begun := make(chan v1.PluginSwap, 1)
	var s v1.PluginSwap
	f, o, err := h.order(name, func(c *conductor) {
		p := design(c)
		p.begun = begun
		s = c.swap(p)
	})
	if err != nil {
		return v1.PluginSwap{}, err
	}
	select {
	case <-o.done:
		return s, nil
	case <-ctx.Done():
	}
	if o.withdraw() {
		return v1.PluginSwap{}, fmt.Errorf("plugin %s: %w: %w", name, errWaiting, ctx.Err())
	}
	return f.progressOf(<-begun), fmt.Errorf("plugin %s: the swap is still under way: %w", name, ctx.Err())
}

// progressOf returns what is known of the swap. If another one has begun since, that is
// how the swap began.
func (f *fleet) progressOf(s v1.PluginSwap) v1.PluginSwap {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lastSwap.BegunAt.Equal(s.BegunAt) {
		return *f.lastSwap
	}
	return s
}

// Disable retires the plugin's version, which finishes its attempts and stops. Its jobs
// stay queued until the plugin is enabled. Disable returns when no more attempts begin.
// If ctx ends first, it returns ctx's error, but the plugin is disabled anyway.
// Disabling a disabled plugin does nothing.
func (h *Host) Disable(ctx context.Context, name string) error {
	if f := h.roster.Load().byName[name]; f != nil {
		f.markDisabled()
	}
	var failed error
	_, o, err := h.order(name, func(c *conductor) { failed = c.disable(job.Actor(ctx)) })
	if err != nil {
		return err
	}
	select {
	case <-o.done:
		return failed
	case <-ctx.Done():
		return fmt.Errorf("plugin %s: %w: %w", name, errWaiting, ctx.Err())
	}
}

// markDisabled ends the swap under way. Swaps that wait ahead of the order to disable
// the plugin then end at once.
func (f *fleet) markDisabled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deploy.fire(eventDisable) != nil {
		return // The plugin is closed, so the order will fail.
	}
	if f.stopSwap != nil {
		f.stopSwap(errDisabling)
	}
}

// Enable starts a disabled plugin with the file that is now at its path. If that
// version was rolled back or refused, and force is not set, Enable starts the version
// that served last, and the status says so. If that version is gone, Enable returns an
// error. Enabling a plugin that is not disabled does nothing. If ctx ends before Enable
// begins, it returns ctx's error and changes nothing.
func (h *Host) Enable(ctx context.Context, name string, force bool) error {
	var failed error
	_, o, err := h.order(name, func(c *conductor) { failed = c.enable(force, job.Actor(ctx)) })
	if err != nil {
		return err
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		if o.withdraw() {
			return fmt.Errorf("plugin %s: %w: %w", name, errWaiting, ctx.Err())
		}
		<-o.done // It has begun, and is quick: it only reads the file.
	}
	return failed
}

// Reload replaces the list of configured plugins. It starts added plugins, and gives
// removed ones time to finish their attempts. If a plugin's launch configuration or
// file has changed, the new version replaces the old one in a swap. Reload does not
// wait for any of that. When it returns an error, nothing has changed.
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
				for _, f := range added {
					f.quit()
					f.current.kill()
					f.current.binary.Close()
				}
				return fmt.Errorf("plugin %s: %w", config.Name, err)
			}
			added = append(added, f)
		}
		next.fleets = append(next.fleets, f)
		next.byName[f.name] = f
	}
	h.roster.Store(next)
	for _, f := range present.fleets {
		if next.byName[f.name] == nil {
			f.log.Info("plugin removed")
			f.quit()
			h.releaseTypes(f)
		}
	}
	for _, f := range added {
		h.running.Go(f.conduct)
	}
	for _, config := range plugins {
		if f := present.byName[config.Name]; f != nil {
			f.order(func(c *conductor) { c.reconfigure(config) })
		}
	}
	h.changed.Raise()
	return nil
}
