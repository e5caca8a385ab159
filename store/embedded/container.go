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

// Docker is for machines without PostgreSQL, such as a laptop with Docker Desktop. Our
// child is then the docker command, not the server. It forwards signals, so the
// container ends when we do. The server listens on a loopback port and asks for a
// password, which is in the home.

// killContainerAfter is how long the docker command may take to end. If it is
// killed, the container keeps running.
const killContainerAfter = 10 * time.Second

// usualImage is for a home that has no data yet. Later starts keep the image.
var usualImage = "postgres:17-alpine"

// dockerAnswers reports whether there is an engine to run a container.
func dockerAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").Output()
	return err == nil && strings.TrimSpace(string(out)) != ""
}

// hasContainer reports whether a container made the data.
func (h home) hasContainer() bool {
	_, err := os.Stat(h.container())
	return err == nil
}

func startContainer(ctx context.Context, h home, cfg Config) (*Server, error) {
	if !dockerAnswers(ctx) {
		return nil, fmt.Errorf("the data in %s belongs to a container, and no Docker engine answers: start Docker", h.container())
	}
	if err := os.MkdirAll(h.container(), 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	image, err := h.remember("image", usualImage)
	if err != nil {
		return nil, err
	}
	password, err := h.remember("password", rand.Text())
	if err != nil {
		return nil, err
	}
	name := "holdfast-" + shortHash(h.dir)
	if _, err := containerAddress(ctx, name); err == nil {
		running, err := awaitContainer(ctx, name, password, nil)
		if err != nil {
			return nil, err
		}
		return newServer(running, nil), nil
	}
	cfg.Log.Info("running PostgreSQL in a container", "image", image, "container", name)
	args := []string{
		"run", "--rm", "--name", name, "--publish", "127.0.0.1::5432", "--stop-signal", "SIGINT", "--shm-size", "256m",
		"--volume", filepath.Join(h.container(), "data") + ":/var/lib/postgresql/data",
		"--env", "POSTGRES_USER=" + userName, "--env", "POSTGRES_DB=" + databaseName,
		"--env", "POSTGRES_PASSWORD", // its value comes from the environment, unseen by ps
		image, "postgres",
	}
	args = append(args, arguments(cfg, nil, map[string]string{"listen_addresses": "*"})...)
	docker := exec.Command("docker", args...) //nolint:noctx // ended by signals; see process.end
	docker.Env = append(os.Environ(), "POSTGRES_PASSWORD="+password)
	docker.SysProcAttr = childAttributes(account{}, syscall.SIGINT)
	p, err := launch(docker, killContainerAfter, cfg.Log)
	if err != nil {
		return nil, err
	}
	address, err := awaitContainer(ctx, name, password, p)
	if err != nil {
		return nil, errors.Join(err, p.undo(ctx, killContainerAfter))
	}
	return newServer(address, p), nil
}

// remember returns the content of the file. The first call writes value to it.
func (h home) remember(file, value string) (string, error) {
	path := filepath.Join(h.container(), file)
	text, err := os.ReadFile(path)
	if err == nil {
		return string(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the container's %s: %w", file, err)
	}
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		return "", fmt.Errorf("write the container's %s: %w", file, err)
	}
	return value, nil
}

func containerURL(address, password string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(userName, password), Host: address,
		Path: "/" + databaseName, RawQuery: "sslmode=disable",
	}
	return u.String()
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

// awaitContainer returns the URL of the container once its database accepts
// connections. Docker may have to pull the image first. p is nil if another process
// started the container.
func awaitContainer(ctx context.Context, name, password string, p *process) (address string, err error) {
	err = await(ctx, p, 100*time.Millisecond, func() error {
		published, err := containerAddress(ctx, name)
		if err != nil {
			return fmt.Errorf("the container has no port: %w", err)
		}
		address = containerURL(published, password)
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return fmt.Errorf("the container does not answer: %w", err)
		}
		return conn.Close(ctx)
	})
	return address, err
}
