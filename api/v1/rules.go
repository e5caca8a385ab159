package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// LimitSpec sets a limit. What is left out is not limited.
type LimitSpec struct {
	Concurrency *int            `json:"concurrency,omitempty" minimum:"0" maximum:"1000000" doc:"How many may run at once; 0 for none. For types, tenants and classes of keys."`
	Rate        *string         `json:"rate,omitempty" example:"100/1m" doc:"How many may start in which time, such as 100/1m. The period is a Go duration from 1ms to 720h. For types, tenants and classes of keys."`
	Burst       *int            `json:"burst,omitempty" minimum:"1" maximum:"1000000" doc:"How many may start at once after a quiet time. By default, as many as the rate has in a second, from 1 to the rate's count."`
	OnConflict  *job.OnConflict `json:"onConflict,omitempty" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens to a job whose key is full. For classes of keys; queue by default. Without concurrency, it is for jobs with a concurrencyLimit of their own: a rate makes no key full."`
	Weight      *int            `json:"weight,omitempty" minimum:"1" maximum:"1000" doc:"The share where turns are taken. For tenants and fairness keys; 1 by default."`
	Fair        *bool           `json:"fair,omitempty" doc:"Whether tenants take turns. For types; false by default."`
}

// Limit is a limit as it is in force.
type Limit struct {
	Scope       job.LimitScope `json:"scope" enum:"type,tenant,key,fairness" doc:"What the limit is of: a job type, a tenant, each concurrency key of a class, or a fairness key."`
	Name        string         `json:"name" doc:"Of the type, the tenant, the class of keys or the fairness key. * for all that have no limit of their own."`
	Concurrency *int           `json:"concurrency,omitempty" doc:"How many may run at once."`
	Rate        string         `json:"rate,omitempty" doc:"How many may start in which time."`
	Burst       int            `json:"burst,omitempty" doc:"How many may start at once after a quiet time, if there is a rate."`
	OnConflict  job.OnConflict `json:"onConflict,omitempty" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens to a job whose key is full."`
	Weight      int            `json:"weight,omitempty" doc:"The share where turns are taken."`
	Fair        bool           `json:"fair,omitempty" doc:"Whether tenants take turns."`
	Used        *int           `json:"used,omitempty" doc:"How many jobs run or are about to. Only of one type or one tenant."`
	Configured  bool           `json:"configured" doc:"Whether a configuration sets the limit. Then the API does not change it."`
	UpdatedBy   string         `json:"updatedBy,omitempty" doc:"Who set the limit: the user who logged in, or a token by its name."`
	UpdatedAt   time.Time      `json:"updatedAt"`
}

// LimitList is the answer with all limits.
type LimitList struct {
	Limits []Limit `json:"limits" nullable:"false" doc:"By scope and name."`
}

// LimitOf is what operators see of a limit of which so many slots are used; nil if that is
// not known.
func LimitOf(l job.Limit, used *int) Limit {
	shown := Limit{
		Scope: l.Scope, Name: l.Name, Concurrency: l.Concurrency, OnConflict: l.OnConflict, Weight: l.Weight, Fair: l.Fair,
		Used: used, Configured: l.Configured, UpdatedBy: l.UpdatedBy, UpdatedAt: l.UpdatedAt,
	}
	if l.Rate != nil {
		shown.Rate, shown.Burst = l.Rate.String(), l.Rate.Burst
	}
	return shown
}

// PauseSpec begins a pause. At most one of For and Until is set; without both, the pause
// lasts until somebody ends it.
type PauseSpec struct {
	Reason string     `json:"reason,omitempty" maxLength:"500" doc:"Why, for people."`
	For    *string    `json:"for,omitempty" example:"1h30m" doc:"How long from now, as a Go duration up to 8760h."`
	Until  *time.Time `json:"until,omitempty" doc:"When the pause ends by itself."`
	Drain  bool       `json:"drain,omitempty" doc:"Whether running jobs are asked to stop and given back, without charging the attempt. By default they go on."`
}

// Pause is a pause in force.
type Pause struct {
	Scope    job.PauseScope `json:"scope" enum:"type,plugin,tenant,all" doc:"What is paused: a job type, a plugin, a tenant, or everything."`
	Name     string         `json:"name" doc:"Of the type, the plugin or the tenant; empty for everything."`
	Reason   string         `json:"reason,omitempty" doc:"Why, for people."`
	PausedBy string         `json:"pausedBy,omitempty" doc:"Who: the user who logged in, or a token by its name."`
	Since    time.Time      `json:"since"`
	Until    *time.Time     `json:"until,omitempty" doc:"When the pause ends by itself; absent if somebody has to end it."`
	Drain    bool           `json:"drain" doc:"Whether running jobs were asked to stop."`
}

// PauseList is the answer with all pauses.
type PauseList struct {
	Pauses []Pause `json:"pauses" nullable:"false" doc:"By scope and name."`
}

// PauseOf is what operators see of a pause.
func PauseOf(p job.Pause) Pause {
	shown := Pause{Scope: p.Scope, Name: p.Name, Reason: p.Reason, PausedBy: p.By, Since: p.Since, Drain: p.Drain}
	if !p.Until.IsZero() {
		shown.Until = &p.Until
	}
	return shown
}
