package deploy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batch "k8s.io/api/batch/v1"
)

// environmentOf are the variables that the migration gets as texts.
func environmentOf(t *testing.T, values string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, variable := range pods(t, objects(t, changed(t, values)))["holdfast-migrate"].Spec.Containers[0].Env {
		require.NotContains(t, found, variable.Name, "twice")
		found[variable.Name] = variable.Value
	}
	return found
}

// A database that is a cell refuses a migration that does not know it.
func TestTheMigrationKnowsTheCell(t *testing.T) {
	const name = "HOLDFAST_DATABASE__CELL"
	for _, cell := range []int{0, 3, 255} {
		require.Equal(t, fmt.Sprint(cell), environmentOf(t, fmt.Sprintf("config: {database: {cell: %d}}", cell))[name])
	}
	for _, values := range []string{"{}", "config: {database: {max_connections: 9}}", "config: {database: {cell: null}}"} {
		require.NotContains(t, environmentOf(t, values), name, values)
	}
	require.Equal(t, "0", environmentOf(t, "env: [{name: "+name+", value: '0'}]")[name], "env reaches it too")
	for _, cell := range []string{"-1", "256", "1.5", "'3'"} {
		_, err := rendering(t, changed(t, "config: {database: {cell: "+cell+"}}"), newestKubernetes)
		require.ErrorContains(t, err, "/config/database/cell", cell)
	}
}

// Otherwise Helm says only that it has waited long enough.
func TestTheMigrationFailsBeforeHelmGivesUp(t *testing.T) {
	const helmTimeout = 5 * time.Minute
	job := named[batch.Job](t, objects(t, changed(t, "{}")), "Job", "holdfast-migrate")
	require.NotNil(t, job.Spec.ActiveDeadlineSeconds)
	require.Less(t, time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second, helmTimeout)

	long := named[batch.Job](t, objects(t, changed(t, "migrations: {wait: 1h29m59s, deadlineSeconds: 5400}")), "Job", "holdfast-migrate")
	require.EqualValues(t, 5400, *long.Spec.ActiveDeadlineSeconds)
	for _, wait := range []string{"5m", "1h", "4m45s", "284s1ms"} {
		_, err := rendering(t, changed(t, "migrations: {wait: "+wait+"}"), newestKubernetes)
		require.ErrorContains(t, err, "migrations.wait, "+wait+", is not below migrations.deadlineSeconds, 285")
	}
}
