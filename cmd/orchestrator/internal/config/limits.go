package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobLimits are those of job types, tenants, classes of concurrency keys, and fairness keys,
// by name. The name job.EveryName is for all that have no entry.
type JobLimits struct {
	Types    map[string]TypeLimit    `koanf:"types"`
	Tenants  map[string]TenantLimit  `koanf:"tenants"`
	Keys     map[string]KeyLimit     `koanf:"keys"`
	Fairness map[string]FairnessRule `koanf:"fairness"`
}

// TypeLimit is the limit of a job type.
type TypeLimit struct {
	Concurrency *int  `koanf:"concurrency"`
	Rate        *Rate `koanf:"rate"`
	Burst       *int  `koanf:"burst"`
	Fair        *bool `koanf:"fair"`
}

// TenantLimit is the limit of a tenant.
type TenantLimit struct {
	Concurrency *int  `koanf:"concurrency"`
	Rate        *Rate `koanf:"rate"`
	Burst       *int  `koanf:"burst"`
	Weight      *int  `koanf:"weight"`
}

// KeyLimit is the limit of each key of a class.
type KeyLimit struct {
	Concurrency *int            `koanf:"concurrency"`
	Rate        *Rate           `koanf:"rate"`
	Burst       *int            `koanf:"burst"`
	OnConflict  *job.OnConflict `koanf:"on_conflict"`
}

// FairnessRule is the share of a fairness key.
type FairnessRule struct {
	Weight *int `koanf:"weight"`
}

// Rate is a rate as job.ParseRate reads it.
type Rate string

// List returns the limits, or an error that names the key of one that cannot be.
func (l JobLimits) List() ([]job.Limit, error) {
	var limits []job.Limit
	var wrong []string
	add := func(section, name string, scope job.LimitScope, spec job.LimitSpec) {
		limit, faults := spec.Limit(scope, name)
		for _, fault := range faults {
			at := key{"limits", section, name}
			if member := strings.ReplaceAll(fault.Member, "onConflict", "on_conflict"); member != "" && member != "name" {
				at = at.below(member)
			}
			wrong = append(wrong, fmt.Sprintf("%s: %s", at, fault.Reason))
		}
		limit.Configured = true
		limits = append(limits, limit)
	}
	for name, t := range l.Types {
		add("types", name, job.LimitType, job.LimitSpec{Concurrency: t.Concurrency, Rate: (*string)(t.Rate), Burst: t.Burst, Fair: t.Fair})
	}
	for name, t := range l.Tenants {
		add("tenants", name, job.LimitTenant, job.LimitSpec{Concurrency: t.Concurrency, Rate: (*string)(t.Rate), Burst: t.Burst, Weight: t.Weight})
	}
	for name, k := range l.Keys {
		add("keys", name, job.LimitKey, job.LimitSpec{Concurrency: k.Concurrency, Rate: (*string)(k.Rate), Burst: k.Burst, OnConflict: k.OnConflict})
	}
	for name, f := range l.Fairness {
		add("fairness", name, job.LimitFairness, job.LimitSpec{Weight: f.Weight})
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s", slices.Min(wrong))
	}
	slices.SortFunc(limits, func(a, b job.Limit) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
	return limits, nil
}
