package job

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a part of the work that a process does for all that share its database. A process
// has one or more.
type Role string

const (
	// RoleAPI: serve the HTTP API and the web UI.
	RoleAPI Role = "api"
	// RoleWorker: run plugins, and jobs in them.
	RoleWorker Role = "worker"
	// RoleMaintenance: do what belongs to no process's own jobs, such as queueing jobs that
	// have become due and taking over those of processes that are gone. Any number of
	// processes may do it at once. While none does, nothing is lost, but much waits.
	RoleMaintenance Role = "maintenance"
)

// Roles are those of one process.
type Roles []Role

// AllRoles are the roles that there are, in the order in which they are shown.
func AllRoles() Roles { return Roles{RoleAPI, RoleWorker, RoleMaintenance} }

// ParseRoles returns the roles with these names, in the order of AllRoles. It refuses an empty
// list, unknown names and duplicates.
func ParseRoles(names []string) (Roles, error) {
	known := strings.Join(AllRoles().Names(), ", ")
	if len(names) == 0 {
		return nil, fmt.Errorf("is empty; name one or more of %s", known)
	}
	var given Roles
	for _, name := range names {
		role := Role(strings.TrimSpace(name))
		switch {
		case !AllRoles().Has(role):
			return nil, fmt.Errorf("%q is not one of %s", name, known)
		case given.Has(role):
			return nil, fmt.Errorf("%s is duplicated; name each role once", role)
		}
		given = append(given, role)
	}
	return slices.DeleteFunc(AllRoles(), func(role Role) bool { return !given.Has(role) }), nil
}

// Has reports whether the role is among them.
func (r Roles) Has(role Role) bool { return slices.Contains(r, role) }

// Names are their names, in the same order.
func (r Roles) Names() []string {
	names := make([]string, len(r))
	for i, role := range r {
		names[i] = string(role)
	}
	return names
}

// String joins the names by commas.
func (r Roles) String() string { return strings.Join(r.Names(), ",") }
