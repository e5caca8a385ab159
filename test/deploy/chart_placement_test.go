package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

func TestEveryPodMayBePlaced(t *testing.T) {
	const place = `{nodeSelector: {disk: fast}, tolerations: [{key: jobs, operator: Exists}], priorityClassName: high,
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}`
	placed := pods(t, objects(t, changed(t, "{api: "+place+", migrations: "+place+", workerDefaults: "+place+"}")))
	plain := pods(t, objects(t, changed(t, "{}")))
	require.Len(t, placed, 3)
	for name, pod := range placed {
		require.Equal(t, map[string]string{"disk": "fast"}, pod.Spec.NodeSelector, name)
		require.Equal(t, []core.Toleration{{Key: "jobs", Operator: core.TolerationOpExists}}, pod.Spec.Tolerations, name)
		require.Equal(t, "high", pod.Spec.PriorityClassName, name)
		require.NotNil(t, pod.Spec.Affinity, name)
		require.Len(t, pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, 1, name)
		require.Empty(t, plain[name].Spec.NodeSelector, name)
		require.Empty(t, plain[name].Spec.Tolerations, name)
		require.Empty(t, plain[name].Spec.PriorityClassName, name)
		require.Nil(t, plain[name].Spec.Affinity, name)
	}
}

func TestEveryPodHasTheAnnotations(t *testing.T) {
	for name, pod := range pods(t, objects(t, changed(t, "podAnnotations: {example.com/mesh: 'off'}"))) {
		require.Equal(t, "off", pod.Annotations["example.com/mesh"], name)
	}
}

// OpenShift's restricted context refuses a user that it did not choose.
func TestTheClusterMayChooseTheUser(t *testing.T) {
	for name, pod := range pods(t, objects(t, changed(t, "podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}"))) {
		require.NotNil(t, pod.Spec.SecurityContext, name)
		require.Nil(t, pod.Spec.SecurityContext.RunAsUser, name)
		require.Nil(t, pod.Spec.SecurityContext.RunAsGroup, name)
		require.Nil(t, pod.Spec.SecurityContext.FSGroup, name)
		require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot, name)
		require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type, name)
	}
	for name, pod := range pods(t, objects(t, changed(t, "podSecurityContext: {runAsUser: 1000}"))) {
		require.EqualValues(t, 1000, *pod.Spec.SecurityContext.RunAsUser, name)
		require.EqualValues(t, 65532, *pod.Spec.SecurityContext.FSGroup, name)
	}
	for name, pod := range pods(t, objects(t, changed(t, "podSecurityContext: null"))) {
		require.Nil(t, pod.Spec.SecurityContext, name)
	}
}

// A handler that ignores the cancel is killed after worker.kill_grace, and its result is
// written then.
func TestPodsOutliveTheirHandlers(t *testing.T) {
	require.Contains(t, read(t, "config.yaml"), "kill_grace: 5s\n", "the chart's default too")
	for values, want := range map[string]struct{ api, worker int64 }{
		"{}":                                       {50, 45},
		"config: {worker: {kill_grace: 1m30s}}":    {135, 130},
		"config: {worker: {kill_grace: 1500ms}}":   {47, 42},
		"config: {worker: {poll_interval: 500ms}}": {50, 45},
		"{config: {worker: {kill_grace: 1h}}, api: {drainSeconds: 0}, workerDefaults: {drainSeconds: 600}}": {3615, 4210},
	} {
		all := pods(t, objects(t, changed(t, values)))
		require.Equal(t, want.api, *all["holdfast-api"].Spec.TerminationGracePeriodSeconds, values)
		require.Equal(t, want.worker, *all["holdfast-worker-builtin"].Spec.TerminationGracePeriodSeconds, values)
	}
}

// drainSeconds would override it.
func TestTheDrainIsSaidOnce(t *testing.T) {
	_, err := rendering(t, changed(t, "config: {worker: {drain_timeout: 5m}}"), newestKubernetes)
	require.ErrorContains(t, err, "config.worker.drain_timeout is for the chart to set: set api.drainSeconds")
}
