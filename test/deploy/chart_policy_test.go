package deploy

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
)

// pods are the pods that deployments and jobs make, by the name of those.
func pods(t *testing.T, all []object) map[string]core.PodTemplateSpec {
	t.Helper()
	found := map[string]core.PodTemplateSpec{}
	for _, o := range all {
		switch o.Kind {
		case "Deployment":
			found[o.Metadata.Name] = named[apps.Deployment](t, all, o.Kind, o.Metadata.Name).Spec.Template
		case "Job":
			found[o.Metadata.Name] = named[batch.Job](t, all, o.Kind, o.Metadata.Name).Spec.Template
		case "StatefulSet", "DaemonSet", "CronJob", "Pod", "ReplicaSet":
			t.Fatalf("%s %s: the policies do not look at this kind", o.Kind, o.Metadata.Name)
		}
	}
	return found
}

// policies are what every pod must obey. The first six are those of Kubernetes' Pod
// Security Standard "restricted".
var policies = map[string]func(core.PodSpec, core.Container) error{
	"it is not root": func(pod core.PodSpec, _ core.Container) error {
		user := pod.SecurityContext.RunAsUser
		if nonRoot := pod.SecurityContext.RunAsNonRoot; nonRoot == nil || !*nonRoot || user == nil || *user == 0 {
			return errors.New("runAsNonRoot and a runAsUser that is not 0")
		}
		return nil
	},
	"it gains no privileges": func(_ core.PodSpec, c core.Container) error {
		if c.SecurityContext == nil || c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation ||
			c.SecurityContext.Privileged != nil {
			return errors.New("allowPrivilegeEscalation: false")
		}
		return nil
	},
	"it has no capabilities": func(_ core.PodSpec, c core.Container) error {
		if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil || len(c.SecurityContext.Capabilities.Add) > 0 ||
			!slices.Equal(c.SecurityContext.Capabilities.Drop, []core.Capability{"ALL"}) {
			return errors.New("capabilities: {drop: [ALL]}")
		}
		return nil
	},
	"its system calls are filtered": func(pod core.PodSpec, _ core.Container) error {
		if pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			return errors.New("seccompProfile: {type: RuntimeDefault}")
		}
		return nil
	},
	"it sees nothing of the node": func(pod core.PodSpec, c core.Container) error {
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			return errors.New("no namespace of the host")
		}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				return errors.New("no port of the host")
			}
		}
		return nil
	},
	"its volumes are harmless": func(pod core.PodSpec, _ core.Container) error {
		for _, volume := range pod.Volumes {
			if volume.ConfigMap == nil && volume.Secret == nil && volume.EmptyDir == nil && volume.Image == nil {
				return fmt.Errorf("volume %s is of another kind", volume.Name)
			}
			if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit == nil {
				return fmt.Errorf("volume %s has no sizeLimit", volume.Name)
			}
		}
		return nil
	},
	"its root file system is read-only": func(_ core.PodSpec, c core.Container) error {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			return errors.New("readOnlyRootFilesystem: true")
		}
		return nil
	},
	"it asks for what it needs, and its memory is limited": func(_ core.PodSpec, c core.Container) error {
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			return errors.New("requests of cpu and memory, and a limit of memory")
		}
		if c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) < 0 {
			return errors.New("a limit that is not below the request")
		}
		return nil
	},
	"it does not reach Kubernetes": func(pod core.PodSpec, _ core.Container) error {
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			return errors.New("automountServiceAccountToken: false")
		}
		return nil
	},
	// A Service called holdfast-… would set variables that the orchestrator refuses.
	"no Service sets its environment": func(pod core.PodSpec, _ core.Container) error {
		if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
			return errors.New("enableServiceLinks: false")
		}
		return nil
	},
	"its image has a version": func(_ core.PodSpec, c core.Container) error {
		if !regexp.MustCompile(`:v?\d`).MatchString(c.Image) {
			return fmt.Errorf("image %s", c.Image)
		}
		return nil
	},
	"no secret is in its environment": func(_ core.PodSpec, c core.Container) error {
		for _, variable := range c.Env {
			if regexp.MustCompile(`PASSWORD|TOKEN|SECRET|_URL$`).MatchString(variable.Name) &&
				(variable.Value != "" || variable.ValueFrom == nil || variable.ValueFrom.SecretKeyRef == nil) {
				return fmt.Errorf("%s by secretKeyRef", variable.Name)
			}
		}
		return nil
	},
}

