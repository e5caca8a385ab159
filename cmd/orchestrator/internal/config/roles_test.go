package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProcessHasAllRolesUnlessItSaysOtherwise(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "roles.yaml")
	for _, c := range []struct {
		name, file string
		from       Sources
		want       []string
	}{
		{"by default", "", Sources{}, []string{"api", "worker", "maintenance"}},
		{"in a file", "roles: [worker]", Sources{}, []string{"worker"}},
		{"in a file, in another order", "roles: [maintenance, api]", Sources{}, []string{"api", "maintenance"}},
		{"in the environment", "roles: [worker]", Sources{Environ: []string{"HOLDFAST_ROLES=api,maintenance"}}, []string{"api", "maintenance"}},
		{"by a flag", "roles: [worker]", Sources{Environ: []string{"HOLDFAST_ROLES=api"}, Sets: []string{"roles=maintenance"}}, []string{"maintenance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file != "" {
				require.NoError(t, os.WriteFile(file, []byte(c.file), 0o600))
				c.from.File = file
			}
			cfg, err := Load(c.from)
			require.NoError(t, err)
			require.Equal(t, c.want, cfg.Roles)
		})
	}
}

func TestRolesThatMakeNoSenseAreRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "roles.yaml")
	for text, want := range map[string]string{
		"roles: []":                    "roles: is empty; name one or more of api, worker, maintenance",
		`roles: ""`:                    "roles: is empty; name one or more of api, worker, maintenance",
		"roles: [api, scheduler]":      `roles: "scheduler" is not one of api, worker, maintenance`,
		"roles: [API]":                 `roles: "API" is not one of api, worker, maintenance`,
		"roles: [worker, api, worker]": "roles: worker is duplicated; name each role once",
		"role: [api]":                  "role",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Load(Sources{File: file})
		require.ErrorContains(t, err, want, text)
	}
}
