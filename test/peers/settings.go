package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings are numbers that a driver takes, by the names that its system gives them.
// Times are in milliseconds.
type settings map[string]int

// The settings that all systems have.
const (
	// connectionsSetting is how many connections those who insert jobs share.
	connectionsSetting = "connections"
	// batchSetting is how many jobs a call inserts.
	batchSetting = "batch"
)

// with returns the settings with further ones, of which later ones win.
func (s settings) with(more ...settings) settings {
	all := settings{}
	for _, some := range append([]settings{s}, more...) {
		maps.Copy(all, some)
	}
	return all
}

func (s settings) String() string {
	var told []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		told = append(told, fmt.Sprintf("`%s` %s", name, grouped(s[name])))
	}
	return strings.Join(told, ", ")
}

// choices are the settings that a system does best with, by the name of the sweep that
// found them.
type choices map[string]settings

// of returns the settings for a task.
func (c choices) of(t task) settings {
	var all settings
	for _, name := range append(slices.Clone(t.takes), t.sweep) {
		all = all.with(c[name])
	}
	return all
}

// each returns settings that differ in one number.
func each(name string, values ...int) (all []settings) {
	for _, value := range values {
		all = append(all, settings{name: value})
	}
	return all
}
