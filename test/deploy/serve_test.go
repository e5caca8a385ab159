package deploy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// startWithin allows for making the database on a busy machine.
	startWithin = 2 * time.Minute
	glance      = 50 * time.Millisecond
)

// deployed is the orchestrator as in the images, with their configuration and the
// environment that secrets.sh makes. Only its address, its database and the path of
// the plugin differ.
type deployed struct {
	url     string
	program string
	secrets string
}

func serve(t *testing.T) deployed {
	t.Helper()
	directory, secrets := t.TempDir(), makeSecrets(t)
	// As root, PostgreSQL runs as another user, who must be able to enter.
	for d := directory; strings.HasPrefix(filepath.Base(d), "0") || strings.HasPrefix(filepath.Base(d), "Test"); d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	bin := filepath.Join(directory, "bin")
	build := exec.Command("go", "build", "-C", root, "-ldflags", linked(t, "v1.2.3-test"), "-o", bin+"/", "./cmd/orchestrator", "./cmd/handlers")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))

	address := freeAddress(t)
	d := deployed{url: "http://" + address, program: filepath.Join(bin, "orchestrator"), secrets: secrets}
	config, err := filepath.Abs(filepath.Join(root, "deploy/config.yaml"))
	require.NoError(t, err)
	var log bytes.Buffer
	orchestrator := exec.Command(d.program, "serve", "--config", config, "--set", "server.address="+address, "--set", "database.url=",
		"--set", "embedded.data_dir="+filepath.Join(directory, "postgres"), "--set", "plugins.0.path="+filepath.Join(bin, "handlers"),
		// A public address requires this too.
		"--set", "security.credentials_file=/dev/null/none")
	orchestrator.Dir, orchestrator.Stdout, orchestrator.Stderr = directory, &log, &log
	environment, err := os.ReadFile(filepath.Join(secrets, "orchestrator.env"))
	require.NoError(t, err)
	orchestrator.Env = append(os.Environ(), strings.Fields(string(environment))...)
	for name, value := range composed(t).Services["orchestrator-1"].Environment {
		if strings.HasPrefix(name, "HOLDFAST_") {
			orchestrator.Env = append(orchestrator.Env, name+"="+*value)
		}
	}
	require.NoError(t, orchestrator.Start())
	ended := make(chan error, 1)
	go func() { ended <- orchestrator.Wait() }()
	t.Cleanup(func() {
		_ = orchestrator.Process.Signal(syscall.SIGTERM)
		require.NoError(t, <-ended, log.String())
	})
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			ended <- err
			return true
		default:
			return d.healthy(t) == nil
		}
	}, startWithin, glance)
	require.NoError(t, d.healthy(t), log.String())
	return d
}

// freeAddress is one on which a program can listen soon: connections go out from
// 127.0.0.1, so none of them takes a port of 127.0.0.3 before the program does.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.3:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// healthy runs the health check of the containers.
func (d deployed) healthy(t *testing.T) error {
	t.Helper()
	probe := exec.Command(d.program, "health")
	probe.Dir, probe.Env = t.TempDir(), append(os.Environ(), "HOLDFAST_SERVER="+d.url)
	return probe.Run()
}

// call returns the status and the body of an answer.
func (d deployed) call(t *testing.T, method, path, body string, sign func(*http.Request)) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, d.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	sign(request)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func TestTheImagesConfigurationServesWithTheSecretsThatAreMade(t *testing.T) {
	d := serve(t)
	secret := func(name string) string {
		content, err := os.ReadFile(filepath.Join(d.secrets, name))
		require.NoError(t, err)
		return strings.TrimSpace(string(content))
	}
	nobody := func(*http.Request) {}
	operator := func(r *http.Request) {
		user, password, _ := strings.Cut(secret("operator"), ":")
		r.SetBasicAuth(user, password)
	}
	prometheus := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+secret("prometheus_token"))
		r.Header.Set("Accept", "text/plain")
	}
	const job = `{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}`

	status, _ := d.call(t, http.MethodPost, "/jobs", job, nobody)
	require.Equal(t, http.StatusUnauthorized, status, "whoever reaches a published port shows credentials")
	status, answer := d.call(t, http.MethodPost, "/jobs", job, operator)
	require.Equal(t, http.StatusAccepted, status, "the handlers are up: %s", answer)
	status, page := d.call(t, http.MethodGet, "/metrics", "", prometheus)
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, `holdfast_plugin_up{plugin="builtin"} 1`)
	require.Contains(t, page, "v1.2.3-test", "the linker sets the version")
	status, _ = d.call(t, http.MethodPost, "/jobs", job, prometheus)
	require.Equal(t, http.StatusForbidden, status, "Prometheus submits nothing")
}
