package host

import (
	"fmt"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Warden is the whole life of a process that Settings.Warden runs, with that
// command's last argument: of the host's warden, which waits until the host is gone
// and kills what its handlers have left behind, or of the keeper of one handler
// process. It returns the exit code.
func Warden(argument string) int { return child.Attend(argument) }

// secure prepares what outlives this process: cgroups, and the warden that sweeps
// them. Without either the host works on.
func (h *Host) secure(settings Settings) error {
	tree, err := cgroup.Open(settings.Cgroup, h.home.Name())
	switch {
	case err == nil:
		h.cgroups = tree
		if err := h.home.Note(tree); err != nil {
			return fmt.Errorf("plugin host: %w", err)
		}
		settings.Log.Info("handlers get cgroups of their own", "cgroup", tree.Path,
			"memory", tree.Memory, "cpu", tree.CPU, "pids", tree.PIDs)
	case settings.Cgroup != CgroupAuto && settings.Cgroup != CgroupNone:
		// Who asks for one by name counts on it.
		return fmt.Errorf("plugin host: cgroup: %w", err)
	default:
		settings.Log.Info("handlers get no cgroups", "reason", err)
	}
	if len(settings.Warden) == 0 {
		return nil
	}
	if h.warden, err = child.StartWarden(settings.Warden, h.home, settings.Log); err != nil {
		return fmt.Errorf("plugin host: warden: %w", err)
	}
	return nil
}

// loosen takes back what secure has made. The home goes after the cgroups, of which
// only it knows: with one that cannot be removed it stays, for the warden, which goes
// last, or the next start.
func (h *Host) loosen() {
	if h.cgroups != nil {
		if err := h.cgroups.Remove(); err != nil {
			h.closeErr = fmt.Errorf("plugin host: remove cgroup: %w", err)
			h.home.GiveUp()
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

func (g *generation) spec() (child.Spec, error) {
	c, h := g.config, g.fleet.host
	// Looked up at each launch: users come and go while the host runs.
	identity, err := child.LookUp(c.User, c.Group)
	if err != nil {
		return child.Spec{}, err
	}
	if identity != nil {
		if err := h.home.Open(); err != nil {
			return child.Spec{}, fmt.Errorf("socket directory: %w", err)
		}
	}
	return child.Spec{
		Name: c.Name, Binary: g.binary, Args: c.Args, Env: c.Env,
		Limits: child.Limits(c.Limits), Checksum: c.Checksum,
		Identity: identity, Keeper: h.settings.Warden, Cgroups: h.cgroups,
	}, nil
}

// enforced says how the generation's limits are.
func (g *generation) enforced() []job.Enforcement {
	identity, _ := child.LookUp(g.config.User, g.config.Group)
	var all []job.Enforcement
	for _, one := range child.Enforced(child.Limits(g.config.Limits), g.fleet.host.cgroups, identity) {
		all = append(all, job.Enforcement(one))
	}
	return all
}

// inWords writes how limits are enforced on a line for the log.
func inWords(limits []job.Enforcement) string {
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
