package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// adopt makes the manifest the generation's and its plugin the owner of the job
// types in it. It is a refusal when another plugin owns one of them, here or in
// the ledger, and the configuration does not list it under this one.
func (h *Host) adopt(ctx context.Context, g *generation, m *message.Manifest) error {
	if len(m.Types) == 0 {
		return refusal{fmt.Errorf("the configuration leaves it none of the job types that it declares: %q", m.LeftOut)}
	}
	if err := h.admits(g, m); err != nil {
		return err
	}
	if err := h.own(ctx, g, m); err != nil {
		return err
	}
	f := g.fleet
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := h.admitsLocked(g, m); err != nil {
		return err
	}
	if err := g.agree(m); err != nil {
		return refusal{err}
	}
	if g == f.current {
		f.manifest = m
	}
	h.claimTypes(f)
	return nil
}

// admits refuses types that another plugin of this host serves.
func (h *Host) admits(g *generation, m *message.Manifest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admitsLocked(g, m)
}

func (h *Host) admitsLocked(g *generation, m *message.Manifest) error {
	for _, name := range m.Types {
		if owner := h.owners[name]; owner != nil && owner != g.fleet && !slices.Contains(g.config.Types, name) {
			return refusal{fmt.Errorf("job type %s is already served by plugin %s", name, owner.name)}
		}
	}
	return nil
}

// own asks the ledger for the types, once for each generation: what it serves
// does not change while it lives.
func (h *Host) own(ctx context.Context, g *generation, m *message.Manifest) error {
	ledger, f := h.settings.Ledger, g.fleet
	f.mu.Lock()
	asked := g.manifest != nil && g.manifest.Equal(m)
	f.mu.Unlock()
	if ledger == nil || asked {
		return nil
	}
	err := ledger.OwnTypes(ctx, f.name, m.Types, g.config.Types)
	var owned *job.TypeOwnedError
	switch {
	case errors.As(err, &owned):
		return refusal{fmt.Errorf("%w, which served it before; to move it, list it as a type of plugin %s in the configuration", owned, f.name)}
	case err != nil:
		return fmt.Errorf("whether it may serve its job types cannot be found out: %w", err)
	}
	return nil
}

// claimTypes makes the fleet the owner of what it serves and of nothing else.
// Host and fleet are locked.
func (h *Host) claimTypes(f *fleet) {
	h.disown(f)
	if f.quitting.Err() != nil {
		return
	}
	for _, name := range f.serves() {
		if h.owners[name] == nil || slices.Contains(f.config.Types, name) {
			h.owners[name] = f
		}
	}
}

// disown frees the fleet's types. The host is locked.
func (h *Host) disown(f *fleet) {
	for name, owner := range h.owners {
		if owner == f {
			delete(h.owners, name)
		}
	}
}
