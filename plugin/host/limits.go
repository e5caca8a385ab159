package host

import (
	"fmt"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
)

// setUp prepares cgroups for the plugins. It is no error if there are none, unless
// Settings.Cgroup is a path.
func (h *Host) setUp(settings Settings) error {
	tree, err := cgroup.Open(settings.Cgroup, h.home.Name())
	switch {
	case err == nil:
		h.cgroups = tree
		if err := h.home.SetCgroups(tree); err != nil {
			return fmt.Errorf("plugin host: %w", err)
		}
		settings.Log.Info("plugins get cgroups of their own", "cgroup", tree.Path,
			"memory", tree.Memory, "cpu", tree.CPU, "pids", tree.PIDs)
	case settings.Cgroup != CgroupAuto && settings.Cgroup != CgroupNone:
		return fmt.Errorf("plugin host: cgroup: %w", err)
	default:
		settings.Log.Info("plugins get no cgroups", "reason", err)
	}
	return nil
}

// cleanUp removes the cgroups and then the home. If a cgroup cannot be removed, the home
// stays, because the next start reads there which cgroup to remove.
func (h *Host) cleanUp() {
	if h.cgroups != nil {
		if err := h.cgroups.Remove(); err != nil {
			h.closeErr = fmt.Errorf("plugin host: remove cgroup: %w", err)
			h.home.Unlock()
		}
	}
	if h.closeErr == nil {
		if err := h.home.Remove(); err != nil {
			h.closeErr = fmt.Errorf("plugin host: remove socket directory: %w", err)
		}
	}
}

func (g *generation) childSpec() (osprocess.Spec, error) {
	c, h := g.config, g.fleet.host
	// Users may come and go while the host runs.
	identity, err := osprocess.LookUp(c.User, c.Group)
	if err != nil {
		return osprocess.Spec{}, err
	}
	if identity != nil {
		if err := h.home.Open(); err != nil {
			return osprocess.Spec{}, fmt.Errorf("socket directory: %w", err)
		}
	}
	return osprocess.Spec{
		Name: c.Name, Binary: g.binary, Args: c.Args, Env: c.Env, Limits: c.Limits, Checksum: c.Checksum,
		Identity: identity, Cgroups: h.cgroups, Keeper: h.settings.keeper,
	}, nil
}

// describe writes on one line how limits are enforced.
func describe(limits []v1.Enforcement) string {
	words := make([]string, 0, len(limits))
	for _, l := range limits {
		text := l.Limit + ": " + l.By
		if l.Gap != "" {
			text += " (" + l.Gap + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}
