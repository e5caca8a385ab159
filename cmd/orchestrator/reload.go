package main

import (
	"errors"
	"fmt"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"log/slog"
	"strings"
)

// reloads are how the configuration is read again while the program serves.
type reloads struct {
	program *program
	parts   *assembly
	log     *slog.Logger
	// start is the configuration that the program started with, present the one
	// whose handlers are in effect.
	start, present config.Config
}

// reload reads the configuration again and puts its handlers into effect. All
// else stays as it was at the start.
func (r *reloads) reload() {
	cfg, err := r.program.load()
	if err == nil {
		err = mayFollow(r.present, cfg)
	}
	if err == nil {
		err = r.parts.reload(cfg)
	}
	if err != nil {
		r.log.Error("configuration not read again; the plugins stay as they are", "error", err)
		return
	}
	r.present = cfg
	r.log.Info("configuration read again", "file", cfg.Source)
	if changed := config.Changed(r.start, cfg); len(changed) > 0 {
		r.log.Warn("settings have changed that take effect after a restart only", "keys", strings.Join(changed, ", "))
	}
}

// mayFollow refuses a configuration that lacks what the present one has, as it
// does for a moment while its file is being replaced: every handler would go.
func mayFollow(present, next config.Config) error {
	switch {
	case present.Source != "" && next.Source == "":
		return fmt.Errorf("the configuration file %s is not there any more; put it back, or stop the program", present.Source)
	case present.Source != "" && next.Source != present.Source:
		return fmt.Errorf("the configuration would be that of %s, and was that of %s; restart the program for that", next.Source, present.Source)
	case present.HasPlugins && !next.HasPlugins:
		return errors.New("the configuration file no longer has a plugins section; write `plugins: []` to remove them all")
	}
	return nil
}
