package main

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
)

// reloads are how the configuration is read again while the program serves.
type reloads struct {
	program *program
	parts   *assembly
	log     *slog.Logger
	// start is the configuration that the program started with, present the one
	// whose handlers are in effect.
	start, present config
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
	r.log.Info("configuration read again", "file", cfg.source)
	if changed := changedKeys(r.start, cfg); len(changed) > 0 {
		r.log.Warn("settings have changed that take effect after a restart only", "keys", strings.Join(changed, ", "))
	}
}

// mayFollow refuses a configuration that lacks what the present one has, as it
// does for a moment while its file is being replaced: every handler would go.
func mayFollow(present, next config) error {
	switch {
	case present.source != "" && next.source == "":
		return fmt.Errorf("the configuration file %s is not there any more; put it back, or stop the program", present.source)
	case present.source != "" && next.source != present.source:
		return fmt.Errorf("the configuration would be that of %s, and was that of %s; restart the program for that", next.source, present.source)
	case present.listsPlugins && !next.listsPlugins:
		return errors.New("the configuration file no longer has a plugins section; write `plugins: []` to remove them all")
	}
	return nil
}

// changedKeys are the keys that differ, apart from those of handlers.
func changedKeys(was, is config) []string {
	was.Plugins, is.Plugins = nil, nil
	return changedFields(reflect.ValueOf(was), reflect.ValueOf(is), "")
}

func changedFields(was, is reflect.Value, prefix string) []string {
	var changed []string
	for i := range was.NumField() {
		field := was.Type().Field(i)
		name, before, after := field.Tag.Get("koanf"), was.Field(i), is.Field(i)
		switch {
		case name == "":
		case field.Type.Kind() == reflect.Struct && hasKeys(field.Type):
			changed = append(changed, changedFields(before, after, prefix+name+".")...)
		case !reflect.DeepEqual(before.Interface(), after.Interface()):
			changed = append(changed, prefix+name)
		}
	}
	return changed
}

// hasKeys tells a section from a value of several fields.
func hasKeys(section reflect.Type) bool {
	return section.NumField() > 0 && section.Field(0).Tag.Get("koanf") != ""
}
