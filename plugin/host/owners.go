package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// adopt gives the manifest to the generation, and makes the plugin the owner of its job
// types. It returns an error if another plugin owns one of them, here or in the ledger,
// unless the configuration lists the type under this plugin.
func (h *Host) adopt(ctx context.Context, g *generation, m *message.Manifest) error {
	if len(m.Types) == 0 {
		return connection.Refuse(fmt.Errorf("the configuration gives it none of the job types that it declares: %q", m.SkippedTypes))
	}
	f := g.fleet
	listed := f.configured().Types
	h.mu.Lock()
	err := h.admits(f, m, listed)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	if !g.asksLater(m) {
		if err := h.ask(ctx, f, m, listed); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.admits(f, m, listed); err != nil {
		return err
	}
	if err := g.agree(m); err != nil {
		return connection.Refuse(err)
	}
	if g == f.current {
		f.manifest = m
	}
	h.claimTypes(f)
	return nil
}

// claim makes the plugin of a candidate the owner of its job types, before the
// candidate gets any job.
func (h *Host) claim(ctx context.Context, g *generation) error {
	g.fleet.mu.Lock()
	m, listed := g.manifest, g.fleet.config.Types
	g.fleet.mu.Unlock()
	return h.ask(ctx, g.fleet, m, listed)
}

// admits returns an error if another plugin of this host serves one of the types. The
// host is locked.
func (h *Host) admits(f *fleet, m *message.Manifest, listed []string) error {
	for _, name := range m.Types {
		if owner := h.owners[name]; owner != nil && owner != f && !slices.Contains(listed, name) {
			return connection.Refuse(fmt.Errorf("job type %s is already served by plugin %s", name, owner.name))
		}
	}
	return nil
}

// asksLater reports whether to skip the ledger now. Asking once per generation is
// enough, since what it serves does not change. A candidate asks later, after the
// comparison.
func (g *generation) asksLater(m *message.Manifest) bool {
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	return g.role == candidate || g.manifest != nil && g.manifest.Equal(m)
}

// ask makes the plugin the owner of the job types in the ledger.
func (h *Host) ask(ctx context.Context, f *fleet, m *message.Manifest, listed []string) error {
	if h.settings.Ledger == nil {
		return nil
	}
	err := h.settings.Ledger.OwnTypes(ctx, f.name, m.Types, listed)
	var owned *job.TypeOwnedError
	switch {
	case errors.As(err, &owned):
		return connection.Refuse(fmt.Errorf("%w, which served it before; to move it, list it as a type of plugin %s in the configuration", owned, f.name))
	case err != nil:
		return fmt.Errorf("cannot find out whether it may serve its job types: %w", err)
	}
	return nil
}

// claimTypes makes the fleet the owner of the types that it serves, and of no others.
// Host and fleet are locked.
func (h *Host) claimTypes(f *fleet) {
	h.releaseTypes(f)
	if f.quitting.Err() != nil {
		return
	}
	for _, name := range f.types() {
		if h.owners[name] == nil || slices.Contains(f.config.Types, name) {
			h.owners[name] = f
		}
	}
}

// releaseTypes frees the fleet's types. The host is locked.
func (h *Host) releaseTypes(f *fleet) {
	for name, owner := range h.owners {
		if owner == f {
			delete(h.owners, name)
		}
	}
}
