package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	for title, c := range map[string]struct{ values, says string }{
		"nobody maintains":            {"api: {roles: [api]}", "no pods have the role maintenance"},
		"the API serves no API":       {"api: {roles: [maintenance]}", "api.roles lacks api"},
		"the API works without":       {"api: {roles: [api, worker, maintenance]}", "api.roles has worker"},
		"a worker without plugins":    {"workers: {a: {replicas: 2}}", "workers.a has the role worker and no plugins"},
		"a worker with none":          {"workers: {a: {plugins: []}}", "workers.a has the role worker and no plugins"},
		"one of several roles":        {"workers: {a: {roles: [maintenance, worker]}}", "workers.a has the role worker and no plugins"},
		"plugins for all the workers": {"workerDefaults: {plugins: [{path: /a}]}", "/workerDefaults"},
		"fewer API pods than least":   {"api: {autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}}", "api.autoscaling.minReplicas is 5, above maxReplicas, which is 2"},
		"fewer workers than least":    {"workers: {builtin: {autoscaling: {enabled: true, jobTypes: [A], minReplicas: 11}}}", "workers.builtin.autoscaling.minReplicas is 11, above maxReplicas, which is 10"},
	} {
		_, err := rendering(t, changed(t, c.values), newestKubernetes)
		require.ErrorContains(t, err, c.says, title)
	}
}

func TestADeploymentMayOnlyMaintain(t *testing.T) {
	all := objects(t, changed(t, "{api: {roles: [api]}, workers: {upkeep: {roles: [maintenance]}}}"))
	require.Contains(t, containerOf(t, all, "holdfast-worker-upkeep").Args, "--role=maintenance")
	require.Contains(t, containerOf(t, all, "holdfast-api").Args, "--role=api")
	files := named[core.ConfigMap](t, all, "ConfigMap", "holdfast-config").Data
	require.Contains(t, files["worker-upkeep.yaml"], "plugins: []")
	require.NotZero(t, *named[apps.Deployment](t, all, "Deployment", "holdfast-worker-upkeep").Spec.Replicas)
}
