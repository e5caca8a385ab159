package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// The way through Docker is for machines without PostgreSQL, such as a laptop
// with Docker Desktop. The docker command takes the server's place as our
// child: it passes signals on, so that the container ends with us. The server
// listens on a loopback port and asks for a password kept in the home.

// dockerAnswers says whether there is an engine to run a container.
func dockerAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output()
	return err == nil && strings.TrimSpace(string(out)) != ""
}

// containerImage is the usual image, of the version that made the data.
func containerImage(h home) string {
	version := clusterVersion(h.container())
	if version == "" {
		version = "17"
	}
	return "postgres:" + version + "-alpine"
}

func startContainer(ctx context.Context, h home, cfg Config) (*Server, error) {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	password, err := h.password()
	if err != nil {
		return nil, err
	}
	name := "holdfast-" + shortHash(h.dir)
	if address, err := containerAddress(ctx, name); err == nil {
		running := containerURL(address, password)
		if awaitAnswer(ctx, running, nil) == nil {
			return newServer(running, nil), nil
		}
	}
	args := []string{
		"run", "--rm", "--name", name, "--publish", "127.0.0.1::5432", "--stop-signal", "SIGINT",
		"--volume", h.container() + ":/var/lib/postgresql/data",
		"--env", "POSTGRES_USER=" + userName, "--env", "POSTGRES_DB=" + databaseName,
		"--env", "POSTGRES_PASSWORD", // its value comes from the environment, unseen by ps
		containerImage(h), "postgres",
	}
	for _, setting := range arguments("/var/run/postgresql", cfg) {
		if !strings.HasPrefix(setting, "listen_addresses=") {
			args = append(args, setting)
			continue
		}
		args = append(args, "listen_addresses=*")
	}
	docker := exec.Command("docker", args...) //nolint:noctx // ended by signals; see process.end
	docker.Env = append(os.Environ(), "POSTGRES_PASSWORD="+password)
	docker.SysProcAttr = childAttributes(account{}, syscall.SIGINT)
	p, err := launch(docker, cfg.Log)
	if err != nil {
		return nil, err
	}
	address, err := p.publishedAddress(ctx, name)
	if err == nil {
		err = awaitAnswer(ctx, containerURL(address, password), p)
	}
	if err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killAfter)
		defer cancel()
		return nil, errors.Join(err, p.end(stopCtx))
	}
	return newServer(containerURL(address, password), p), nil
}

// password returns the server's password, made up at the first call.
func (h home) password() (string, error) {
	path := filepath.Join(h.dir, "password")
	text, err := os.ReadFile(path)
	if err == nil {
		return string(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	password := rand.Text()
	if err := os.WriteFile(path, []byte(password), 0o600); err != nil {
		return "", fmt.Errorf("write the password: %w", err)
	}
	return password, nil
}

func containerURL(address, password string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(userName, password), Host: address,
		Path: "/" + databaseName, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// publishedAddress waits until the container has its port; pulling the image
// may come before that.
func (p *process) publishedAddress(ctx context.Context, name string) (string, error) {
	for {
		if address, err := containerAddress(ctx, name); err == nil {
			return address, nil
		}
		select {
		case <-p.done:
			return "", fmt.Errorf("the container ended (%w): %s", exitError(p.exit), p.log.last())
		case <-ctx.Done():
			return "", fmt.Errorf("the container has no port (%w): %s", context.Cause(ctx), p.log.last())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func containerAddress(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "port", name, "5432/tcp").Output()
	if err != nil {
		return "", fmt.Errorf("docker port: %w", err)
	}
	address, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", fmt.Errorf("docker port: %w", err)
	}
	return address, nil
}

// awaitAnswer returns when the database can be connected to. p is nil when
// the container is not ours.
func awaitAnswer(ctx context.Context, address string, p *process) error {
	var done chan struct{}
	if p != nil {
		done = p.done
	}
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-done:
			return fmt.Errorf("the container ended (%w): %s", exitError(p.exit), p.log.last())
		case <-ctx.Done():
			return fmt.Errorf("the container does not answer (%w): %w", context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
