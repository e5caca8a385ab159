package cells

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/loopback"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// shipped are the configurations that the tests use, but for addresses and a tenant.
const shipped = "../../deploy/cells"

// proxies are those that deploy/cells has configurations of.
var proxies = map[string]struct {
	// program is looked for in PATH, and where Debian puts it.
	program string
	// configure writes the configuration for the cells at the addresses, and returns the
	// arguments of the program.
	configure func(t *testing.T, dir, listen string, cells []string) []string
}{
	"nginx":   {"nginx", configureNginx},
	"HAProxy": {"haproxy", configureHAProxy},
}

// adapted returns a shipped file with the addresses of the test: of a cell with two
// orchestrators, both with a comma between them. Tenant acme has cell 1.
func adapted(t *testing.T, name, listen string, cells []string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shipped, name))
	require.NoError(t, err)
	changes := []string{"listen 8080;", "listen " + listen + ";", "bind :8080", "bind " + listen, "# acme", "acme"}
	for i, address := range cells {
		address, second, two := strings.Cut(address, ",")
		changes = append(changes, fmt.Sprintf("cell-%d.internal:8080", i), address)
		if two {
			changes = append(changes, fmt.Sprintf("# server cell-%d-b.internal:8080", i), "server "+second)
			changes = append(changes, fmt.Sprintf("# server two cell-%d-b.internal:8080", i), "server two "+second)
		}
	}
	return strings.NewReplacer(changes...).Replace(string(text))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func configureNginx(t *testing.T, dir, listen string, cells []string) []string {
	t.Helper()
	write(t, filepath.Join(dir, "cells.conf"), adapted(t, "nginx.conf", listen, cells))
	var main strings.Builder
	main.WriteString("user root;\n") // for workers of root's, which need the directory; others ignore it
	fmt.Fprintf(&main, "daemon off;\npid %s/pid;\nworker_processes 2;\nevents { worker_connections 4096; }\nhttp {\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&main, "%s_temp_path %s/%[1]s;\n", kind, dir)
	}
	fmt.Fprintf(&main, "include %s/cells.conf;\n}\n", dir)
	write(t, filepath.Join(dir, "nginx.conf"), main.String())
	return []string{"-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")}
}

func configureHAProxy(t *testing.T, dir, listen string, cells []string) []string {
	t.Helper()
	for _, name := range []string{"haproxy.cfg", "ids.map", "tenants.map"} {
		write(t, filepath.Join(dir, name), adapted(t, name, listen, cells))
	}
	return []string{"-db", "-f", filepath.Join(dir, "haproxy.cfg")}
}

// behind starts a proxy in front of the cells at the addresses, and returns its own. It ends
// with the test. The test is skipped if the proxy is not installed, unless
// HOLDFAST_TEST_CELLS is set.
func behind(t *testing.T, name string, cells []string) string {
	t.Helper()
	listen, _ := startProxy(t, name, cells)
	return listen
}

// startProxy is behind, and also returns the process.
func startProxy(t *testing.T, name string, cells []string) (listen string, pid int) {
	t.Helper()
	kind := proxies[name]
	program, err := exec.LookPath(kind.program)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + kind.program)
	}
	if err != nil {
		require.Empty(t, os.Getenv("HOLDFAST_TEST_CELLS"), "%s is not installed", name)
		t.Skipf("%s is not installed: scripts/need.sh %s", name, kind.program)
	}
	listen, err = loopback.FreeAddress(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	proxy := exec.Command(program, kind.configure(t, dir, listen, cells)...) //nolint:noctx // the cleanup of Beside ends it, workers too
	proxy.Dir = dir
	rigtest.Beside(t, proxy, syscall.SIGTERM)
	require.Eventually(t, func() bool {
		got, err := call(t.Context(), http.MethodGet, "http://"+listen+"/healthz", "")
		return err == nil && got.status == http.StatusOK
	}, rigtest.Patience, glance)
	return listen, proxy.Process.Pid
}