func TestEveryPodObeysThePolicies(t *testing.T) {
	for _, file := range examples(t) {
		all := objects(t, valuesOf(t, file))
		require.Greater(t, len(pods(t, all)), 2)
		for name, pod := range pods(t, all) {
			for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				for policy, broken := range policies {
					require.NoError(t, broken(pod.Spec, container), "%s: %s, container %s: %s", filepath.Base(file), name, container.Name, policy)
				}
			}
		}
		for _, o := range all {
			require.NotContains(t, []string{"Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, o.Kind, "the chart needs none")
		}
	}
}

// A policy that nothing can break tests nothing.
func TestABarePodBreaksThePolicies(t *testing.T) {
	zero := int64(0)
	pod := core.PodSpec{
		HostNetwork: true, SecurityContext: &core.PodSecurityContext{RunAsUser: &zero},
		Volumes: []core.Volume{{Name: "node", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/"}}}},
	}
	container := core.Container{Image: "holdfast", Env: []core.EnvVar{{Name: "SHOP_TOKEN", Value: "in the clear"}}}
	for policy, broken := range policies {
		require.Error(t, broken(pod, container), policy)
	}
}

// containerOf is the orchestrator in a Deployment.
func containerOf(t *testing.T, all []object, name string) core.Container {
	t.Helper()
	containers := named[apps.Deployment](t, all, "Deployment", name).Spec.Template.Spec.Containers
	require.Len(t, containers, 1)
	return containers[0]
}

func TestEveryRoleIsSomewhere(t *testing.T) {
	for _, file := range examples(t) {
		roles := map[string]bool{}
		for name, pod := range pods(t, objects(t, valuesOf(t, file))) {
			if name == "holdfast-migrate" {
				require.Equal(t, []string{"migrate", "up", "--wait=4m"}, pod.Spec.Containers[0].Args)
				continue
			}
			require.Equal(t, "serve", pod.Spec.Containers[0].Args[0], name)
			list, ok := strings.CutPrefix(pod.Spec.Containers[0].Args[1], "--role=")
			require.True(t, ok, name)
			for role := range strings.SplitSeq(list, ",") {
				roles[role] = true
			}
		}
		require.Equal(t, map[string]bool{"api": true, "worker": true, "maintenance": true}, roles, file)
	}
}

func TestPodsMayDrainBeforeTheyAreKilled(t *testing.T) {
	for _, file := range examples(t) {
		for name, pod := range pods(t, objects(t, valuesOf(t, file))) {
			if name == "holdfast-migrate" {
				continue
			}
			set := regexp.MustCompile(`--set=worker\.drain_timeout=(\d+)s`).FindStringSubmatch(strings.Join(pod.Spec.Containers[0].Args, " "))
			require.NotNil(t, set, name)
			drain, err := strconv.ParseInt(set[1], 10, 64)
			require.NoError(t, err)
			if life := pod.Spec.Containers[0].Lifecycle; life != nil {
				drain += life.PreStop.Sleep.Seconds
			}
			require.GreaterOrEqual(t, *pod.Spec.TerminationGracePeriodSeconds, drain+15, "%s of %s", name, file)
		}
	}
	all := objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples/production.yaml")))
	require.EqualValues(t, 615, *named[apps.Deployment](t, all, "Deployment", "holdfast-worker-printing").Spec.Template.Spec.TerminationGracePeriodSeconds)
}

// A hook runs before the objects of the release are there.
func TestTheMigrationNeedsNothingOfTheRelease(t *testing.T) {
	all := objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples/cloudnativepg.yaml")))
	job := named[batch.Job](t, all, "Job", "holdfast-migrate")
	require.Equal(t, "pre-install,pre-upgrade", job.Annotations["helm.sh/hook"])
	for _, volume := range job.Spec.Template.Spec.Volumes {
		require.Nil(t, volume.ConfigMap, volume.Name)
	}
	require.Empty(t, job.Spec.Template.Spec.ServiceAccountName)
}

func TestHandlersComeFromAnImageOfTheirOwn(t *testing.T) {
	all := objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples/handlers.yaml")))
	copied := named[apps.Deployment](t, all, "Deployment", "holdfast-worker-printing").Spec.Template.Spec
	require.Equal(t, "registry.example.com/printing:v7", copied.InitContainers[0].Image)
	require.Equal(t, []string{"cp", "-R", "/app/bin/.", "/opt/handlers/"}, copied.InitContainers[0].Command)

	mounted := named[apps.Deployment](t, all, "Deployment", "holdfast-worker-images").Spec.Template.Spec
	require.Equal(t, "ghcr.io/holdfast-jobs/holdfast:v0.1.0-slim", mounted.InitContainers[0].Image, "it has a cp")
	at := slices.IndexFunc(mounted.Volumes, func(v core.Volume) bool { return v.Image != nil })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, "registry.example.com/images:v3", mounted.Volumes[at].Image.Reference)
	for _, mount := range mounted.Containers[0].VolumeMounts {
		require.NotEqual(t, mounted.Volumes[at].Name, mount.Name, "image volumes are noexec, so plugins cannot run from them")
	}

	require.Equal(t, "ghcr.io/holdfast-jobs/holdfast:v0.1.0-slim", containerOf(t, all, "holdfast-worker-reports").Image)
	require.Equal(t, "registry.example.com/holdfast-mail:v5", containerOf(t, all, "holdfast-worker-mail").Image)
}

// Migrations need no replica.
func TestTheReplicaIsASecretOfEveryPodButThatOfMigrations(t *testing.T) {
	all := objects(t, map[string]any{"database": map[string]any{"replicaUrlSecret": map[string]any{"name": "standbys", "key": "uri"}}})
	found := 0
	for name, pod := range pods(t, all) {
		at := slices.IndexFunc(pod.Spec.Containers[0].Env, func(v core.EnvVar) bool { return v.Name == "HOLDFAST_DATABASE__REPLICA_URL" })
		if strings.Contains(name, "migrate") {
			require.Equal(t, -1, at, name)
			continue
		}
		require.GreaterOrEqual(t, at, 0, name)
		from := pod.Spec.Containers[0].Env[at].ValueFrom.SecretKeyRef
		require.Equal(t, "standbys uri", from.Name+" "+from.Key)
		found++
	}
	require.Positive(t, found)
}

func TestConnectionsVerifyTheDatabaseByItsCertificate(t *testing.T) {
	all := objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples/cloudnativepg.yaml")))
	for name, pod := range pods(t, all) {
		environment := map[string]core.EnvVar{}
		for _, variable := range pod.Spec.Containers[0].Env {
			environment[variable.Name] = variable
		}
		require.Equal(t, "holdfast-db-app", environment["HOLDFAST_DATABASE__URL"].ValueFrom.SecretKeyRef.Name, name)
		require.Equal(t, "verify-full", environment["PGSSLMODE"].Value, name)
		directory, file := filepath.Split(environment["PGSSLROOTCERT"].Value)
		at := slices.IndexFunc(pod.Spec.Containers[0].VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath+"/" == directory })
		require.GreaterOrEqual(t, at, 0, name)
		volume := slices.IndexFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == pod.Spec.Containers[0].VolumeMounts[at].Name })
		require.Equal(t, file, pod.Spec.Volumes[volume].Secret.Items[0].Path, name)
	}
}
