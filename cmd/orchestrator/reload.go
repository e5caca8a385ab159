package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// reloads reads the configuration again while the program serves.
type reloads struct {
	program *program
	parts   *assembly
	log     *slog.Logger
	// start is the configuration at the start; present is the one whose plugins,
	// limits and retention are in effect.
	start, present config.Config
	// mu guards present, which requests read.
	mu sync.Mutex
}

// settings are those in effect: the sections that a reload applies are the latest.
func (r *reloads) settings() []v1.Setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	effective := r.start
	effective.Plugins, effective.Retention = r.present.Plugins, r.present.Retention
	effective.Limits, effective.Schedules = r.present.Limits, r.present.Schedules
	return effective.Effective()
}

// reload reads the configuration again and applies its plugins, limits, schedules and retention.
// Everything else stays as it was at the start.
func (r *reloads) reload() {
	cfg, err := r.program.load()
	if err == nil {
		err = mayFollow(r.present, cfg)
	}
	if err != nil {
		r.log.Error("the configuration was not reloaded; everything stays as it is", "error", err)
		return
	}
	if err := r.parts.reload(cfg); err != nil {
		r.log.Error("the configuration was not applied", "error", err)
		return
	}
	r.mu.Lock()
	r.present = cfg
	r.mu.Unlock()
	r.log.Info("configuration reloaded", "file", cfg.Source)
	if changed := config.Changed(r.start, cfg); len(changed) > 0 {
		r.log.Warn("changed settings take effect only after a restart", "keys", strings.Join(changed, ", "))
	}
}

// mayFollow rejects a configuration that lost its file or its plugins section. That
// happens for a moment while a file is replaced, and would remove every plugin.
func mayFollow(present, next config.Config) error {
	switch {
	case present.Source != "" && next.Source == "":
		return fmt.Errorf("the configuration file %s no longer exists; put it back, or stop the program", present.Source)
	case present.Source != "" && next.Source != present.Source:
		return fmt.Errorf("the configuration file would be %s, and was %s; restart the program to change it", next.Source, present.Source)
	case present.HasPlugins && !next.HasPlugins:
		return errors.New("the configuration file no longer has a plugins section; write `plugins: []` to remove them all")
	}
	return nil
}
