package job

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of limits.
const (
	MaxLimit      = 1_000_000
	MaxWeight     = 1000
	maxNameChars  = 200 // as in a submission
	longestPeriod = 30 * 24 * time.Hour
)

// LimitSpec is what somebody writes to set a limit. Nil is for what is not written.
type LimitSpec struct {
	Concurrency *int
	Rate        *string
	Burst       *int
	OnConflict  *OnConflict
	Weight      *int
	Fair        *bool
}

// Fault is what is wrong with one member of a LimitSpec or one part of a rule's name.
type Fault struct {
	// Member is "scope", "name", or as in the JSON of the API: "concurrency", "rate",
	// "burst", "onConflict", "weight", "fair"; empty for the whole.
	Member string
	Reason string
}

// Limit checks what somebody has written for a name in a scope, and fills in the default
// of the burst.
func (s LimitSpec) Limit(scope LimitScope, name string) (Limit, []Fault) {
	limit := Limit{Scope: scope, Name: name, Concurrency: s.Concurrency}
	var faults []Fault
	wrong := func(member, format string, args ...any) {
		faults = append(faults, Fault{member, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains(LimitScopes(), scope) {
		wrong("scope", "must be one of type, tenant, key, fairness")
		return limit, faults
	}
	if reason := wrongName(name); reason != "" {
		wrong("name", "%s", reason)
	} else if scope == LimitKey && strings.Contains(name, ":") {
		wrong("name", "must be a class of keys: what stands before the first colon, such as %s", strings.SplitN(name, ":", 2)[0])
	}
	if s == (LimitSpec{}) {
		wrong("", "must have at least one of %s", membersOf(scope))
	}
	bounds := scope != LimitFairness
	if s.Concurrency != nil {
		switch {
		case !bounds:
			wrong("concurrency", "a fairness key has a weight only; set concurrency for a type, a tenant or a class of keys")
		case *s.Concurrency < 0 || *s.Concurrency > MaxLimit:
			wrong("concurrency", "must be a whole number from 0, for nothing starts, to %d", MaxLimit)
		}
	}
	if s.Rate != nil {
		rate, err := ParseRate(*s.Rate)
		switch {
		case !bounds:
			wrong("rate", "a fairness key has a weight only; set a rate for a type, a tenant or a class of keys")
		case err != nil:
			wrong("rate", "%v", err)
		default:
			limit.Rate = &rate
		}
	}
	if s.Burst != nil {
		switch {
		case s.Rate == nil:
			wrong("burst", "needs a rate, such as 100/1m")
		case *s.Burst < 1 || *s.Burst > MaxLimit:
			wrong("burst", "must be a whole number from 1 to %d", MaxLimit)
		case limit.Rate != nil:
			limit.Rate.Burst = *s.Burst
		}
	}
	if s.OnConflict != nil {
		limit.OnConflict = *s.OnConflict
		switch {
		case !bounds:
			wrong("onConflict", "a fairness key has a weight only; set onConflict for a class of keys")
		case scope != LimitKey:
			wrong("onConflict", "only a class of keys has one: for the limit of a %s, jobs wait", scope)
		case !slices.Contains(OnConflicts(), *s.OnConflict):
			wrong("onConflict", "must be one of queue, cancel_newcomer, cancel_oldest")
		}
	}
	if s.Weight != nil {
		limit.Weight = *s.Weight
		switch {
		case scope != LimitTenant && scope != LimitFairness:
			wrong("weight", "only a tenant or a fairness key has a weight; use fair: true for a type whose tenants take turns")
		case *s.Weight < 1 || *s.Weight > MaxWeight:
			wrong("weight", "must be a whole number from 1 to %d", MaxWeight)
		}
	}
	if s.Fair != nil {
		limit.Fair = *s.Fair
		if scope != LimitType {
			wrong("fair", "only a type is fair or not: its tenants take turns")
		}
	}
	return limit, faults
}

func membersOf(scope LimitScope) string {
	switch scope {
	case LimitType:
		return "concurrency, rate, fair"
	case LimitTenant:
		return "concurrency, rate, weight"
	case LimitKey:
		return "concurrency, rate, onConflict"
	default:
		return "weight"
	}
}

// wrongName says why nothing can have the name; empty if something can.
func wrongName(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case utf8.RuneCountInString(name) > maxNameChars:
		return fmt.Sprintf("must not be longer than %d characters", maxNameChars)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "must be UTF-8 without control characters"
	}
	return ""
}

// CheckPause returns what is wrong with what a pause is of.
func CheckPause(scope PauseScope, name string) []Fault {
	switch {
	case !slices.Contains(PauseScopes(), scope):
		return []Fault{{"scope", "must be one of type, plugin, tenant, all"}}
	case scope == PauseAll && name != "":
		return []Fault{{"name", "must be left out: this pauses everything"}}
	case scope != PauseAll && name == EveryName:
		return []Fault{{"name", "must be one name: to pause everything, use the scope all"}}
	case scope != PauseAll:
		if reason := wrongName(name); reason != "" {
			return []Fault{{"name", reason}}
		}
	}
	return nil
}

// LimitScopes lists all scopes of limits.
func LimitScopes() []LimitScope {
	return []LimitScope{LimitType, LimitTenant, LimitKey, LimitFairness}
}

// PauseScopes lists all scopes of pauses that operators set.
func PauseScopes() []PauseScope {
	return []PauseScope{PauseType, PausePlugin, PauseTenant, PauseAll}
}

// OnConflicts lists what can happen when a concurrency key is full.
func OnConflicts() []OnConflict {
	return []OnConflict{ConflictQueue, ConflictCancelNewcomer, ConflictCancelOldest}
}

// ParseRate reads a count and a period, such as 100/1m. The burst is as many starts as the
// rate has in a second, and from 1 to the count.
func ParseRate(text string) (Rate, error) {
	before, after, found := strings.Cut(text, "/")
	count, countErr := strconv.Atoi(strings.TrimSpace(before))
	period, periodErr := time.ParseDuration(strings.TrimSpace(after))
	switch {
	case !found && countErr == nil:
		return Rate{}, fmt.Errorf("has no period: write how many may start in which time, such as %d/1m", count)
	case !found || countErr != nil:
		return Rate{}, fmt.Errorf("must be how many may start in which time, such as 100/1m")
	case count < 1 || count > MaxLimit:
		return Rate{}, fmt.Errorf("must begin with a whole number from 1 to %d; concurrency 0 keeps everything from starting", MaxLimit)
	case periodErr != nil:
		return Rate{}, fmt.Errorf("must end with a period that has a unit, such as %d/1m, %d/1s or %d/24h", count, count, count)
	case period < time.Millisecond || period > longestPeriod:
		return Rate{}, fmt.Errorf("must have a period from 1ms to 720h")
	}
	return Rate{Count: count, Period: period, Burst: defaultBurst(count, period)}, nil
}

func defaultBurst(count int, period time.Duration) int {
	perSecond := math.Round(float64(count) / period.Seconds())
	return int(min(max(perSecond, 1), float64(count)))
}

// String is the rate as ParseRate reads it, without the burst.
func (r Rate) String() string {
	return strconv.Itoa(r.Count) + "/" + ShortDuration(r.Period)
}

// ShortDuration is the duration as time.ParseDuration reads it, without the zeros that its String ends in:
// 1m and 720h, not 1m0s and 720h0m0s.
func ShortDuration(d time.Duration) string {
	text := d.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}
