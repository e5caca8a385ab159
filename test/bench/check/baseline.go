package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// howToWrite is what to do about a baseline that is of no use.
const howToWrite = "make bench-baseline writes it anew"

func readBaseline(path string) (m measurement, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Errorf("no baseline: %w; %s", err, howToWrite)
	}
	if err = json.Unmarshal(text, &m); err == nil {
		err = m.check()
	}
	if err != nil {
		return m, fmt.Errorf("%s is not a baseline: %w; %s", path, err, howToWrite)
	}
	return m, nil
}

// check returns an error for what nothing can be compared with.
func (m measurement) check() error {
	if len(m.Figures) == 0 {
		return errors.New("it has no figures")
	}
	for _, f := range m.Figures {
		if f.Median <= 0 {
			return fmt.Errorf("%s, %s, %s is %v", f.Scenario, f.Case, f.Figure, f.Median)
		}
	}
	return nil
}

func (m measurement) writeTo(path string) error {
	if err := m.check(); err != nil {
		return fmt.Errorf("what was measured is no baseline: %w", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
