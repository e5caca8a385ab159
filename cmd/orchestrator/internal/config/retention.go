package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// Keep is for ever.
	Keep Kept = "keep"
	// LeastKept is the shortest time that a job is kept.
	LeastKept = time.Minute
	// MostKept keeps times within what the database can subtract from now.
	MostKept = 100 * 365 * 24 * time.Hour
)

// Kept is how long something is kept: a Go duration, or keep.
type Kept string

// Retention is how long ended jobs are kept, by their state, and their idempotency keys; and
// the audit log.
type Retention struct {
	Succeeded Kept                     `koanf:"succeeded"`
	Canceled  Kept                     `koanf:"canceled"`
	Dead      Kept                     `koanf:"dead"`
	Keys      Kept                     `koanf:"keys"`
	Audit     Kept                     `koanf:"audit"`
	Types     map[string]TypeRetention `koanf:"types"`
}

// TypeRetention overrides parts for one job type.
type TypeRetention struct {
	Succeeded *Kept `koanf:"succeeded"`
	Canceled  *Kept `koanf:"canceled"`
	Dead      *Kept `koanf:"dead"`
	Keys      *Kept `koanf:"keys"`
}

// Policies returns the retention of each job type, or an error that names the key of a time
// that cannot be.
func (r Retention) Policies() (job.RetentionPolicies, error) {
	policies := job.RetentionPolicies{Types: make(map[string]job.Retention, len(r.Types))}
	whole := TypeRetention{&r.Succeeded, &r.Canceled, &r.Dead, &r.Keys}
	var err error
	if policies.Default, err = whole.over(job.Retention{}, key{"retention"}); err != nil {
		return job.RetentionPolicies{}, err
	}
	if policies.Audit, err = r.Audit.time(key{"retention", "audit"}); err != nil {
		return job.RetentionPolicies{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Types)) {
		at := key{"retention", "types", name}
		if name == "" {
			return job.RetentionPolicies{}, fmt.Errorf("%s: the name of a job type is missing", at)
		}
		if policies.Types[name], err = r.Types[name].over(policies.Default, at); err != nil {
			return job.RetentionPolicies{}, err
		}
	}
	return policies, nil
}

// over returns the retention, with the times that are set in place of its own.
func (t TypeRetention) over(retention job.Retention, at key) (job.Retention, error) {
	for _, one := range []struct {
		name string
		set  *Kept
		keep **time.Duration
	}{
		{"succeeded", t.Succeeded, &retention.Succeeded},
		{"canceled", t.Canceled, &retention.Canceled},
		{"dead", t.Dead, &retention.Dead},
		{"keys", t.Keys, &retention.Keys},
	} {
		if one.set == nil {
			continue
		}
		var err error
		if *one.keep, err = one.set.time(at.below(one.name)); err != nil {
			return retention, err
		}
	}
	return retention, nil
}

// time is nil for ever.
func (k Kept) time(at key) (*time.Duration, error) {
	if k == Keep {
		return nil, nil
	}
	kept, err := time.ParseDuration(string(k))
	if err != nil || kept < LeastKept || kept > MostKept {
		return nil, fmt.Errorf("%s: %q is neither keep nor a duration from 1m to 876000h, such as 168h", at, k)
	}
	return &kept, nil
}
