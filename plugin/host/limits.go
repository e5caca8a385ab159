package host

import (
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
)

// Warden is what the command in Settings.Warden must call with its last argument. It
// runs as the warden of a host, which waits until the host is gone and then kills what
// its plugins have left behind, or as the keeper of one plugin process. It returns the
// exit code.
func Warden(argument string) int { return osprocess.Attend(argument) }

// setUp prepares cgroups for the plugins, and the warden. It is no error if there are
// no cgroups, unless Settings.Cgroup is a path.
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
	if len(settings.Warden) == 0 || runtime.GOOS != "linux" {
		return nil
	}
	if h.warden, err = osprocess.StartWarden(settings.Warden, h.home, settings.Log); err != nil {
		return fmt.Errorf("plugin host: warden: %w", err)
	}
	return nil
}

// cleanUp removes what setUp has made. If a cgroup cannot be removed, the home stays,
// because the warden or the next start reads there which cgroup to remove. So the
// cgroups go first, then the home, and the warden last.
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
	if h.warden != nil {
		h.warden.Close()
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
		Identity: identity, Keeper: h.settings.Warden, Cgroups: h.cgroups,
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
