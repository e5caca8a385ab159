package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// minKeep leaves clients time to come back.
	minKeep = time.Minute
	maxKeep = 30 * 24 * time.Hour
	// maxEvents is about 20 GB.
	maxEvents = 100_000_000
)

// On reports whether anything is recorded.
func (e Events) On() bool { return e.Log().On() }

// Log says which ends become events.
func (e Events) Log() job.EventLog { return job.EventLog{Keep: e.Keep, Most: e.Most, Types: e.Types} }

func (e Events) check() error {
	switch {
	case e.Keep != 0 && (e.Keep < minKeep || e.Keep > maxKeep):
		return fmt.Errorf("keep: %s is neither 0s, for no events, nor from %s to %s", e.Keep, minKeep, maxKeep)
	case e.Most < 1000 || e.Most > maxEvents:
		return fmt.Errorf("most: %d is not from 1000 to %d", e.Most, maxEvents)
	case e.MaxStreams < 1 || e.MaxStreams > 100_000:
		return fmt.Errorf("max_streams: %d is not from 1 to 100000", e.MaxStreams)
	case slices.Contains(e.Types, ""):
		return errors.New("types: has an empty name")
	case slices.Contains(e.Types, job.DeliveryType):
		return fmt.Errorf("types: %s is the type of deliveries, which have no events", job.DeliveryType)
	}
	return nil
}
