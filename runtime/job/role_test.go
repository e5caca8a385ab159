package job

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRolesAreParsedInTheirOrder(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  Roles
	}{
		{[]string{"api"}, Roles{RoleAPI}},
		{[]string{"maintenance", "api"}, Roles{RoleAPI, RoleMaintenance}},
		{[]string{" worker ", "maintenance", "api"}, AllRoles()},
	} {
		got, err := ParseRoles(c.names)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.names)
	}
}

func TestRolesThatAreNoneAreRefused(t *testing.T) {
	for want, names := range map[string][]string{
		"is empty; name one or more of api, worker, maintenance": {},
		`"scheduler" is not one of api, worker, maintenance`:     {"api", "scheduler"},
		`"" is not one of api, worker, maintenance`:              {""},
		`"API" is not one of api, worker, maintenance`:           {"API"},
		"worker is duplicated; name each role once":              {"worker", "api", "worker"},
		`"worker,api" is not one of api, worker, maintenance`:    {"worker,api"},
	} {
		_, err := ParseRoles(names)
		require.EqualError(t, err, want)
	}
}
